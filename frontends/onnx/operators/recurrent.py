"""Converts ONNX operators: recurrent layers, and attention by a recurrent state.

LSTM(x (t,b,i), w, r, bias)     →  %gates = add(nn.dense(%x, %w), %bias)          of all steps at once
                                   a loop over t (`scan`) of the rest: add(%gates[t], nn.dense(%h, %r)), …
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import inf, sqrt
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
from xdsl.ir import SSAValue

from ....support.text import counted, did_you_mean
from ...common.scan import scan
from ..node import Node
from ..registry import operator
from .attention import split_heads
from .matrices import matmul, rows_times
from .neural_network import cast_to

if TYPE_CHECKING:
    from ...common.graph_builder import GraphBuilder
    from ...common.scan import Scanned, Step, Values
    from ..values import Value

Activation: TypeAlias = "Callable[[GraphBuilder, SSAValue], SSAValue]"


def _plain(name: str) -> Callable[[float, float], Activation]:
    return lambda alpha, beta: lambda b, x: b.call(name, x)


def _number(b: GraphBuilder, value: float, x: SSAValue) -> SSAValue:
    return b.constant(value, b.dtype(x))


def _affine(alpha: float, beta: float) -> Activation:
    return lambda b, x: b.call("add", b.call("multiply", x, _number(b, alpha, x)), _number(b, beta, x))


def _thresholded(alpha: float, beta: float) -> Activation:
    return lambda b, x: b.call("where", b.call("greater_equal", x, _number(b, alpha, x)), x, _number(b, 0, x))


def _scaled_tanh(alpha: float, beta: float) -> Activation:
    return lambda b, x: b.call(
        "multiply", b.call("tanh", b.call("multiply", x, _number(b, beta, x))), _number(b, alpha, x)
    )


def _hard_sigmoid(alpha: float, beta: float) -> Activation:
    return lambda b, x: b.call("clip", _affine(alpha, beta)(b, x), a_min=0.0, a_max=1.0)


def _elu(alpha: float, beta: float) -> Activation:
    def apply(b: GraphBuilder, x: SSAValue) -> SSAValue:
        one, zero = _number(b, 1, x), _number(b, 0, x)
        below = b.call("subtract", b.call("exp", b.call("minimum", x, zero)), one)
        return b.call("where", b.call("less", x, zero), b.call("multiply", below, _number(b, alpha, x)), x)

    return apply


def _softsign(alpha: float, beta: float) -> Activation:
    return lambda b, x: b.call("divide", x, b.call("add", b.call("abs", x), _number(b, 1, x)))


def _softplus(alpha: float, beta: float) -> Activation:
    def apply(b: GraphBuilder, x: SSAValue) -> SSAValue:
        small = b.call("exp", b.call("negative", b.call("abs", x)))
        rest = b.call("log", b.call("add", small, _number(b, 1, x)))
        return b.call("add", b.call("maximum", x, _number(b, 0, x)), rest)

    return apply


ACTIVATIONS: dict[str, tuple[Callable[[float, float], Activation], tuple[float, ...]]] = {
    "relu": (_plain("nn.relu"), ()),
    "tanh": (_plain("tanh"), ()),
    "sigmoid": (_plain("sigmoid"), ()),
    "affine": (_affine, (1.0, 0.0)),
    "leakyrelu": (lambda alpha, beta: lambda b, x: b.call("nn.leaky_relu", x, alpha=alpha), (0.01,)),
    "thresholdedrelu": (_thresholded, (1.0,)),
    "scaledtanh": (_scaled_tanh, (1.0, 1.0)),
    "hardsigmoid": (_hard_sigmoid, (0.2, 0.5)),
    "elu": (_elu, (1.0,)),
    "softsign": (_softsign, ()),
    "softplus": (_softplus, ()),
}
"""Activations by ONNX' names in lower case, and the defaults of their alpha and beta."""


