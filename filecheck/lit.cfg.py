"""lit's configuration: every .mir, .mlir and .test file under this folder is a shell test by its RUN lines."""

# The file is executed by lit with `config` and `lit_config` in scope.
# pyright: reportUndefinedVariable=false
import importlib.util
import os
import sys

import lit.formats

config.name = "mirstack"  # noqa: F821
config.test_format = lit.formats.ShTest(execute_external=False)  # noqa: F821
config.suffixes = [".mir", ".mlir", ".test"]  # noqa: F821
config.excludes = ["Inputs"]  # noqa: F821
config.test_source_root = os.path.dirname(__file__)  # noqa: F821
config.test_exec_root = os.path.join(config.test_source_root, "..", "build", "filecheck")  # noqa: F821
# mir-opt, mir-run, filecheck and xdsl-opt are those of the environment that lit itself runs in.
config.environment["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])  # noqa: F821
# Programs are compiled by every test, not taken from the cache on disk.
config.environment["MIRSTACK_CACHE_LIMIT"] = "0"  # noqa: F821
# Tests run side by side: numpy's own threads would only take turns from others.
os.environ["OPENBLAS_NUM_THREADS"] = config.environment["OPENBLAS_NUM_THREADS"] = "1"  # noqa: F821
# A copy of the package under test stands before the installed one by PYTHONPATH. It is given to each command, since lit's own
# `diff` changes it for the rest of a test.
if "PYTHONPATH" in os.environ:
    for command in ("mir-opt", "mir-run", "xdsl-opt"):
        pattern = rf"(?<![\w/.-]){command}(?![\w/.-])"
        config.substitutions.append((pattern, f"env PYTHONPATH={os.environ['PYTHONPATH']} {command}"))  # noqa: F821
if "MIRSTACK_CORPUS" in os.environ:
    config.environment["MIRSTACK_CORPUS"] = os.environ["MIRSTACK_CORPUS"]  # noqa: F821
    config.available_features.add("corpus")  # noqa: F821
if importlib.util.find_spec("z3"):
    config.available_features.add("z3")  # noqa: F821
if lit_config.params.get("processes") != "1":  # noqa: F821
    sys.path.insert(0, config.test_source_root)  # noqa: F821
    import forks

    forks.install()
