"""Shares memory between torch's tensors and numpy's arrays, and names dtypes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ...dialects.array import numpy_dtype
from ...support.diagnostics import Diagnostic, MirError

if TYPE_CHECKING:
    from numpy.typing import NDArray

DTYPES = (
    "float16", "float32", "float64", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
)  # fmt: skip
"""Those that torch and Relay name alike."""


@cache
def require_torch() -> Any:
    """Returns the module `torch`. Raises MirError where it is not installed."""
    try:
        import torch
    except ImportError:
        raise MirError(
            Diagnostic("the package torch is not installed").with_note("pip install 'mirstack[torch]' installs it")
        ) from None
    return torch


def dtype_name(dtype: Any) -> str | None:
    """Returns Relay's name of a torch dtype; None where Relay has none."""
    name = str(dtype).removeprefix("torch.")
    return name if name in DTYPES else None


def exported(
    model: Any, inputs: Sequence[Any] | None, named: Mapping[str, Any] | None, dynamic_shapes: Any
) -> tuple[Any, str]:
    """Returns a module as an exported program, and its name in messages.

    Raises TypeError for anything but a module with inputs or an exported program, MirError for what `torch.export` refuses.
    """
    torch = require_torch()
    if isinstance(model, torch.export.ExportedProgram):
        if inputs is not None or named is not None or dynamic_shapes is not None:
            raise TypeError("an exported program has its inputs and shapes already; give the program alone")
        return model, "model.pt2"
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"from_torch takes a torch.nn.Module or an ExportedProgram, not {type(model).__name__}")
    if inputs is None and named is None:
        raise TypeError("from_torch needs example_inputs, a tuple of what the module takes")
    name = type(model).__name__
    try:
        program = torch.export.export(model, tuple(inputs or ()), dict(named or {}), dynamic_shapes=dynamic_shapes)
    except Exception as error:
        raise MirError(_refusal(name, error)) from error
    return program, name


MOST_CHARACTERS = 300
"""Of torch's message, which may name a size in thousands of characters."""


def _refusal(name: str, error: Exception) -> Diagnostic:
    """Returns what `torch.export` says of a module that it does not export, in short."""
    said = str(error).strip()
    first = said.partition("\n")[0]
    if len(first) > MOST_CHARACTERS:
        first = f"{first[:MOST_CHARACTERS]}…"
    message = f"{name}: torch.export does not export it: {type(error).__name__}: {first}"
    cause = re.search(r"^Caused by: \((.+)\)$", said, re.MULTILINE)
    refusal = Diagnostic(message) if cause is None else Diagnostic(message).with_note(f"at {cause[1]}")
    return refusal.with_note(
        "torch.export.draft_export lists all that it does not export;"
        ' torch.compile(model, backend="mirstack") leaves such parts to torch',
    )


def to_numpy(tensor: Any) -> NDArray[Any]:
    """Returns a tensor of the CPU as an array; it shares the memory of one that is contiguous."""
    if tensor.requires_grad:
        tensor = tensor.detach()
    if tensor.is_neg() or not tensor.is_contiguous():
        tensor = tensor.resolve_neg().contiguous()
    torch = require_torch()
    if tensor.dtype is torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(numpy_dtype("bfloat16"))
    return tensor.numpy()


def to_torch(array: Any) -> Any:
    """Returns an array as a tensor that shares its memory."""
    torch = require_torch()
    if not isinstance(array, np.ndarray):
        array = np.asarray(array)
    # The name of a dtype takes microseconds; bfloat16 is of none of numpy's own kinds.
    if array.dtype.kind not in "fiub" and array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view("int16")).view(torch.bfloat16)
    return torch.from_numpy(array)
