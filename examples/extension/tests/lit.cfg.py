# lit runs this with `config` in scope.
# ruff: noqa: F821
# pyright: reportUndefinedVariable=false
import os
import sys

import lit.formats

config.name = "mirstack-example"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mir", ".mlir"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.test_source_root, "build")
config.environment["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
