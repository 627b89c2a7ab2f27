"""Draws ONNX models in ONNX' own text: operators of many kinds, opsets, dtypes, and open sizes.

    <ir_version: 8, opset_import: ["" : 13]>
    g (float[N,3,5] x0) => (float[?,?] y0)
       <float[3] w0 = {0.25, -1, 2}>
    {
       v0 = Relu (x0)
       v1 = ReduceSum <keepdims = 0> (v0, i0)
    }

A value knows its dtype, its shape and whether its floats are *exact*: multiples of 1/4 of small magnitude, on which all runtimes agree to
the bit. Operators that jump (rounding, comparisons, positions of maxima) are drawn on exact values only.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

NAMES = {
    "float32": "float", "float64": "double", "float16": "float16", "int32": "int32", "int64": "int64", "int8": "int8",
    "uint8": "uint8", "bool": "bool",
}  # fmt: skip
"""Dtypes by their names in ONNX' text."""

FLOATS = ("float32", "float32", "float32", "float64")
OPSETS = (7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22)
MOST_ELEMENTS = 600


@dataclass(frozen=True)
class GraphValue:
    """A value of the graph: its name, dtype and shape; `open` dimensions are known only at run time."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    exact: bool = True
    magnitude: float = 4.0
    """An upper bound of exact values, so that sums stay exact."""

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def is_float(self) -> bool:
        """Returns whether the elements are floats."""
        return self.dtype.startswith("float")


class NoUse(Exception):
    """Raised by an operator that finds no values that fit it."""


class ModelWriter:
    """Draws one model. `text()` is the model, `inputs` its inputs."""

    def __init__(self, rng: random.Random):
        self.rng = rng
        self.opset = rng.choice(OPSETS)
        self.values: list[GraphValue] = []
        self.inputs: dict[str, np.ndarray] = {}
        self.drawn: Counter[str] = Counter()
        self._heads: list[str] = []
        self._weights: list[str] = []
        self._lines: list[str] = []
        self._named: dict[int, str] = {}
        for _ in range(rng.randint(1, 3)):
            self._input()
        wanted, tries = rng.randint(1, 12), 0
        while len(self._lines) < wanted and tries < 60:
            tries += 1
            name = rng.choice(tuple(OPERATORS))
            try:
                made = OPERATORS[name](self)
            except NoUse:
                continue
            self.values += made
            self.drawn[name] += 1

    # Values --------------------------------------------------------------------------------------------------------

    def array(self, dtype: str, shape: Sequence[int]) -> np.ndarray:
        """Draws elements: multiples of 1/4 from -4 to 4, small integers, truths."""
        count = prod(shape)
        if dtype == "bool":
            numbers = [self.rng.random() < 0.5 for _ in range(count)]
        elif dtype.startswith("float"):
            numbers = [self.rng.randint(-16, 16) / 4 for _ in range(count)]
        else:
            numbers = [self.rng.randint(0 if dtype[0] == "u" else -5, 9) for _ in range(count)]
        return np.array(numbers, dtype).reshape(shape)

    def shape(self, rank: int | None = None) -> tuple[int, ...]:
        """Draws a shape."""
        rank = self.rng.choice((0, 1, 2, 2, 3, 3, 4, 4)) if rank is None else rank
        return tuple(self.rng.choice((1, 2, 3, 4, 5, 7)) for _ in range(rank))

    def _input(self) -> None:
        dtype = self.rng.choice((*FLOATS, "float32", "int64", "int32", "bool", "float16"))
        name, shape = f"x{len(self.inputs)}", self.shape()
        if dtype == "float32" and self.rng.random() < 0.3:
            # An image: batch, channels, height, width.
            shape = (self.rng.randint(1, 2), self.rng.choice((3, 4, 8)), *self.shape(2))
        # Equal names are equal sizes: a name belongs to one size.
        dims = [self._named.setdefault(size, f"N{size}") if self.rng.random() < 0.35 else str(size) for size in shape]
        self.inputs[name] = self.array(dtype, shape)
        self._heads.append(f"{self._type(dtype, dims)} {name}")
        self.values.append(GraphValue(name, dtype, shape))

    def _type(self, dtype: str, dims: Sequence[str]) -> str:
        return f"{NAMES[dtype]}[{','.join(dims)}]" if dims else f"{NAMES[dtype]}"

    def pick(self, accepts: Callable[[GraphValue], bool] = lambda value: True) -> GraphValue:
        """Draws a value that is accepted, late ones more often. Raises NoUse."""
        fitting = [value for value in self.values if accepts(value)]
        if not fitting:
            raise NoUse
        return fitting[-1] if self.rng.random() < 0.4 else self.rng.choice(fitting)

    def float(self, least: int = 0, most: int = 9, exact: bool = False) -> GraphValue:
        """Draws a value of float32 or float64 with a rank in this range."""
        return self.pick(
            lambda value: (
                value.dtype in ("float32", "float64") and least <= value.rank <= most and (value.exact or not exact)
            )
        )

    def weight(self, dtype: str, shape: Sequence[int], array: np.ndarray | None = None) -> GraphValue:
        """Creates an initializer."""
        array = self.array(dtype, shape) if array is None else array
        name = f"w{len(self._weights)}"
        numbers = ", ".join(
            str(int(each)) if array.dtype.kind in "iub" else repr(float(each)) for each in array.reshape(-1)
        )
        self._weights.append(f"{self._type(dtype, [str(size) for size in shape])} {name} = {{{numbers}}}")
        return GraphValue(name, dtype, tuple(shape))

    def ints(self, numbers: Sequence[int]) -> GraphValue:
        """Creates an initializer of int64."""
        return self.weight("int64", (len(numbers),), np.array(numbers, "int64"))

    def node(self, op: str, inputs: Sequence[GraphValue | None], outputs: int = 1, **attributes: object) -> list[str]:
        """Writes a node and returns the names of its outputs."""
        names = [f"v{len(self._lines)}_{place}" if outputs > 1 else f"v{len(self._lines)}" for place in range(outputs)]
        given = ", ".join(f"{name} = {_attribute(value)}" for name, value in attributes.items() if value is not None)
        written = ", ".join("" if each is None else each.name for each in inputs)
        self._lines.append(f"{', '.join(names)} = {op} {f'<{given}> ' if given else ''}({written})")
        return names

    def result(
        self, op: str, inputs: Sequence[GraphValue | None], dtype: str, shape: Sequence[int], *, exact: bool = False,
        magnitude: float = 4.0, **attributes: object,
    ) -> list[GraphValue]:  # fmt: skip
        """Writes a node of one output, of this type. Raises NoUse for a result that is too large."""
        if prod(shape) > MOST_ELEMENTS or prod(shape) == 0:
            raise NoUse
        exact = exact and magnitude < 2000
        name = self.node(op, inputs, 1, **attributes)[0]
        return [GraphValue(name, dtype, tuple(shape), exact, magnitude)]

    # The model -----------------------------------------------------------------------------------------------------

    def text(self) -> str:
        """Returns the model; the last values are its outputs."""
        computed = [value for value in self.values if value.name[0] == "v"] or self.values[-1:]
        outputs = computed[-3:]
        lines = list(self._lines)
        results: list[str] = []
        for place, value in enumerate(outputs):
            lines.append(f"y{place} = Identity ({value.name})")
            results.append(f"{self._type(value.dtype, ['?'] * value.rank)} y{place}")
        weights = f"\n   <{', '.join(self._weights)}>" if self._weights else ""
        body = "\n".join(f"   {line}" for line in lines)
        return (
            f'<ir_version: 8, opset_import: ["" : {self.opset}, "com.microsoft" : 1]>\n'
            f"g ({', '.join(self._heads)}) => ({', '.join(results)}){weights}\n{{\n{body}\n}}\n"
        )


class GraphText(str):
    """The text of a graph as an attribute."""

    __slots__ = ()


def _attribute(value: object) -> str:
    if isinstance(value, GraphText):
        return value
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_attribute(each) for each in value)}]"  # pyright: ignore[reportUnknownVariableType]
    return repr(float(value)) if isinstance(value, float) else str(value)


Operator = Callable[[ModelWriter], "list[GraphValue]"]
OPERATORS: dict[str, Operator] = {}


def define(*names: str, since: int = 1) -> Callable[[Callable[[ModelWriter, str], list[GraphValue]]], None]:
    """Registers a function that draws nodes of these operators, in models of opset `since` and later."""

    def drawn(w: ModelWriter, name: str, draw: Callable[[ModelWriter, str], list[GraphValue]]) -> list[GraphValue]:
        if w.opset < since:
            raise NoUse
        return draw(w, name)

    def register(draw: Callable[[ModelWriter, str], list[GraphValue]]) -> None:
        for name in names:
            OPERATORS[name] = lambda w, name=name: drawn(w, name, draw)

    return register


# Element by element ----------------------------------------------------------------------------------------------------


@define("Relu", "Neg", "Abs")
def _exact_unary(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.float()
    return w.result(op, [x], x.dtype, x.shape, exact=x.exact, magnitude=x.magnitude)


@define(
    "Sigmoid", "Tanh", "Softplus", "Erf", "Elu", "Selu", "HardSigmoid", "LeakyRelu", "Softsign", "ThresholdedRelu", "Sin", "Cos", "Atan",
    "HardSwish", "Mish", "Celu", "Gelu", "Sqrt", "Exp", "Log", "Reciprocal",
)  # fmt: skip
def _unary(w: ModelWriter, op: str) -> list[GraphValue]:
    least = {"ThresholdedRelu": 10, "HardSwish": 14, "Mish": 18, "Celu": 12, "Gelu": 20}
    if w.opset < least.get(op, 1):
        raise NoUse
    # onnxruntime has these in float32 alone.
    only = ("Softplus", "Elu", "Selu", "HardSigmoid", "LeakyRelu", "ThresholdedRelu", "HardSwish", "Mish", "Celu", "Gelu", "Softsign", "Erf", "Sin", "Cos", "Atan")  # fmt: skip
    x = w.pick(lambda value: value.dtype == "float32" or (value.dtype == "float64" and op not in only))
    if op == "ThresholdedRelu" and not x.exact:
        raise NoUse
    if op in ("Sqrt", "Log", "Reciprocal"):
        # Away from the places where they are not defined or change without bound.
        inner = w.result("Abs", [x], x.dtype, x.shape)[0]
        inner = w.result("Add", [inner, w.weight(x.dtype, (), np.array(0.5, x.dtype))], x.dtype, x.shape)[0]
        return w.result(op, [inner], x.dtype, x.shape)
    if op == "Exp":
        x = w.result("Tanh", [x], x.dtype, x.shape)[0]
    alpha = 1.5 if op in ("Elu", "LeakyRelu", "ThresholdedRelu", "Celu") and w.rng.random() < 0.5 else None
    return w.result(op, [x], x.dtype, x.shape, alpha=alpha)


@define("Round", "Floor", "Ceil", "Sign")
def _rounding(w: ModelWriter, op: str) -> list[GraphValue]:
    if op == "Round" and w.opset < 11:
        raise NoUse
    x = w.float(exact=True)
    return w.result(op, [x], x.dtype, x.shape, exact=True, magnitude=x.magnitude + 1)


@define("Add", "Sub", "Mul", "Max", "Min", "Div", "Pow")
def _binary(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.pick(lambda value: value.dtype in ("float32", "float64", "int64", "int32"))
    y = _partner(w, x)
    if op == "Pow":
        if x.dtype != "float32":
            raise NoUse
        y = w.weight(x.dtype, (), np.array(w.rng.choice((2.0, 3.0)), x.dtype))
        return w.result(op, [x, y], x.dtype, x.shape)
    if op == "Div":
        y = w.weight(
            x.dtype,
            y.shape,
            np.array([w.rng.choice((1, 2, 4, 3)) for _ in range(prod(y.shape))], x.dtype).reshape(y.shape),
        )
        return w.result(
            op, [x, y], x.dtype, np.broadcast_shapes(x.shape, y.shape), exact=not x.is_float, magnitude=x.magnitude
        )
    if not x.is_float and op in ("Max", "Min") and w.opset < 12:
        raise NoUse
    bound = {"Mul": x.magnitude * y.magnitude * 4, "Add": x.magnitude + y.magnitude, "Sub": x.magnitude + y.magnitude}
    magnitude = bound.get(op, max(x.magnitude, y.magnitude))
    if not x.is_float and magnitude > 1e8:
        raise NoUse
    pair = [x, y] if w.rng.random() < 0.5 else [y, x]
    shape = np.broadcast_shapes(x.shape, y.shape)
    made = w.result(op, pair, x.dtype, shape, exact=x.exact and y.exact, magnitude=magnitude)
    return made if x.is_float else [GraphValue(made[0].name, x.dtype, tuple(shape), True, magnitude)]


def _partner(w: ModelWriter, x: GraphValue) -> GraphValue:
    """Draws a value that broadcasts with `x`, otherwise an initializer that does."""

    def fits(value: GraphValue) -> bool:
        try:
            return value.dtype == x.dtype and bool(np.broadcast_shapes(value.shape, x.shape) or True)
        except ValueError:
            return False

    if w.rng.random() < 0.6:
        return w.pick(fits)
    shape = tuple(size if w.rng.random() < 0.6 else 1 for size in x.shape)
    return w.weight(x.dtype, shape[w.rng.randint(0, len(shape)) :] if shape else ())


@define("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual")
def _comparison(w: ModelWriter, op: str) -> list[GraphValue]:
    if w.opset < {"Equal": 11, "LessOrEqual": 12, "GreaterOrEqual": 12}.get(op, 9):
        raise NoUse
    x = w.pick(lambda value: value.dtype in ("float32", "float64", "int64", "int32") and value.exact)
    y = _partner(w, x)
    if not y.exact:
        raise NoUse
    return w.result(op, [x, y], "bool", np.broadcast_shapes(x.shape, y.shape), exact=True)


@define("And", "Or", "Xor", "Not")
def _logical(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.pick(lambda value: value.dtype == "bool")
    others = [] if op == "Not" else [_partner(w, x)]
    shape = np.broadcast_shapes(x.shape, *(each.shape for each in others))
    return w.result(op, [x, *others], "bool", shape, exact=True)


@define("Where")
def _where(w: ModelWriter, op: str) -> list[GraphValue]:
    condition = w.pick(lambda value: value.dtype == "bool")
    x = w.pick(lambda value: value.dtype in ("float32", "int64") and value.shape == condition.shape)
    y = _partner(w, x)
    shape = np.broadcast_shapes(condition.shape, x.shape, y.shape)
    return w.result(
        op, [condition, x, y], x.dtype, shape, exact=x.exact and y.exact, magnitude=max(x.magnitude, y.magnitude)
    )


@define("Cast")
def _cast(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.pick(lambda value: value.exact and value.magnitude < 100)
    to = w.rng.choice(("float32", "float64", "int32", "int64", "float16", "bool"))
    number = {"float32": 1, "int32": 6, "int64": 7, "bool": 9, "float16": 10, "float64": 11}[to]
    return w.result(op, [x], to, x.shape, exact=True, magnitude=x.magnitude, to=number)


@define("Clip")
def _clip(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.pick(lambda value: value.dtype == "float32")
    low, high = -1.25, 2.5
    if w.opset < 11:
        return w.result(op, [x], x.dtype, x.shape, exact=x.exact, magnitude=x.magnitude, min=low, max=high)
    ends = [w.weight(x.dtype, (), np.array(each, x.dtype)) if w.rng.random() < 0.8 else None for each in (low, high)]
    return w.result(op, [x, *ends] if ends[1] else [x, ends[0]], x.dtype, x.shape, exact=x.exact, magnitude=x.magnitude)


# Reductions ------------------------------------------------------------------------------------------------------------


@define(
    "ReduceSum",
    "ReduceMean",
    "ReduceMax",
    "ReduceMin",
    "ReduceL1",
    "ReduceL2",
    "ReduceSumSquare",
    "ReduceLogSumExp",
    "ReduceProd",
)
def _reduce(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.float(1)
    axes = sorted(w.rng.sample(range(x.rank), w.rng.randint(1, x.rank)))
    keep = w.rng.random() < 0.5
    shape = [1 if axis in axes else size for axis, size in enumerate(x.shape) if keep or axis not in axes]
    count = prod(x.shape[axis] for axis in axes)
    exact = x.exact and op in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceL1")
    magnitude = x.magnitude * (count if op in ("ReduceSum", "ReduceL1") else 1)
    if op == "ReduceProd" and count > 4:
        raise NoUse
    if op == "ReduceLogSumExp":
        x = w.result("Tanh", [x], x.dtype, x.shape)[0]
    written = [axis - x.rank if w.opset >= 11 and w.rng.random() < 0.3 else axis for axis in axes]
    as_input = w.opset >= (13 if op == "ReduceSum" else 18)
    inputs = [x, w.ints(written)] if as_input else [x]
    given = {} if as_input else {"axes": written}
    return w.result(op, inputs, x.dtype, shape, exact=exact, magnitude=magnitude, keepdims=int(keep), **given)


@define("ArgMax", "ArgMin")
def _arg(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.float(1, exact=True)
    axis, keep = w.rng.randrange(x.rank), w.rng.random() < 0.5
    shape = [1 if place == axis else size for place, size in enumerate(x.shape) if keep or place != axis]
    last = int(w.rng.random() < 0.3) if w.opset >= 12 else None
    return w.result(
        op, [x], "int64", shape, exact=True, magnitude=8, axis=axis, keepdims=int(keep), select_last_index=last
    )


@define("Softmax", "LogSoftmax")
def _softmax(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.float(1)
    return w.result(op, [x], x.dtype, x.shape, axis=w.rng.randrange(x.rank))


@define("CumSum")
def _cumsum(w: ModelWriter, op: str) -> list[GraphValue]:
    if w.opset < 11:
        raise NoUse
    x = w.float(1)
    axis = w.rng.randrange(x.rank)
    place = w.weight("int64", (), np.array(axis, "int64"))
    flags = {"exclusive": w.rng.randint(0, 1), "reverse": w.rng.randint(0, 1)}
    return w.result(op, [x, place], x.dtype, x.shape, exact=x.exact, magnitude=x.magnitude * x.shape[axis], **flags)


@define("TopK")
def _topk(w: ModelWriter, op: str) -> list[GraphValue]:
    if w.opset < 10:
        raise NoUse
    x = w.pick(lambda value: value.dtype == "float32" and value.rank >= 1 and value.exact)
    axis = w.rng.randrange(x.rank)
    k = w.rng.randint(1, x.shape[axis])
    shape = tuple(k if place == axis else size for place, size in enumerate(x.shape))
    largest = {"largest": w.rng.randint(0, 1)} if w.opset >= 11 else {}
    names = w.node(op, [x, w.ints([k])], 2, axis=axis, **largest)
    # Which of equal elements is taken is not the same in all runtimes.
    return [GraphValue(names[0], x.dtype, shape, True, x.magnitude)]


# Moving elements -------------------------------------------------------------------------------------------------------


def _moved(
    w: ModelWriter,
    op: str,
    x: GraphValue,
    inputs: Sequence[GraphValue | None],
    shape: Sequence[int],
    **attributes: object,
) -> list[GraphValue]:
    return w.result(op, inputs, x.dtype, shape, exact=x.exact, magnitude=x.magnitude, **attributes)


def _any(w: ModelWriter, least: int = 0) -> GraphValue:
    return w.pick(lambda value: value.rank >= least and value.dtype in ("float32", "float64", "int64", "int32", "bool"))


@define("Transpose")
def _transpose(w: ModelWriter, op: str) -> list[GraphValue]:
    x = _any(w, 1)
    axes = w.rng.sample(range(x.rank), x.rank)
    return _moved(w, op, x, [x], [x.shape[axis] for axis in axes], perm=axes)


@define("Reshape")
def _reshape(w: ModelWriter, op: str) -> list[GraphValue]:
    x = _any(w, 1)
    shape = list(x.shape)
    if len(shape) > 1 and w.rng.random() < 0.6:
        at = w.rng.randrange(len(shape) - 1)
        shape[at : at + 2] = [shape[at] * shape[at + 1]]
    else:
        w.rng.shuffle(shape)
    written = list(shape)
    if w.rng.random() < 0.6:
        written[w.rng.randrange(len(shape))] = -1
    return _moved(w, op, x, [x, w.ints(written)], shape)


@define("ReshapeByShape")
def _reshape_by_shape(w: ModelWriter, op: str) -> list[GraphValue]:
    """Shape → Gather → Concat → Reshape, as exporters write it."""
    x = _any(w, 2)
    keep = w.rng.randrange(x.rank)
    sizes = w.result("Shape", [x], "int64", (x.rank,))[0]
    part = w.result("Gather", [sizes, w.ints([keep])], "int64", (1,), axis=0)[0]
    shape = w.result("Concat", [part, w.ints([-1])], "int64", (2,), axis=0)[0]
    return _moved(w, "Reshape", x, [x, shape], [x.shape[keep], prod(x.shape) // x.shape[keep]])


@define("Flatten")
def _flatten(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.float(1)
    axis = w.rng.randint(0, x.rank)
    return _moved(w, op, x, [x], [prod(x.shape[:axis]), prod(x.shape[axis:])], axis=axis)


@define("Unsqueeze", "Squeeze")
def _squeeze(w: ModelWriter, op: str) -> list[GraphValue]:
    x = _any(w, 1)
    if op == "Squeeze":
        axes = [axis for axis, size in enumerate(x.shape) if size == 1]
        if not axes:
            raise NoUse
        shape = [size for size in x.shape if size != 1]
    else:
        axes = [w.rng.randint(0, x.rank)]
        shape = [*x.shape[: axes[0]], 1, *x.shape[axes[0] :]]
    if w.opset >= 13:
        return _moved(w, op, x, [x, w.ints(axes)], shape)
    return _moved(w, op, x, [x], shape, axes=axes)


@define("Concat")
def _concat(w: ModelWriter, op: str) -> list[GraphValue]:
    x = _any(w, 1)
    axis = w.rng.randrange(x.rank)

    def fits(value: GraphValue) -> bool:
        others = [size for place, size in enumerate(value.shape) if place != axis]
        return (
            value.dtype == x.dtype
            and value.rank == x.rank
            and others == [s for p, s in enumerate(x.shape) if p != axis]
        )

    parts = [x, *(w.pick(fits) for _ in range(w.rng.randint(1, 2)))]
    shape = [sum(part.shape[axis] for part in parts) if place == axis else size for place, size in enumerate(x.shape)]
    made = _moved(w, op, x, parts, shape, axis=axis)[0]
    exact = all(part.exact for part in parts)
    return [GraphValue(made.name, made.dtype, made.shape, exact, max(part.magnitude for part in parts))]


@define("Slice")
def _slice(w: ModelWriter, op: str) -> list[GraphValue]:
    x = _any(w, 1)
    axis = w.rng.randrange(x.rank)
    size = x.shape[axis]
    start = w.rng.randint(-size, size - 1)
    step = w.rng.choice((1, 1, 1, 2, -1)) if w.opset >= 10 else 1
    end = w.rng.choice((size, 1 << 40, -1, size - 1)) if step > 0 else w.rng.choice((-(1 << 40), 0))
    shape = list(x.shape)
    shape[axis] = len(range(*slice(start, end, step).indices(size)))
    if w.opset < 10:
        return _moved(w, op, x, [x], shape, starts=[start], ends=[min(end, 1 << 30)], axes=[axis])
    return _moved(w, op, x, [x, w.ints([start]), w.ints([end]), w.ints([axis]), w.ints([step])], shape)


@define("Gather")
def _gather(w: ModelWriter, op: str) -> list[GraphValue]:
    x = _any(w, 1)
    axis = w.rng.randrange(x.rank)
    least = -x.shape[axis] if w.opset >= 11 else 0
    wanted = w.shape(w.rng.randint(0, 2))
    places = np.array([w.rng.randint(least, x.shape[axis] - 1) for _ in range(prod(wanted))], "int64").reshape(wanted)
    return _moved(
        w, op, x, [x, w.weight("int64", wanted, places)], [*x.shape[:axis], *wanted, *x.shape[axis + 1 :]], axis=axis
    )


@define("Expand")
def _expand(w: ModelWriter, op: str) -> list[GraphValue]:
    x = _any(w, 1)
    shape = [w.rng.randint(1, 4) if size == 1 else size for size in x.shape]
    shape = [w.rng.randint(1, 3), *shape] if w.rng.random() < 0.4 else shape
    return _moved(w, op, x, [x, w.ints(shape)], shape)


@define("Tile")
def _tile(w: ModelWriter, op: str) -> list[GraphValue]:
    x = _any(w, 1)
    times = [w.rng.randint(1, 2) for _ in x.shape]
    return _moved(w, op, x, [x, w.ints(times)], [size * count for size, count in zip(x.shape, times, strict=True)])


@define("Pad")
def _pad(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.pick(lambda value: value.dtype == "float32" and value.rank >= 1)
    mode = w.rng.choice(("constant", "constant", "edge", "reflect"))
    most = [2 if mode != "reflect" else min(2, size - 1) for size in x.shape]
    widths = [w.rng.randint(0, each) for each in (*most, *most)]
    shape = [size + widths[axis] + widths[axis + x.rank] for axis, size in enumerate(x.shape)]
    if w.opset < 11:
        return _moved(w, op, x, [x], shape, mode=mode, pads=widths)
    return _moved(w, op, x, [x, w.ints(widths)], shape, mode=mode)


@define("Split")
def _split(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.float(1)
    axis = w.rng.randrange(x.rank)
    if x.shape[axis] < 2:
        raise NoUse
    first = w.rng.randint(1, x.shape[axis] - 1)
    sizes = [first, x.shape[axis] - first]
    given = {} if w.opset >= 13 else {"split": sizes}
    names = w.node(op, [x, w.ints(sizes)] if w.opset >= 13 else [x], 2, axis=axis, **given)
    shapes = [tuple(part if place == axis else size for place, size in enumerate(x.shape)) for part in sizes]
    return [GraphValue(name, x.dtype, shape, x.exact, x.magnitude) for name, shape in zip(names, shapes, strict=True)]


@define("Trilu")
def _trilu(w: ModelWriter, op: str) -> list[GraphValue]:
    if w.opset < 14:
        raise NoUse
    x = w.float(2)
    return _moved(w, op, x, [x], x.shape, upper=w.rng.randint(0, 1))


# Products and layers ---------------------------------------------------------------------------------------------------


@define("MatMul")
def _matmul(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.float(1, 4)
    columns = w.rng.randint(1, 5)
    batch = x.shape[:-2] if w.rng.random() < 0.5 else ()
    shape = (*batch, x.shape[-1], columns)
    y = w.weight(x.dtype, shape)
    return w.result(
        op,
        [x, y],
        x.dtype,
        [*x.shape[:-1], columns] if x.rank > 1 else [columns],
        exact=x.exact,
        magnitude=x.magnitude * 64 * x.shape[-1],
    )


@define("Gemm")
def _gemm(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.float(2, 2)
    transposed, columns = w.rng.randint(0, 1), w.rng.randint(1, 6)
    y = w.weight(x.dtype, (columns, x.shape[1]) if transposed else (x.shape[1], columns))
    bias = w.weight(x.dtype, w.rng.choice(((columns,), (1, columns), ())))
    return w.result(op, [x, y, bias], x.dtype, (x.shape[0], columns), transB=transposed, alpha=0.5)


@define("Conv")
def _conv(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.pick(lambda value: value.dtype == "float32" and value.rank in (3, 4))
    spatial = x.shape[2:]
    kernel = [w.rng.randint(1, 3) for _ in spatial]
    stride, padding = w.rng.randint(1, 2), [w.rng.randint(0, 1) for _ in (*spatial, *spatial)]
    groups = x.shape[1] if w.rng.random() < 0.3 else 1
    channels = groups * w.rng.randint(1, 3)
    shape = [x.shape[0], channels]
    for axis, (size, taps) in enumerate(zip(spatial, kernel, strict=True)):
        shape.append((size + padding[axis] + padding[axis + len(spatial)] - taps) // stride + 1)
    if min(shape) < 1:
        raise NoUse
    weight = w.weight("float32", (channels, x.shape[1] // groups, *kernel))
    inputs = [x, weight, w.weight("float32", (channels,))] if w.rng.random() < 0.6 else [x, weight]
    return w.result(
        op, inputs, "float32", shape, pads=padding, strides=[stride] * len(spatial), group=groups, kernel_shape=kernel
    )


@define("MaxPool", "AveragePool")
def _pool(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.pick(lambda value: value.dtype == "float32" and value.rank in (3, 4))
    kernel = [w.rng.randint(1, min(3, size)) for size in x.shape[2:]]
    shape = [*x.shape[:2], *(size - taps + 1 for size, taps in zip(x.shape[2:], kernel, strict=True))]
    return w.result(
        op, [x], "float32", shape, exact=x.exact and op == "MaxPool", magnitude=x.magnitude, kernel_shape=kernel
    )


@define("GlobalAveragePool", "GlobalMaxPool")
def _global_pool(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.pick(lambda value: value.dtype == "float32" and value.rank in (3, 4))
    exact = x.exact and op == "GlobalMaxPool"
    return w.result(op, [x], "float32", [*x.shape[:2], *(1 for _ in x.shape[2:])], exact=exact, magnitude=x.magnitude)


@define("BatchNormalization", "InstanceNormalization", "LayerNormalization")
def _normalization(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.pick(lambda value: value.dtype == "float32" and value.rank >= 3)
    if op == "LayerNormalization":
        if w.opset < 17:
            raise NoUse
        size = (x.shape[-1],)
        return w.result(op, [x, w.weight("float32", size), w.weight("float32", size)], "float32", x.shape, epsilon=0.5)
    size = (x.shape[1],)
    given = [w.weight("float32", size), w.weight("float32", size)]
    if op == "BatchNormalization":
        variance = np.array([w.rng.randint(1, 8) / 4 for _ in range(size[0])], "float32")
        given += [w.weight("float32", size), w.weight("float32", size, variance)]
    return w.result(op, [x, *given], "float32", x.shape, epsilon=0.5)


@define("Resize")
def _resize(w: ModelWriter, op: str) -> list[GraphValue]:
    if w.opset < 13:
        raise NoUse  # Before, neither `roi` nor `scales` could be left out.
    x = w.pick(lambda value: value.dtype == "float32" and value.rank == 4)
    sizes = [*x.shape[:2], *(w.rng.randint(1, 8) for _ in range(2))]
    mode = w.rng.choice(("nearest", "linear"))
    # Which pixel is nearest is a matter of rounding in other modes of coordinates.
    how = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"} if mode == "nearest" else {}
    if mode == "nearest":
        sizes = [*x.shape[:2], *(size * w.rng.randint(1, 3) for size in x.shape[2:])]
    return w.result(
        op,
        [x, None, None, w.ints(sizes)],
        "float32",
        sizes,
        exact=x.exact and mode == "nearest",
        magnitude=x.magnitude,
        mode=mode,
        **how,
    )


@define("OneHot")
def _one_hot(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.pick(lambda value: value.dtype == "int64" and value.rank in (1, 2))
    ends = w.weight("float32", (2,), np.array([0.0, 1.0], "float32"))
    return w.result(
        op, [x, w.weight("int64", (), np.array(5)), ends], "float32", [*x.shape, 5], exact=True, magnitude=1
    )


@define("DepthToSpace")
def _depth_to_space(w: ModelWriter, op: str) -> list[GraphValue]:
    x = w.pick(lambda value: value.dtype == "float32" and value.rank == 4 and value.shape[1] % 4 == 0)
    return _moved(w, op, x, [x], [x.shape[0], x.shape[1] // 4, x.shape[2] * 2, x.shape[3] * 2], blocksize=2)


@define("Einsum")
def _einsum(w: ModelWriter, op: str) -> list[GraphValue]:
    if w.opset < 12:
        raise NoUse
    x = w.pick(lambda value: value.dtype == "float32" and value.rank == 2)
    y = w.weight("float32", (x.shape[1], w.rng.randint(1, 4)))
    return w.result(op, [x, y], "float32", (y.shape[1], x.shape[0]), equation="ij,jk->ki")


@define("If")
def _if(w: ModelWriter, op: str) -> list[GraphValue]:
    condition = w.pick(lambda value: value.dtype == "bool" and value.rank == 0)
    x = w.float()
    bodies = (("then", "Relu"), ("otherwise", "Neg"))
    branches = [GraphText(f"{name} () => (r) {{ r = {body} ({x.name}) }}") for name, body in bodies]
    name = w.node(op, [condition], then_branch=branches[0], else_branch=branches[1])[0]
    return [GraphValue(name, x.dtype, x.shape, x.exact, x.magnitude)]