class _Layer:
    """Converts a recurrent layer: its attributes and directions.

    Its data is in the form (steps, batch, size).
    """

    def __init__(self, node: Node, gates: int, default: Sequence[str]):
        self.node, self.b, self.gates = node, node.builder, gates
        b = self.b
        self.by_batch = bool(node.attr("layout", 0))
        self.x = self._steps_first(node[0])
        direction = node.choice("direction", "forward", ("forward", "reverse", "bidirectional"))
        self.reversed = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[direction]
        hidden = b.extents(node[2])[2]
        if not isinstance(hidden, int):
            raise node.refuse("the hidden size must be known, not open")
        self.hidden = hidden
        clip = node.attr("clip")
        self.clip = inf if clip is None else float(clip)
        self.activations = self._activations(default)
        self.lengths = node.tensor(4)

    def _steps_first(self, value: SSAValue) -> SSAValue:
        return self.b.call("transpose", value, axes=[1, 0, 2]) if self.by_batch else value

    def _activations(self, default: Sequence[str]) -> list[list[Activation]]:
        """Returns the activations of each direction."""
        node, directions = self.node, len(self.reversed)
        written = node.attr("activations")
        names = [str(name) for name in written] if written else list(default) * directions
        if node.op_type == "RNN" and len(names) > directions:
            names = names[:directions]
        if len(names) != len(default) * directions:
            raise node.refuse(f"{counted(len(names), 'activation')}; there must be {len(default) * directions}")
        alphas, betas = iter(node.attr("activation_alpha") or ()), iter(node.attr("activation_beta") or ())
        found = [self._activation(name, alphas, betas) for name in names]
        return [found[at : at + len(default)] for at in range(0, len(found), len(default))]

    def _activation(self, name: str, alphas: Iterator[float], betas: Iterator[float]) -> Activation:
        entry = ACTIVATIONS.get(name.lower())
        if entry is None:
            raise self.node.refuse(f"there is no activation {name}{did_you_mean(name.lower(), ACTIVATIONS)}")
        make, defaults = entry
        alpha = float(next(alphas, defaults[0])) if defaults else 0.0
        beta = float(next(betas, defaults[1])) if len(defaults) > 1 else 0.0
        activation = make(alpha, beta)
        if self.clip == inf:
            return activation
        limit = self.clip
        return lambda b, x: activation(b, b.call("clip", x, a_min=-limit, a_max=limit))

    def part(self, index: int, direction: int) -> SSAValue | None:
        """Returns a direction's part of an input; None where it is left out."""
        value, b = self.node.tensor(index), self.b
        if value is None:
            return None
        array = b.array(value)
        # A weight that is constant here is packed once for all steps.
        if array is not None:
            return b.array_constant(array[direction])
        return b.call("take", value, b.integers(direction), axis=0)

    def required(self, index: int, direction: int) -> SSAValue:
        """Returns a direction's part of an input that must be there."""
        found = self.part(index, direction)
        if found is None:
            raise self.node.refuse(f"input {index} is missing")
        return found

    def initial(self, index: int, direction: int) -> SSAValue:
        """Returns the first state of a direction, (batch, hidden): zeros unless it is given."""
        given, b = self.node.tensor(index), self.b
        if given is not None:
            return b.call("take", self._steps_first(given), b.integers(direction), axis=0)
        zero = b.constant(np.zeros((1, 1)), b.dtype(self.x))
        return b.broadcast_to(zero, b.sizes_tensor([self.batch(), self.hidden]))

    def batch(self) -> int | SSAValue:
        """Returns the size of the batch."""
        size = self.b.extents(self.x)[1]
        return size if isinstance(size, int) else self.b.size(self.x, 1)

    def run(self, step: Callable[[int], Step], inputs: Callable[[int], tuple[Values, Values, Values]]) -> list[Value]:
        """Runs all directions; returns ONNX' outputs: the results of all steps, and the last states."""
        b = self.b
        found: list[Scanned] = []
        for direction, is_reversed in enumerate(self.reversed):
            sequences, states, invariants = inputs(direction)
            if is_reversed:
                sequences = [self._backwards(value) for value in sequences]
            inner = step(direction)
            if self.lengths is not None:
                sequences, inner = [*sequences, self._valid()], _masked(inner)
            if not self.node.outputs[0]:
                inner = _without_results(inner)
            done = scan(b, inner, sequences, states, invariants)
            if is_reversed:
                results = [self._backwards(value) for value in done.results]
                done = type(done)(results, done.states)
            found.append(done)
        outputs: list[Value] = []
        if self.node.outputs[0]:
            y = b.call("stack", b.tuple([each.results[0] for each in found]), axis=1)
            outputs.append(b.call("transpose", y, axes=[2, 0, 1, 3]) if self.by_batch else y)
        else:
            outputs.append(found[0].states[0])
        for states in zip(*(each.states for each in found), strict=True):
            outputs.append(b.call("stack", b.tuple(list(states)), axis=1 if self.by_batch else 0))
        return outputs

    def _backwards(self, value: SSAValue) -> SSAValue:
        """Reverses the steps of each sequence: all, or as many as it has."""
        if self.lengths is None:
            return self.b.call("reverse", value, axis=0)
        return self.b.call("reverse_sequence", value, self.lengths, seq_axis=0, batch_axis=1)

    def _valid(self) -> SSAValue:
        """Returns whether a step is one of each sequence: (steps, batch, 1)."""
        b, lengths = self.b, self.lengths
        assert lengths is not None
        count = b.size(self.x, 0, "int32")
        steps = b.call("arange", b.constant(0, "int32"), count, b.constant(1, "int32"), dtype="int32")
        steps = b.call("expand_dims", steps, axis=1, num_newaxis=2)
        return b.call("less", steps, b.call("expand_dims", cast_to(self.node, lengths, "int32"), axis=1))

    def products(self, direction: int, bias: SSAValue | None, product: Product | None = None) -> SSAValue:
        """Returns the inputs' products with W for all steps, and the bias: (steps, batch, gates * hidden)."""
        b, weight = self.b, self.required(1, direction)
        if product is None:
            result = rows_times(b, self.x, _transposed(b, weight))
        else:
            result = product(b, self.x, weight, direction, is_recurrent=False)
        return result if bias is None else b.call("add", result, bias)


