"""`relay.testing`'s networks: types of results, numbers of weights, one network run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mirstack import relay
from mirstack.api.relay import testing


@pytest.mark.parametrize(
    ("name", "arguments", "shape", "weights"),
    [
        ("resnet", {}, (1, 1000), 11.7),
        ("resnet", {"num_layers": 50, "layout": "NHWC", "image_shape": (3, 64, 64)}, (1, 1000), 25.6),
        ("resnet", {"num_layers": 20, "image_shape": (3, 28, 28), "num_classes": 10}, (1, 10), 0.27),
        ("resnet_3d", {"image_shape": (3, 8, 64, 64)}, (1, 1000), 33.7),
        ("mobilenet", {"layout": "NHWC"}, (1, 1000), 4.25),
        ("squeezenet", {"version": "1.1"}, (1, 1000), 1.24),
        ("densenet", {"image_shape": (3, 64, 64)}, (4, 1000), 8.06),
        ("inception_v3", {}, (1, 1000), 23.9),
        ("dcgan", {"batch_size": 2, "layout": "NHWC"}, (2, 64, 64, 3), 12.66),
        ("dqn", {"batch_size": 1}, (1, 18), 1.69),
    ],
)
def test_results_and_weights(name: str, arguments: dict[str, Any], shape: tuple[int, ...], weights: float) -> None:
    network: Any = getattr(testing, name)
    # Weights are as many whatever their numbers are, which need not be drawn.
    module, params = testing.create_workload(_net(network, arguments), initializer=lambda name, array: None)
    assert module["main"].body.checked_type.concrete_shape == shape
    assert sum(param.numpy().size for param in params.values()) / 1e6 == pytest.approx(weights, rel=0.02)


def _net(network: Any, arguments: dict[str, Any]) -> relay.Function:
    found: list[relay.Function] = []
    # `get_workload` draws the weights of the network that it makes; the test takes the network alone.
    network.create_workload, kept = found.append, network.create_workload
    try:
        network.get_workload(**arguments)
    finally:
        network.create_workload = kept
    return found[0]


def test_lstm_is_what_its_equations_say() -> None:
    module, params = testing.lstm.get_workload(2, 3)
    rng = np.random.default_rng(0)
    values = {name: rng.standard_normal(param.shape).astype("float32") for name, param in params.items()}
    data = rng.standard_normal((1, 3)).astype("float32")
    found = relay.create_executor("debug", mod=module).evaluate()(data, *values.values()).numpy()

    def sigmoid(value: Any) -> Any:
        return 1 / (1 + np.exp(-value))

    hidden = cell = np.zeros((1, 3), "float32")
    for _ in range(2):
        gates = data @ values["lstm_i2h_weight"].T + values["lstm_i2h_bias"]
        gates = gates + hidden @ values["lstm_h2h_weight"].T + values["lstm_h2h_bias"]
        into, forget, new, out = np.split(gates, 4, axis=1)
        cell = sigmoid(forget) * cell + sigmoid(into) * np.tanh(new)
        hidden = sigmoid(out) * np.tanh(cell)
    np.testing.assert_allclose(found, hidden, rtol=1e-5)


def test_networks_that_there_are_not() -> None:
    with pytest.raises(ValueError, match="there is no residual network of 17 layers"):
        testing.resnet.get_workload(num_layers=17)
    with pytest.raises(ValueError, match="there are networks of 11, 13, 16, 19 layers, not of 12"):
        testing.vgg.get_workload(1, num_layers=12)
    with pytest.raises(ValueError, match="there are networks of 121, 161, 169, 201 layers"):
        testing.densenet.get_workload(120)
    with pytest.raises(ValueError, match=r"there are the versions 1\.0, 1\.1 of squeezenet"):
        testing.squeezenet.get_workload(version="2")
    with pytest.raises(ValueError, match="the generator makes images of 64 by 64"):
        testing.dcgan.get_workload(1, oshape=(3, 32, 32))
