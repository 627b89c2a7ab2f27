"""`contrib.graph_executor`: compiled graphs with inputs to set and outputs to read.

module = graph_executor.GraphModule(relay.build(mod, "llvm", params=params)["default"](mirstack.cpu()))
module.set_input("data", data)
module.run()
module.get_output(0).numpy()

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.contrib.graph_executor import GraphModule as GraphModule
from mirstack.api.contrib.graph_executor import create as create
