"""ONNX' recurrent layers: against onnxruntime, over activations, directions, lengths, and numbers of steps."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest
from against_onnxruntime import check, model_of

pytestmark = pytest.mark.extra
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
FUNCTIONS = {"RNN": 1, "GRU": 2, "LSTM": 3}


def layer(
    operator: str,
    *,
    steps: int = 4,
    directions: int = 1,
    bias: bool = True,
    lengths: bool = False,
    initial: bool = False,
    peepholes: bool = False,
    batch: int = 2,
) -> list[Any]:
    """Returns the inputs of a recurrent layer of 3 inputs and 5 hidden units."""
    rng = np.random.default_rng(0)

    def some(*shape: int) -> Any:
        return rng.standard_normal(shape).astype("float32") * np.float32(0.5)

    gates = GATES[operator] * 5
    found: list[Any] = [some(steps, batch, 3), some(directions, gates, 3), some(directions, gates, 5)]
    found.append(some(directions, 2 * gates) if bias else None)
    found.append(np.array([steps, 2][:batch], "int32") if lengths else None)
    found.append(some(directions, batch, 5) if initial else None)
    if operator == "LSTM":
        found.append(some(directions, batch, 5) if initial else None)
        found.append(some(directions, 15) if peepholes else None)
    return found


def outputs(operator: str) -> int:
    return 3 if operator == "LSTM" else 2


CASES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"bias": False, "initial": True}, {}),
    ({"lengths": True}, {}),
    ({"directions": 2, "lengths": True, "initial": True}, {"direction": "bidirectional"}),
    ({"lengths": True}, {"direction": "reverse"}),
    ({}, {"clip": 0.3}),
    ({"steps": 37}, {}),
    ({"steps": 21, "directions": 2}, {"direction": "bidirectional"}),
]


@pytest.mark.parametrize("operator", list(GATES))
@pytest.mark.parametrize(("given", "attributes"), CASES)
def test_layers(operator: str, given: dict[str, Any], attributes: dict[str, Any]) -> None:
    check(operator, layer(operator, **given), outputs=outputs(operator), constants=(1, 2), hidden_size=5, **attributes)


@pytest.mark.parametrize("operator", list(GATES))
@pytest.mark.parametrize(
    ("name", "alpha", "beta"),
    [
        ("Relu", None, None), ("Affine", 0.5, 0.25), ("LeakyRelu", 0.2, None), ("ThresholdedRelu", 0.1, None),
        ("ScaledTanh", 1.5, 0.5), ("HardSigmoid", 0.25, 0.4), ("Elu", 0.7, None), ("Softsign", None, None), ("Softplus", None, None),
    ],
)  # fmt: skip
def test_activations(operator: str, name: str, alpha: float | None, beta: float | None) -> None:
    count = FUNCTIONS[operator]
    options: dict[str, Any] = {"activations": [name] * count}
    if alpha is not None:
        options["activation_alpha"] = [alpha] * count
    if beta is not None:
        options["activation_beta"] = [beta] * count
    # Two steps, lest what does not saturate grows beyond all bounds.
    check(operator, layer(operator, steps=2), outputs=outputs(operator), hidden_size=5, interpreted=True, **options)


@pytest.mark.parametrize("operator", list(GATES))
@pytest.mark.parametrize("steps", [3, 12])
def test_open_steps_and_batch(operator: str, steps: int) -> None:
    inputs = layer(operator, steps=steps)
    check(operator, inputs, outputs=outputs(operator), constants=(1, 2, 3), open_axes={0: [0]}, hidden_size=5)
    check(operator, inputs, outputs=outputs(operator), constants=(1, 2, 3), open_axes={0: [0, 1]}, hidden_size=5)


def test_options_of_one_operator() -> None:
    check("LSTM", layer("LSTM", peepholes=True, initial=True), outputs=3, hidden_size=5)
    check("LSTM", layer("LSTM", peepholes=True), outputs=3, hidden_size=5, input_forget=1)
    check("GRU", layer("GRU", initial=True), outputs=2, hidden_size=5, linear_before_reset=1)
    check("GRU", layer("GRU", bias=False), outputs=2, hidden_size=5, linear_before_reset=1)


def test_only_the_last_state_is_computed() -> None:
    check("LSTM", layer("LSTM", steps=20), outputs=[False, True, True], constants=(1, 2), hidden_size=5)


def test_many_steps_are_few_ops() -> None:
    def size(steps: int) -> int:
        inputs = layer("LSTM", steps=steps)
        return len(mirstack.from_onnx(model_of("LSTM", inputs, outputs=3, constants=(1, 2, 3), hidden_size=5)).astext())

    assert size(1024) < 2 * size(64)


def test_refused() -> None:
    with pytest.raises(mirstack.MirError, match="LSTM: there is no activation Foo"):
        inputs = layer("LSTM")
        mirstack.from_onnx(model_of("LSTM", inputs, outputs=3, hidden_size=5, activations=["Foo", "Tanh", "Tanh"]))
