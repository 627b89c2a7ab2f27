"""The ONNX files that several engines read, each written once."""

from __future__ import annotations

from pathlib import Path

import onnx

from ..material import Material
from ..to_onnx import model_of


def translated(material: Material) -> Path:
    """The program in ONNX, operator by operator."""
    path = material.file(".onnx")
    if not material.is_fresh(path):
        onnx.save(model_of(material.graph), str(path))
    return path


def exported(material: Material) -> Path:
    """Returns the program in ONNX as a user would export it: a whole LSTM is ONNX's operator for it."""
    if material.workload.name != "lstm":
        return translated(material)
    path = material.file(".exported.onnx")
    if not material.is_fresh(path):
        from ..recurrent import lstm_model

        onnx.save(lstm_model(material.workload.make().weights, material.graph), str(path))
    return path
