"""ONNX' light models, its `real` kind: image classifiers whose weights are of one value each, compared to their own tolerance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from extras import library

pytestmark = [pytest.mark.extra, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
onnx = library("onnx", "onnx")


def light_models() -> list[Any]:
    from onnx.backend.test.loader import load_model_tests

    return load_model_tests(kind="real")


@pytest.mark.parametrize("case", light_models(), ids=lambda case: case.name)
def test_light_model(case: Any) -> None:
    from mirstack.api.onnx import backend
    from onnx.backend.test.runner import Runner

    path = Path(onnx.__file__).parent.parent / case.url
    model = onnx.load(str(path))
    known = {tensor.name for tensor in model.graph.initializer}
    inputs = [Runner.generate_dummy_data(each) for each in model.graph.input if each.name not in known]
    stored = onnx.TensorProto()
    stored.ParseFromString(path.with_name(f"{path.stem}_output_0.pb").read_bytes())
    wanted = onnx.numpy_helper.to_array(stored)
    (found,) = backend.prepare(model).run(inputs)
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=case.rtol, atol=case.atol)
