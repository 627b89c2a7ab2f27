"""The ONNX files that several engines read, each written once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ..graph import Array, Graph
from ..material import Material
from ..to_onnx import OPSET, info, model_of

GATES = (0, 3, 1, 2)
"""ONNX has the gates in the order input, output, forget, cell; the example input, forget, cell, output."""


def lstm_model(weights: Mapping[str, Array], graph: Graph) -> Any:
    """Returns the model of the example's weights: the sequence to the last hidden and cell state."""

    def gates(name: str) -> Array:
        parts = np.split(weights[name], 4, axis=0)
        return np.concatenate([parts[gate] for gate in GATES])[np.newaxis]

    constants = {
        "W": gates("lstm_i2h_weight"),
        "R": gates("lstm_h2h_weight"),
        "B": np.concatenate([gates("lstm_i2h_bias"), gates("lstm_h2h_bias")], axis=1),
        "first": np.array([0], np.int64),
    }
    (data,) = graph.inputs
    hidden = graph.results[0].shape[-1]
    nodes = [helper.make_node("LSTM", [data.name, "W", "R", "B"], ["", "h", "c"], hidden_size=hidden)]
    for k, name in enumerate("hc"):
        nodes.append(helper.make_node("Squeeze", [name, "first"], [f"out{k}"]))
    model = helper.make_model(
        helper.make_graph(
            nodes,
            "main",
            [info(data.name, data)],
            [info(f"out{k}", value) for k, value in enumerate(graph.results)],
            [numpy_helper.from_array(array, name) for name, array in constants.items()],
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=10,
    )
    onnx.checker.check_model(model)
    return model


def translated(material: Material) -> Path:
    """Returns the program in ONNX, operator by operator."""
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
        onnx.save(lstm_model(material.workload.make().weights, material.graph), str(path))
    return path
