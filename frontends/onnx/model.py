"""Reads ONNX files: the extra `onnx` parses them, weights are read without it."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

from ...dialects.onnx_weights import beside
from ...dialects.side_file import SideFile
from ...support.diagnostics import Diagnostic, MirError

NEEDS_ONNX = "reading ONNX models needs the package onnx: pip install 'mirstack[onnx]'"


def require_onnx() -> Any:
    """Imports the package onnx. Raises MirError, which says how to install it, where it is missing."""
    try:
        import onnx
    except ImportError:
        raise MirError(Diagnostic(NEEDS_ONNX)) from None
    return onnx


def read_model(path: str | PathLike[str], weights: SideFile | None = None) -> Any:
    """Returns the model in a file as a `ModelProto`, with the external data that `weights` does not have.

    Raises MirError for a file that cannot be read or is not an ONNX model.
    """
    onnx = require_onnx()
    file = Path(path)
    try:
        # The extension is the user's matter: the file is read as protobuf.
        model = onnx.load(str(file), format="protobuf", load_external_data=False)
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
    in_graph = {each.name for each in model.graph.initializer} if weights is not None else set[str]()
    for tensor in _external_tensors(model):
        if weights is None or tensor.name not in in_graph or tensor.name not in weights:
            _read_external(tensor, file)
    return model


def _external_tensors(model: Any) -> list[Any]:
    """Returns the tensors of a model, in attributes and subgraphs, too, whose elements are in other files."""
    onnx = require_onnx()
    found: list[Any] = []
    graphs: list[Any] = [model.graph, *model.functions]
    while graphs:
        graph = graphs.pop()
        found += getattr(graph, "initializer", ())
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    graphs.append(attribute.g)
                graphs += attribute.graphs
                found += [attribute.t, *attribute.tensors] if attribute.HasField("t") else attribute.tensors
    return [each for each in found if each.data_location == onnx.TensorProto.EXTERNAL]


def _read_external(tensor: Any, model: Path) -> None:
    """Reads a tensor's external data into it. Raises MirError for a file that does not have it."""
    about = {each.key: each.value for each in tensor.external_data}
    try:
        location, offset = about.get("location", ""), int(about.get("offset", "0"))
        with open(beside(model.parent, location), "rb") as file:
            size = file.seek(0, 2)
            length = int(about.get("length", str(max(size - offset, 0))))
            if not 0 <= offset <= offset + length <= size:
                raise ValueError(f"its external data ends at byte {offset + length} of '{location}', which has {size}")
            file.seek(offset)
            tensor.raw_data = file.read(length)
    except OSError as error:
        reason = f"its external data '{about.get('location', '')}' cannot be read: {error.strerror}"
    except ValueError as error:
        reason = str(error)
    else:
        tensor.ClearField("external_data")
        tensor.data_location = require_onnx().TensorProto.DEFAULT
        return
    raise MirError(Diagnostic(f"{model}: tensor '{tensor.name}': {reason}"))


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).split("\n")[0]
