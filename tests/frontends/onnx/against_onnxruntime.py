"""Compares a model of one node with onnxruntime, with the sizes that are given and with open ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import mirstack
import numpy as np
from extras import library

onnx = library("onnx", "onnx")
onnxruntime = library("onnxruntime", "onnx")


def model_of(
    operator: str,
    inputs: Sequence[Any],
    *,
    outputs: int | Sequence[bool] = 1,
    opset: int = 21,
    constants: Sequence[int] = (),
    open_axes: Mapping[int, Sequence[int]] | None = None,
    domain: str = "",
    **attributes: Any,
) -> Any:
    """Returns a model of one node; an input that is None is left out, one of `constants` is an initializer.

    `open_axes` are the axes of an input whose sizes the model does not state. An output that is False is left out.
    """
    helper = onnx.helper
    names = [f"x{k}" if array is not None else "" for k, array in enumerate(inputs)]
    given = outputs if isinstance(outputs, Sequence) else [True] * outputs
    results = [f"y{k}" if used else "" for k, used in enumerate(given)]
    node = helper.make_node(operator, names, results, name="the_node", domain=domain, **attributes)
    parameters: list[Any] = []
    for k, array in enumerate(inputs):
        if array is None or k in constants:
            continue
        axes = (open_axes or {}).get(k, ())
        shape = [f"d{k}_{axis}" if axis in axes else size for axis, size in enumerate(array.shape)]
        parameters.append(helper.make_tensor_value_info(names[k], helper.np_dtype_to_tensor_dtype(array.dtype), shape))
    weights = [onnx.numpy_helper.from_array(inputs[k], names[k]) for k in constants if inputs[k] is not None]
    ends = [helper.make_empty_tensor_value_info(name) for name in results if name]
    graph = helper.make_graph([node], "g", parameters, ends, weights)
    opsets = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def check(
    operator: str,
    inputs: Sequence[Any],
    *,
    tolerance: float = 1e-5,
    expected: Sequence[Any] | None = None,
    interpreted: bool = False,
    **options: Any,
) -> None:
    """Compares the results of one node with onnxruntime's, or with `expected`."""
    model = model_of(operator, inputs, **options)
    constants: Sequence[int] = options.get("constants", ())
    feeds = {f"x{k}": array for k, array in enumerate(inputs) if array is not None and k not in constants}
    if expected is None:
        expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)
    module = mirstack.from_onnx(model)
    made = mirstack.compile(module, target="interp") if interpreted else mirstack.compile(module)
    found: Any = made(*feeds.values())
    results = list(found) if isinstance(found, tuple | list) else [found]
    assert expected is not None and len(results) == len(expected)
    for result, wanted in zip(results, expected, strict=True):
        array = np.asarray(result)
        assert array.dtype == wanted.dtype and array.shape == wanted.shape, (array.dtype, array.shape, wanted.shape)
        np.testing.assert_allclose(array.astype(np.float64), wanted.astype(np.float64), rtol=tolerance, atol=tolerance)
