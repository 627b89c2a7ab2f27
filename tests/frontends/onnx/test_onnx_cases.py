"""ONNX' own tests of its operators and its small stored models, on mirstack's backend, natively.

Left out are `ai.onnx.ml` and training. `REFUSED` lists by reason the cases that are refused; a case that is listed and passes fails.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import mirstack
import numpy as np
import pytest
from extras import library

pytestmark = [pytest.mark.extra, pytest.mark.filterwarnings("ignore")]
onnx = library("onnx", "onnx")

REFUSED = {
    r"test_(regex|string|strnorm|equal_string).*": "has elements of a type that tensors here cannot have",
    r"test_image_decoder.*": "decoding files of images is not supported",
    r"test_bernoulli(_double)?(_expanded)?": "it draws numbers at random, and has no seed",
    r"test_training_dropout(_default)?(_mask)?": "training_mode drops elements at random",
    r"test_affine_grid_2d.*_expanded": "without axes every dimension must be known, not open",
    r"test_sequence_model8": "which is split, must have a known size",
}
"""Patterns of cases by a part of the message with which they are refused."""

ROUNDED_OTHERWISE = {
    r"test_dft_inverse.*": "the reference's float32 leaves 2e-7 where zero is the result, which is outside of its own tolerance of 1e-7",
    r"test_attention_4d_causal_fp16_expanded": "float16's softmax is rounded once here, and at each step in the reference",
}
"""Patterns of cases whose results differ by rounding alone, by the reason; they are compared to 2e-3 and 1e-6."""

DRAWN = r"test_bernoulli_seed(_expanded)?"
"""Cases whose numbers are random: another generator draws others, and only their shape, dtype and the set of their elements is compared."""

OTHER_DOMAINS = ("ai.onnx.ml", "ai.onnx.preview.training")


def cases() -> list[Any]:
    """Returns ONNX' cases of operators, and its models that PyTorch wrote."""
    from onnx.backend.test.case.node import collect_testcases
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        operators = collect_testcases(None)
        stored = [
            case for kind in ("pytorch-converted", "pytorch-operator", "simple") for case in load_model_tests(kind=kind)
        ]
    return [case for case in operators if not is_of_other_domain(case.model)] + stored


def is_of_other_domain(model: Any) -> bool:
    """Returns whether a model has a node of a domain that is not imported."""
    return any(node.domain in OTHER_DOMAINS for node in model.graph.node)


def model_and_data(case: Any) -> tuple[Any, list[tuple[list[Any], list[Any]]]]:
    """Returns the model of a case, and pairs of inputs and outputs."""
    if case.model is not None:
        return case.model, [(plain(inputs), plain(outputs)) for inputs, outputs in case.data_sets]
    folder = Path(case.model_dir)
    model = onnx.load(str(folder / "model.onnx"))
    known = {tensor.name for tensor in model.graph.initializer}
    inputs = [info for info in model.graph.input if info.name not in known]
    data = [
        (stored(each, "input", inputs), stored(each, "output", model.graph.output))
        for each in sorted(folder.glob("test_data_set_*"))
    ]
    return model, data


def plain(values: Any) -> list[Any]:
    """Returns values with arrays for tensors that are stored as ONNX' own."""
    return [onnx.numpy_helper.to_array(each) if isinstance(each, onnx.TensorProto) else each for each in values]


def with_ranks(outputs: Any) -> list[Any]:
    """Returns outputs whose lists hold no arrays of rank 0, which ONNX' runner does not compare."""
    return [[np.atleast_1d(item) for item in each] if isinstance(each, list) else each for each in outputs]


def stored(folder: Path, kind: str, infos: Any) -> list[Any]:
    """Returns the arrays, or lists of arrays, of the inputs or outputs in a folder."""
    found: list[Any] = []
    for place in range(len(list(folder.glob(f"{kind}_*.pb")))):
        is_sequence = infos[place].type.WhichOneof("value") == "sequence_type"
        proto = onnx.SequenceProto() if is_sequence else onnx.TensorProto()
        proto.ParseFromString((folder / f"{kind}_{place}.pb").read_bytes())
        found.append(onnx.numpy_helper.to_list(proto) if is_sequence else onnx.numpy_helper.to_array(proto))
    return found


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_case(case: Any) -> None:
    from mirstack.api.onnx import backend
    from onnx.backend.test.runner import Runner

    model, data = model_and_data(case)
    if is_of_other_domain(model):
        pytest.skip("a domain that is not imported")
    refusal = next((message for pattern, message in REFUSED.items() if re.fullmatch(pattern, case.name)), None)
    if refusal is not None:
        with pytest.raises(mirstack.MirError) as error:
            backend.prepare(model).run(data[0][0])
        assert refusal in str(error.value)
        return
    differs = any(re.fullmatch(pattern, case.name) for pattern in ROUNDED_OTHERWISE)
    rtol, atol = (2e-3, 1e-6) if differs else (case.rtol, case.atol)
    prepared = backend.prepare(model, threads=1)
    if re.fullmatch(DRAWN, case.name):
        (found,), (wanted,) = prepared.run(data[0][0]), data[0][1]
        assert found.dtype == wanted.dtype and found.shape == wanted.shape and set(found) <= {0, 1}
        return
    for inputs, outputs in data:
        with np.errstate(all="ignore"):
            Runner.assert_similar_outputs(with_ranks(outputs), with_ranks(prepared.run(inputs)), rtol, atol)
