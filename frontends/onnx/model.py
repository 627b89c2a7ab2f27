"""Reads ONNX files: the extra `onnx` parses them, external data is read beside them."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

from ...support.diagnostics import Diagnostic, MirError

NEEDS_ONNX = "reading ONNX models needs the package onnx: pip install 'mirstack[onnx]'"


def require_onnx() -> Any:
    """Imports the package onnx. Raises MirError, which says how to install it, where it is missing."""
    try:
        import onnx
    except ImportError:
        raise MirError(Diagnostic(NEEDS_ONNX)) from None
    return onnx


def read_model(path: str | PathLike[str]) -> Any:
    """Returns the model in a file as a `ModelProto`, with its external data.

    Raises MirError for a file that cannot be read or is not an ONNX model.
    """
    onnx = require_onnx()
    file = Path(path)
    try:
        # The extension is the user's matter: the file is read as protobuf.
        model = onnx.load(str(file), format="protobuf")
    except OSError as error:
        raise MirError(Diagnostic(f"{file} cannot be read: {error.strerror or error}")) from None
    except Exception as error:
        raise MirError(Diagnostic(f"{file} is not an ONNX model: {_first_line(error)}")) from None
    if not model.HasField("graph") or not model.opset_import:
        raise MirError(
            Diagnostic(
                f"{file} is not an ONNX model: it has no {'operator set' if model.HasField('graph') else 'graph'}"
            )
        )
    return model


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).split("\n")[0]
