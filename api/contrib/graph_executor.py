"""`contrib.graph_executor`: compiled graphs with inputs to set and outputs to read.

module = graph_executor.GraphModule(relay.build(mod, "llvm", params=params)["default"](mirstack.cpu()))
module.set_input("data", data)
module.run()
module.get_output(0).numpy()
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...support.arguments import check
from ...support.diagnostics import Diagnostic, MirValueError
from ...support.public_names import public_names
from ..build import BenchmarkResult, evaluator
from ..device import Device
from ..nd import NDArray
from ..relay.build_module import GraphExecutorFactoryModule, GraphLibrary
from ..relay.graph_runtime import GraphRuntime


class GraphModule:
    """The methods of a graph's runtime, which is `module`."""

    def __init__(self, module: GraphRuntime):
        check(module, "module", "what lib['default'](device) returns", GraphRuntime)
        self.module = module
        self.set_input = module.set_input
        self.set_input_zero_copy = module.set_input_zero_copy
        self.set_output_zero_copy = module.set_output_zero_copy
        self.run = module.run
        self.get_output = module.get_output
        self.get_input = module.get_input
        self.get_num_outputs = module.get_num_outputs
        self.get_num_inputs = module.get_num_inputs
        self.get_input_index = module.get_input_index
        self.get_input_info = module.get_input_info
        self.load_params = module.load_params

    def share_params(self, other: GraphModule, params_bytes: bytes | bytearray) -> None:
        """Makes inputs of these names the arrays of another module."""
        self.module.share_params(other.module, params_bytes)

    def __getitem__(self, key: str) -> Callable[..., Any]:
        return self.module[key]

    def benchmark(
        self,
        device: Device | None = None,
        func_name: str = "run",
        repeat: int = 5,
        number: int = 5,
        min_repeat_ms: int | None = None,
        limit_zero_time_iterations: int = 100,
        end_to_end: bool = False,
        cooldown_interval_ms: int = 0,
        repeats_to_cooldown: int = 1,
        **kwargs: Any,
    ) -> BenchmarkResult:
        """Returns the seconds of runs: `repeat` means of `number` calls each, on the inputs of `kwargs`.

        With `end_to_end` setting the inputs and reading the outputs counts, too. Pauses are as for `Module.time_evaluator`.
        """
        self.set_input(**kwargs)

        def whole() -> list[NDArray]:
            self.run(**kwargs)
            return [self.get_output(index) for index in range(self.get_num_outputs())]

        function = whole if end_to_end else self.module[func_name]
        return evaluator(function, number, repeat, min_repeat_ms or 0, cooldown_interval_ms, repeats_to_cooldown)()

    def __repr__(self) -> str:
        return f"GraphModule({self.module!r})"


def create(
    graph_json_str: str | GraphExecutorFactoryModule, libmod: GraphLibrary, device: Device | str | list[Device]
) -> GraphModule:
    """Returns the runtime of a graph and its library, both of one `relay.build`.

    Raises MirValueError for a graph of another program.
    """
    check(libmod, "libmod", "the library of relay.build, lib.get_lib()", GraphLibrary, GraphExecutorFactoryModule)
    library = libmod.lib if isinstance(libmod, GraphExecutorFactoryModule) else libmod
    text = graph_json_str.get_graph_json() if isinstance(graph_json_str, GraphExecutorFactoryModule) else graph_json_str
    if text != library.graph_json:
        raise MirValueError(
            Diagnostic("the graph is not that of the library").with_note("give both parts of one relay.build")
        )
    devices = device if isinstance(device, list) else [device]
    return GraphModule(library["default"](*devices))


__all__ = ["GraphModule", "create"]


__dir__ = public_names(__name__)
