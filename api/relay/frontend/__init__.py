"""`relay.frontend`: imports models of other frameworks, by TVM's names and arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from ....support.arguments import check, items
from ....support.public_names import public_names
from ...importers import from_onnx as import_onnx
from ...importers import from_torch
from ...ir.module import IRModule
from ...nd import NDArray


def from_onnx(
    model: Any,
    shape: Mapping[str, Sequence[int]] | None = None,
    dtype: str | Mapping[str, str] | None = "float32",
    opset: int | None = None,
    freeze_params: bool = True,
    convert_config: Mapping[str, Any] | None = None,
    export_node_renamed_model_path: str | None = None,
) -> tuple[IRModule, dict[str, NDArray]]:
    """Imports an ONNX model, a file's path or a `ModelProto`; returns the module and no parameters.

    Weights are constants of the module, as with TVM's `freeze_params`; dtypes and the opset are those of the model.
    Raises MirError for a file that cannot be read, and with all nodes that cannot be imported.
    """
    return import_onnx(model, None if shape is None else dict(shape)), {}


def from_pytorch(
    script_module: Any,
    input_infos: Sequence[tuple[str, Any]],
    custom_convert_map: Mapping[str, Any] | None = None,
    default_dtype: str = "float32",
    use_parser_friendly_name: bool = False,
    keep_quantized_weight: bool = False,
    export_renamed_c_graph_path: str | None = None,
    preserve_pytorch_scopes: bool = False,
) -> tuple[IRModule, dict[str, NDArray]]:
    """Imports a module of PyTorch that `torch.export` can export; returns it and no parameters.

    `input_infos` are `(name, shape)` or `(name, (shape, dtype))`; parameters of `main` are in their order. Raises MirError
    with all operators that cannot be imported.
    """
    torch: Any = import_module("torch")

    given = items(input_infos, "input_infos", "pairs of a name and a shape", tuple, list)
    check(script_module, "script_module", "a torch.nn.Module", torch.nn.Module)
    if custom_convert_map:
        raise TypeError(
            "from_pytorch takes no converters: an operator of one's own is a function of mirstack.from_torch"
        )
    return from_torch(script_module, tuple(_example(torch, each[1], default_dtype) for each in given)), {}


def _example(torch: Any, info: Any, default_dtype: str) -> Any:
    """Returns a tensor of an input's shape, which is there alone or with a dtype."""
    typed = len(info) == 2 and isinstance(info[1], str)
    shape, dtype = info if typed else (info, default_dtype)
    kind = getattr(torch, {"float": "float32", "int": "int32"}.get(dtype, dtype))
    return torch.zeros(tuple(shape), dtype=kind)


__all__ = ["from_onnx", "from_pytorch"]


__dir__ = public_names(__name__)