class Product(Protocol):
    """Creates the product of data and a layer's weight: W, or R of the states of a step."""

    def __call__(
        self, b: GraphBuilder, x: SSAValue, weight: SSAValue, direction: int, *, is_recurrent: bool
    ) -> SSAValue: ...


def _transposed(b: GraphBuilder, weight: SSAValue) -> SSAValue:
    array = b.array(weight)
    return b.call("transpose", weight, axes=[1, 0]) if array is None else b.array_constant(array.T)


def _masked(step: Step) -> Step:
    """Returns a step that keeps the states of sequences that have ended; their results are zeros."""

    def masked(b: GraphBuilder, elements: Values, states: Values, invariants: Values) -> tuple[Values, Values]:
        valid = elements[-1]
        new, results = step(b, elements[:-1], states, invariants)
        kept = [b.call("where", valid, after, before) for after, before in zip(new, states, strict=True)]
        return kept, [b.call("where", valid, each, _number(b, 0, each)) for each in results]

    return masked


def _without_results(step: Step) -> Step:
    """Returns a step of which only the states are used."""
    return lambda b, elements, states, invariants: (step(b, elements, states, invariants)[0], ())


def _halves(b: GraphBuilder, bias: SSAValue | None) -> tuple[SSAValue, SSAValue] | None:
    if bias is None:
        return None
    parts = b.tuple_parts(b.call("split", bias, indices_or_sections=2, axis=0))
    return parts[0], parts[1]


def _split(b: GraphBuilder, value: SSAValue, parts: int) -> list[SSAValue]:
    """Splits along the last axis into equal parts."""
    if parts == 1:
        return [value]
    return b.tuple_parts(b.call("split", value, indices_or_sections=parts, axis=b.rank(value) - 1))


def _plus(b: GraphBuilder, x: SSAValue, y: SSAValue) -> SSAValue:
    return b.call("add", x, y)


def _times(b: GraphBuilder, x: SSAValue, y: SSAValue) -> SSAValue:
    return b.call("multiply", x, y)


