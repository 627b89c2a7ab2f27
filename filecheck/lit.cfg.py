"""lit's configuration: every .mir, .mlir and .test file under this folder is a shell test by its RUN lines."""

# The file is executed by lit with `config` and `lit_config` in scope.
# pyright: reportUndefinedVariable=false
import importlib.util
import os
import sys

import lit.formats

config.name = "mirstack"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mir", ".mlir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.test_source_root, "..", "build", "filecheck")
# mir-opt, mir-run, filecheck and xdsl-opt are those of the environment that lit itself runs in.
config.environment["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
# Programs are compiled by every test, not taken from the cache on disk.
config.environment["MIRSTACK_CACHE_LIMIT"] = "0"
# Tests run side by side: numpy's own threads would only take turns from others.
os.environ["OPENBLAS_NUM_THREADS"] = config.environment["OPENBLAS_NUM_THREADS"] = "1"
# A copy of the package under test stands before the installed one by PYTHONPATH. It is given to each command, since lit's own
# `diff` changes it for the rest of a test.
if "PYTHONPATH" in os.environ:
    for command in ("mir-opt", "mir-run", "xdsl-opt"):
        pattern = rf"(?<![\w/.-]){command}(?![\w/.-])"
        config.substitutions.append((pattern, f"env PYTHONPATH={os.environ['PYTHONPATH']} {command}"))
if "MIRSTACK_CORPUS" in os.environ:
    config.environment["MIRSTACK_CORPUS"] = os.environ["MIRSTACK_CORPUS"]
    config.available_features.add("corpus")
if importlib.util.find_spec("z3"):
    config.available_features.add("z3")
if lit_config.params.get("processes") != "1":
    sys.path.insert(0, config.test_source_root)
    import forks

    forks.install()
