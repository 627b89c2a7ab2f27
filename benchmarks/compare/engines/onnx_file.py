"""The ONNX file that several engines read, written once."""

from __future__ import annotations

from pathlib import Path

import onnx

from ..graph import Graph
from ..to_onnx import model_of


def write(graph: Graph, source: Path) -> Path:
    """`NAME.onnx` beside the workload's text, written unless it is newer than that."""
    path = source.with_suffix(".onnx")
    if not path.exists() or path.stat().st_mtime < source.stat().st_mtime:
        onnx.save(model_of(graph), str(path))
    return path
