"""Implements the backend `mirstack` of `torch.compile`, for inference.

Dynamo's graph goes through AOTAutograd, which decomposes it to core ATen operators without mutation, to `import_graph` and
`mirstack.compile`. Parameters and buffers become constants that share torch's memory; a call checks that they are still the same
tensors, unchanged, and compiles again otherwise. Results are tensors that share the memory of the program's arrays.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from ...frontends.torch.importer import Fixed, import_graph
from ...frontends.torch.registry import is_converted
from ...frontends.torch.tensors import require_torch, to_numpy, to_torch


def mirstack(graph: Any, inputs: Sequence[Any], **options: Any) -> Callable[..., Any]:
    """Compiles a graph of Dynamo's; `torch.compile(model, backend="mirstack")` calls it.

    `options` are those of `mirstack.compile` (`options={"threads": 1}`). Where gradients are asked for, the graph runs as torch
    runs it, and a warning says so. Raises MirError with all operators that cannot be imported.
    """
    torch = require_torch()
    if torch.is_grad_enabled() and any(isinstance(each, torch.Tensor) and each.requires_grad for each in inputs):
        warnings.warn(
            "the backend mirstack compiles inference alone: this graph needs gradients, so torch runs it; "
            "call the model under torch.no_grad() or torch.inference_mode()",
            stacklevel=2,
        )
        return graph
    from torch._dynamo.backends.common import aot_autograd

    given = options.get("options") or {}
    bound = _static_places(graph, inputs)

    def compile_graph(module: Any, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        from torch._functorch._aot_autograd.utils import make_boxed_func

        return make_boxed_func(Program(module, _order(graph, module, bound), given))

    compiled = aot_autograd(fw_compiler=compile_graph, inference_compiler=compile_graph, decompositions=_table())
    return compiled(graph, inputs)


def _static_places(graph: Any, inputs: Sequence[Any]) -> dict[int, Any]:
    """Returns the parameters and buffers among the inputs, which do not change from call to call."""
    torch = require_torch()
    found: dict[int, Any] = {}
    placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
    for place, (node, value) in enumerate(zip(placeholders, inputs, strict=True)):
        marked = node.meta.get("tensor_dict", {}).get("_dynamo_static_input_type")
        if isinstance(value, torch.nn.Parameter) or (isinstance(value, torch.Tensor) and marked):
            found[place] = value
    return found


def _order(graph: Any, module: Any, bound: dict[int, Any]) -> dict[int, Any]:
    """Returns the bound tensors by places in the compiled graph: those of Dynamo's graph."""
    count = sum(node.op == "placeholder" for node in module.graph.nodes)
    given = sum(node.op == "placeholder" for node in graph.graph.nodes)
    return bound if count == given else {}


@cache
def _table() -> Any:
    """Returns decompositions of what AOTAutograd leaves, except of operators converted whole."""
    from torch._decomp import _core_aten_decompositions_post_autograd as core  # pyright: ignore[reportPrivateUsage]

    return {op: function for op, function in core().items() if not is_converted(op._schema.name.partition("::")[2])}


class Program:
    """A compiled graph, called with Dynamo's tensors and numbers; it returns a list of them."""

    def __init__(self, module: Any, bound: dict[int, Any], options: dict[str, Any]):
        self.module, self.options = module, options
        self.places = list(bound)
        self.tensors = [bound[place] for place in self.places]
        self.build()

    def build(self) -> None:
        """Imports and compiles the graph with the bound tensors as they are."""
        from torch._subclasses.fake_tensor import unset_fake_temporarily

        from ..compile import compile

        self.versions = [_version(tensor) for tensor in self.tensors]
        # While a graph is compiled torch takes each tensor for one without data; constants have data.
        with unset_fake_temporarily():
            graph = import_graph(self.module, "graph", dict(zip(self.places, self.tensors, strict=True)))
            self.parameters, self.results = graph.parameters, graph.results
            self.program = None if graph.module is None else compile(graph.module, **self.options)

    def __call__(self, *inputs: Any) -> list[Any]:
        """Runs the graph. Compiles it again where a parameter was replaced or written to."""
        if self.places:
            self._check(inputs)
        if self.program is None:
            return [each.value for each in self.results]
        found = self.program(*[_array(inputs[place]) for place in self.parameters])
        if not isinstance(found, tuple):
            return [each.value if isinstance(each, Fixed) else to_torch(found) for each in self.results]
        return [each.value if isinstance(each, Fixed) else to_torch(found[each]) for each in self.results]

    def _check(self, inputs: Sequence[Any]) -> None:
        for place, tensor, version in zip(self.places, self.tensors, self.versions, strict=True):
            given = inputs[place]
            if given is not tensor or _version(given) != version:
                self.tensors = [inputs[place] for place in self.places]
                self.build()
                return


def _version(tensor: Any) -> int:
    """Counts the writes to a tensor; of tensors made in inference mode torch knows none."""
    return 0 if tensor.is_inference() else tensor._version


def _array(value: Any) -> Any:
    return to_numpy(value) if hasattr(value, "dtype") else value