@operator("RNN", since=7)
def rnn(node: Node) -> list[Value]:
    """Lowers `RNN`: h' = f(x·Wᵀ + h·Rᵀ + bias)."""
    layer = _Layer(node, 1, ["Tanh"])

    def inputs(direction: int) -> tuple[Values, Values, Values]:
        halves = _halves(layer.b, layer.part(3, direction))
        bias = None if halves is None else _plus(layer.b, *halves)
        return [layer.products(direction, bias)], [layer.initial(5, direction)], [layer.required(2, direction)]

    def step(direction: int) -> Step:
        (activation,) = layer.activations[direction]

        def once(b: GraphBuilder, elements: Values, states: Values, invariants: Values) -> tuple[Values, Values]:
            h = activation(b, _plus(b, elements[0], b.call("nn.dense", states[0], invariants[0])))
            return [h], [h]

        return once

    return layer.run(step, inputs)


@operator("GRU", since=7)
def gru(node: Node) -> list[Value]:
    """Lowers `GRU`: update and reset gates z and r, h' = (1 - z) * g(…) + z * h.

    With `linear_before_reset` r multiplies h·Rᵀ + bias, otherwise h.
    """
    layer = _Layer(node, 3, ["Sigmoid", "Tanh"])
    late = bool(node.attr("linear_before_reset", 0))
    hidden = layer.hidden

    def inputs(direction: int) -> tuple[Values, Values, Values]:
        b, halves = layer.b, _halves(layer.b, layer.part(3, direction))
        recurrent = layer.required(2, direction)
        invariants = (
            [recurrent] if late else b.tuple_parts(b.call("split", recurrent, indices_or_sections=[2 * hidden], axis=0))
        )
        bias = None
        if halves is not None and late:
            gates, rest = (
                b.tuple_parts(b.call("split", half, indices_or_sections=[2 * hidden], axis=0)) for half in halves
            )
            bias = b.call("concatenate", b.tuple([_plus(b, gates[0], rest[0]), gates[1]]), axis=0)
            invariants = [*invariants, rest[1]]
        elif halves is not None:
            bias = _plus(b, *halves)
        return [layer.products(direction, bias)], [layer.initial(5, direction)], invariants

    def step(direction: int) -> Step:
        f, g = layer.activations[direction]

        def once(b: GraphBuilder, elements: Values, states: Values, invariants: Values) -> tuple[Values, Values]:
            (h,) = states
            x = _split(b, elements[0], 3)
            if late:
                parts = _split(b, b.call("nn.dense", h, invariants[0]), 3)
                z, r = (f(b, _plus(b, x[k], parts[k])) for k in (0, 1))
                inner = parts[2] if len(invariants) == 1 else _plus(b, parts[2], invariants[1])
                candidate = g(b, _plus(b, x[2], _times(b, r, inner)))
            else:
                parts = _split(b, b.call("nn.dense", h, invariants[0]), 2)
                z, r = (f(b, _plus(b, x[k], parts[k])) for k in (0, 1))
                candidate = g(b, _plus(b, x[2], b.call("nn.dense", _times(b, r, h), invariants[1])))
            new = _plus(b, _times(b, b.call("subtract", _number(b, 1, z), z), candidate), _times(b, z, h))
            return [new], [new]

        return once

    return layer.run(step, inputs)


@operator("LSTM", since=7)
def lstm(node: Node) -> list[Value]:
    """Lowers `LSTM`: gates i, o, f and c, peepholes P, and f = 1 - i with `input_forget`."""
    return lstm_layer(node)


def lstm_layer(node: Node, product: Product | None = None) -> list[Value]:
    """Returns the outputs of an LSTM whose products with weights `product` creates.

    By default they are `nn.dense`.
    """
    layer = _Layer(node, 4, ["Sigmoid", "Tanh", "Tanh"])
    joined = bool(node.attr("input_forget", 0))

    def inputs(direction: int) -> tuple[Values, Values, Values]:
        b, halves = layer.b, _halves(layer.b, layer.part(3, direction))
        bias = None if halves is None else _plus(b, *halves)
        peepholes = layer.part(7, direction)
        invariants = [layer.required(2, direction)]
        if peepholes is not None:
            invariants += b.tuple_parts(b.call("split", peepholes, indices_or_sections=3, axis=0))
        states = [layer.initial(5, direction), layer.initial(6, direction)]
        return [layer.products(direction, bias, product)], states, invariants

    def step(direction: int) -> Step:
        f, g, h = layer.activations[direction]

        def once(b: GraphBuilder, elements: Values, states: Values, invariants: Values) -> tuple[Values, Values]:
            before, cell = states
            if product is None:
                recurrent = b.call("nn.dense", before, invariants[0])
            else:
                recurrent = product(b, before, invariants[0], direction, is_recurrent=True)
            gates = _plus(b, elements[0], recurrent)
            i, o, forget, c = _split(b, gates, 4)
            peepholes = invariants[1:]

            def seen(gate: SSAValue, index: int, state: SSAValue) -> SSAValue:
                return _plus(b, gate, _times(b, peepholes[index], state)) if peepholes else gate

            i = f(b, seen(i, 0, cell))
            forget = b.call("subtract", _number(b, 1, i), i) if joined else f(b, seen(forget, 2, cell))
            new = _plus(b, _times(b, forget, cell), _times(b, i, g(b, c)))
            hidden = _times(b, f(b, seen(o, 1, new)), h(b, new))
            return [hidden, new], [hidden]

        return once

    return layer.run(step, inputs)


