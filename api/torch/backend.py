"""Implements the backend `mirstack` of `torch.compile`, for inference.

Dynamo's graph goes through AOTAutograd, which decomposes it to core ATen operators without mutation, to `import_graph` and
`mirstack.compile`. Parameters and buffers that the graph does not write to become constants that share torch's memory; a call checks
that they are still the same tensors, unchanged, and compiles again otherwise. Results are tensors that share the memory of the program's arrays.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any

from ...frontends.torch.decompositions import for_graph
from ...frontends.torch.tensors import require_torch
from ...support.diagnostics import Diagnostic, MirError
from .program import compiled_graph


def mirstack(graph: Any, inputs: Sequence[Any], **options: Any) -> Callable[..., Any]:
    """Compiles a graph of Dynamo's; `torch.compile(model, backend="mirstack")` calls it.

    `options` are those of `mirstack.compile` (`options={"threads": 1}`). Where gradients are asked for, torch runs the graph, and
    a warning says so; it runs operators that cannot be imported, too (`parts.py`). Raises MirError for an unknown option.
    """
    torch = require_torch()
    given = options.get("options") or {}
    _check_options(given)
    if torch.is_grad_enabled() and any(isinstance(each, torch.Tensor) and each.requires_grad for each in inputs):
        warnings.warn(
            "the backend mirstack compiles inference alone: this graph needs gradients, so torch runs it; "
            "call the model under torch.no_grad() or torch.inference_mode()",
            stacklevel=2,
        )
        return graph
    from torch._dynamo.backends.common import aot_autograd

    bound = _static_tensors(graph, inputs)

    def compile_graph(module: Any, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        from torch._functorch._aot_autograd.utils import make_boxed_func

        return make_boxed_func(compiled_graph(module, _constants(graph, module, bound), given))

    compiled = aot_autograd(fw_compiler=compile_graph, inference_compiler=compile_graph, decompositions=for_graph())
    return compiled(graph, inputs)


def _check_options(options: Mapping[str, Any]) -> None:
    """Raises MirError for an option that `mirstack.compile` does not have."""
    from ..compile import compile

    known = [each.name for each in signature(compile).parameters.values() if each.kind is each.KEYWORD_ONLY]
    for name in options:
        if name not in known:
            raise MirError(
                Diagnostic(
                    f"the backend mirstack has no option '{name}'; its options are those of mirstack.compile: {', '.join(known)}"
                )
            )


def _static_tensors(graph: Any, inputs: Sequence[Any]) -> dict[int, Any]:
    """Returns the parameters and buffers among the inputs, by places; calls take the same tensors."""
    torch = require_torch()
    found: dict[int, Any] = {}
    placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
    for place, (node, value) in enumerate(zip(placeholders, inputs, strict=True)):
        marked = node.meta.get("tensor_dict", {}).get("_dynamo_static_input_type")
        if isinstance(value, torch.nn.Parameter) or (isinstance(value, torch.Tensor) and marked):
            found[place] = value
    return found


def _constants(graph: Any, module: Any, bound: dict[int, Any]) -> dict[int, Any]:
    """Returns the bound tensors that the graph does not write to, by places in the compiled graph.

    There are none where AOTAutograd has added or removed inputs: places are then not those of Dynamo's graph.
    """
    from torch._guards import TracingContext

    counts = [sum(node.op == "placeholder" for node in each.graph.nodes) for each in (module, graph)]
    if counts[0] != counts[1]:
        return {}
    context = TracingContext.try_get()
    written = getattr(getattr(context, "fw_metadata", None), "mutated_inp_runtime_indices", ())
    return {place: tensor for place, tensor in bound.items() if place not in written}
