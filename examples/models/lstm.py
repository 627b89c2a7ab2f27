"""An LSTM (Hochreiter and Schmidhuber, 1997) that processes its sequence by recursion over the steps.

The cell is that of TVM's `relay.testing.lstm`, which unrolls the sequence; here it is compiled once.
"""

from __future__ import annotations

from dataclasses import dataclass

from .builder import Function, Model, tensor
from .layers import dense


@dataclass(frozen=True)
class LSTM:
    """A sequence of vectors to the last hidden and cell state."""

    batch: int = 1
    sequence: int = 32
    inputs: int = 128
    hidden: int = 256

    def build(self, model: Model) -> None:
        """Adds `@lstm`, one step and the following ones, and `@main`.

        @main: sequence (sequence, batch, inputs) → two of (batch, hidden)
        """
        data, state = tensor(self.sequence, self.batch, self.inputs), tensor(self.batch, self.hidden)
        pair = f"({state}, {state})"
        params = {"step": tensor(dtype="int32"), "data": data, "hidden": state, "cell": state}
        f = model.function("lstm", params, pair)
        more = f.op("less", "%step", str(self.sequence))
        f.branch(more, lambda: self._step(f), lambda: "(%hidden, %cell)")
        main = model.function("main", {"data": data}, pair)
        zeros = main.op("zeros", shape=[self.batch, self.hidden], dtype="float32")
        main.result(main.let(f"@lstm(0, %data, {zeros}, {zeros})"))

    def _step(self, f: Function) -> str:
        x = f.op("take", "%data", "%step", axis=0)
        i2h = dense(f, x, "lstm_i2h", self.inputs, 4 * self.hidden)
        h2h = dense(f, "%hidden", "lstm_h2h", self.hidden, 4 * self.hidden)
        gates = f.op("split", f.op("add", i2h, h2h), indices_or_sections=4, axis=1)
        in_gate = f.op("sigmoid", f.let(f"{gates}.0"))
        forget_gate = f.op("sigmoid", f.let(f"{gates}.1"))
        in_transform = f.op("tanh", f.let(f"{gates}.2"))
        out_gate = f.op("sigmoid", f.let(f"{gates}.3"))
        kept, added = f.op("multiply", forget_gate, "%cell"), f.op("multiply", in_gate, in_transform)
        cell = f.op("add", kept, added)
        hidden = f.op("multiply", out_gate, f.op("tanh", cell))
        return f.let(f"@lstm({f.op('add', '%step', '1')}, %data, {hidden}, {cell})")