@operator("LinearAttention", since=27)
def linear_attention(node: Node) -> list[Value]:
    """Lowers `LinearAttention` to a loop over the tokens.

    The state (batch, heads, keys, values) is float32: s' = exp(decay) * s + k ⊗ v, and y = scale * q · s'; v is beta * (v - s · k) by the delta rules.
    """
    b, dtype = node.builder, node.dtype(0)
    heads, groups = int(node.attr("q_num_heads")), int(node.attr("kv_num_heads"))
    if groups < 1 or heads % groups:
        raise node.refuse(f"{heads} heads of queries cannot share {groups} heads of keys")
    rule = node.choice("update_rule", "gated_delta", ("linear", "gated", "delta", "gated_delta"))
    is_gated, is_delta = rule in ("gated", "gated_delta"), rule in ("delta", "gated_delta")

    def tokens(index: int, count: int) -> SSAValue:
        """Returns an input as (tokens, batch, heads, size), float32."""
        split = split_heads(b, cast_to(node, node[index], "float32"), count)
        return b.call("transpose", split, axes=[2, 0, 1, 3])

    query, key, value = tokens(0, heads), tokens(1, groups), tokens(2, groups)
    keys, values = b.extents(query)[3], b.extents(value)[3]
    if not isinstance(keys, int) or not isinstance(values, int):
        raise node.refuse("the size of heads must be known, not open")
    sequences = [query, key, value]
    if is_gated:
        sequences.append(b.call("exp", tokens(4, groups)))
    if is_delta:
        shared = b.extents(node[5])[2] == 1
        sequences.append(tokens(5, 1 if shared else groups))
    scale = float(node.attr("scale", 0.0)) or 1 / sqrt(keys)
    past = node.tensor(3)
    if past is None:
        zero = b.constant(np.zeros((1, 1, 1, 1)), "float32")
        size = b.extents(node[0])[0]
        batch = size if isinstance(size, int) else b.size(node[0], 0)
        state = b.broadcast_to(zero, b.sizes_tensor([batch, groups, keys, values]))
    else:
        state = cast_to(node, past, "float32")

    def once(b: GraphBuilder, elements: Values, states: Values, invariants: Values) -> tuple[Values, Values]:
        q, k, v, *rest = elements
        (s,) = states
        column = b.call("expand_dims", k, axis=3)
        if is_gated:
            s = _times(b, s, b.call("expand_dims", rest[0], axis=3))
        if is_delta:
            known = b.call("sum", _times(b, s, column), axis=[2])
            v = _times(b, rest[-1], b.call("subtract", v, known))
        s = _plus(b, s, _times(b, column, b.call("expand_dims", v, axis=2)))
        read = s if heads == groups else b.call("repeat", s, repeats=heads // groups, axis=1)
        y = matmul(b, b.call("expand_dims", q, axis=2), read)
        return [s], [_times(b, b.call("squeeze", y, axis=[2]), _number(b, scale, y))]

    done = scan(b, once, sequences, [state])
    y = b.call("transpose", done.results[0], axes=[1, 0, 2, 3])
    y = cast_to(node, b.call("reshape", y, newshape=[0, 0, -1]), dtype)
    return [y, cast_to(node, done.states[0], dtype if past is None else node.dtype(3))]
