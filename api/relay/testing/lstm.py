"""Long short-term memory, its iterations one after the other.

Source: Hochreiter and Schmidhuber, Long Short-Term Memory (1997).
"""

from __future__ import annotations

from ....support.public_names import public_names
from ...ir.module import IRModule
from ...nd import NDArray
from ..expr import Function, Let, RelayExpr, Tuple, TupleGetItem, Var
from ..op import find
from ..ty import TensorType
from .init import create_workload
from .layers import nn


def lstm_cell(num_hidden: int, batch_size: int = 1, dtype: str = "float32", name: str = "") -> Function:
    """Returns one iteration: input, hidden, cell, weights → (hidden, (hidden, cell))."""
    kind = TensorType((batch_size, num_hidden), dtype)
    gates = TensorType((4 * num_hidden, num_hidden), dtype)
    biases = TensorType((4 * num_hidden,), dtype)
    inputs, hidden, cell = Var("inputs", kind), Var("hidden", kind), Var("cell", kind)
    i2h_weight, i2h_bias = Var("i2h_weight", gates), Var("i2h_bias", biases)
    h2h_weight, h2h_bias = Var("h2h_weight", gates), Var("h2h_bias", biases)
    from_input = nn().bias_add(nn().dense(inputs, i2h_weight, units=4 * num_hidden), i2h_bias, axis=-1)
    from_state = nn().bias_add(nn().dense(hidden, h2h_weight, units=4 * num_hidden), h2h_bias, axis=-1)
    sigmoid, tanh = find("sigmoid"), find("tanh")
    parts = find("split")(from_input + from_state, indices_or_sections=4, axis=1)
    new_cell = sigmoid(parts[1]) * cell + sigmoid(parts[0]) * tanh(parts[2])
    new_hidden = sigmoid(parts[3]) * tanh(new_cell)
    params = [inputs, hidden, cell, i2h_weight, i2h_bias, h2h_weight, h2h_bias]
    return Function(params, Tuple([new_hidden, Tuple([new_hidden, new_cell])]))


def get_net(iterations: int, num_hidden: int, batch_size: int = 1, dtype: str = "float32") -> Function:
    """Returns so many iterations on the same input, from states of zeros. () → (N,num_hidden)"""
    kind = TensorType((batch_size, num_hidden), dtype)
    cell = lstm_cell(num_hidden, batch_size, dtype, "lstm")
    step = Var("lstm")
    zeros = find("zeros")((batch_size, num_hidden), dtype)
    hidden, state = zeros, zeros
    data = Var("data", kind)
    weights = [Var(f"lstm_{name}", p.type_annotation) for name, p in zip(_WEIGHTS, cell.params[3:], strict=True)]
    value: RelayExpr = zeros
    for _ in range(iterations):
        called = step(data, hidden, state, *weights)
        value = TupleGetItem(called, 0)
        states = TupleGetItem(called, 1)
        hidden, state = TupleGetItem(states, 0), TupleGetItem(states, 1)
    return Function([data, *weights], Let(step, cell, value))


_WEIGHTS = ("i2h_weight", "i2h_bias", "h2h_weight", "h2h_bias")


def get_workload(
    iterations: int, num_hidden: int, batch_size: int = 1, dtype: str = "float32"
) -> tuple[IRModule, dict[str, NDArray]]:
    """Returns the iterations as a module, and weights for it."""
    return create_workload(get_net(iterations, num_hidden, batch_size, dtype))


__all__ = ["get_net", "get_workload", "lstm_cell"]


__dir__ = public_names(__name__)
