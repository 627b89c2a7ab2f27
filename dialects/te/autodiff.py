"""Differentiates tensors in reverse: `te.gradient(loss, [x, w])`.

    B[i] = exp(A[i])      →      dA[j] = dB[j] * exp(A[j])
    C[i] = sum(A[i + k])  →      dA[j] = sum(dC[j - k])  where 0 <= j - k

An operation's gradient for one of its reads is a sum over its axes. An index that is an axis plus something determines that axis, which
is then not summed over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from .. import tir
from ..tir import node as ex
from ..tir.node import Apply, Call, Choice, Expr, IterVar, const, fail
from .expr_mutator import both, substitute
from .reducers import te_sum
from .tensor import ComputeOp, PlaceholderOp, Read, Reduce, Tensor, broadcast, compute_named, parts_of, reduce_axis

Partial = Callable[[Expr, Expr], Expr]


def _one(x: Expr) -> Expr:
    return const(1, x.dtype)


OF_CALLS: dict[str, Partial] = {
    "exp": lambda _, y: y,
    "exp2": lambda _, y: y * const(0.6931471805599453, y.dtype),
    "log": lambda x, _: _one(x) / x,
    "log2": lambda x, _: const(1.4426950408889634, x.dtype) / x,
    "log10": lambda x, _: const(0.4342944819032518, x.dtype) / x,
    "log1p": lambda x, _: _one(x) / (x + _one(x)),
    "sigmoid": lambda _, y: y * (_one(y) - y),
    "sqrt": lambda x, y: const(0.5, x.dtype) / y,
    "rsqrt": lambda x, y: const(-0.5, x.dtype) * y / x,
    "tanh": lambda _, y: _one(y) - y * y,
    "sin": lambda x, _: ex.call("cos", (x,), x.dtype),
    "cos": lambda x, _: const(-1, x.dtype) * ex.call("sin", (x,), x.dtype),
    "tan": lambda _, y: _one(y) + y * y,
    "sinh": lambda x, _: ex.call("cosh", (x,), x.dtype),
    "cosh": lambda x, _: ex.call("sinh", (x,), x.dtype),
    "atan": lambda x, _: _one(x) / (_one(x) + x * x),
    "fabs": lambda x, _: ex.select(ex.greater_equal(x, const(0, x.dtype)), _one(x), const(-1, x.dtype)),
    "erf": lambda x, _: const(1.1283791670955126, x.dtype) * ex.call("exp", (const(-1, x.dtype) * x * x,), x.dtype),
}
"""The derivatives of functions of one value x, which is y."""

CONSTANT = frozenset(("ceil", "floor", "nearbyint", "round", "sign", "trunc"))
"""Functions whose derivative is 0 wherever there is one."""


class _Derivative:
    """The derivative of an expression with respect to one read."""

    def __init__(self, read: Read):
        self.read = read
        self._known: dict[int, Expr | None] = {}

    def of(self, e: Expr) -> Expr | None:
        """Returns the derivative; None for 0."""
        if e is self.read:
            return _one(e)
        if id(e) not in self._known:
            self._known[id(e)] = self._of(e)
        return self._known[id(e)]

    def _of(self, e: Expr) -> Expr | None:
        if "float" not in e.dtype:
            return None
        match e:
            case Apply():
                return self._operation(e)
            case Choice():
                return self._chosen(e.args[0], e.then_value, e.else_value, ex.if_then_else)
            case Call() if e.intrinsic == "pow":
                x, y = e.args
                if self.of(y) is not None:
                    raise fail("te.gradient differentiates powers with respect to the base only")
                return _times(self.of(x), y * ex.call("pow", (x, y - _one(y)), e.dtype))
            case Call() if len(e.args) == 1 and e.intrinsic in OF_CALLS:
                inner = self.of(e.args[0])
                return None if inner is None else _times(inner, OF_CALLS[e.intrinsic](e.args[0], e))
            case Call() if e.intrinsic not in CONSTANT and any(self.of(part) is not None for part in e.args):
                raise fail(f"te.gradient does not know the derivative of '{e.intrinsic}'")
            case _:
                return None

    def _operation(self, e: Apply) -> Expr | None:
        if e.op is tir.CastOp:
            inner = self.of(e.args[0])
            return None if inner is None else ex.cast(e.dtype, inner)
        if e.op is tir.SelectOp:
            return self._chosen(e.args[0], e.args[1], e.args[2], ex.select)
        a, b = e.args
        da, db = self.of(a), self.of(b)
        if e.op is tir.AddOp:
            return _plus(da, db)
        if e.op is tir.SubOp:
            return _plus(da, None if db is None else const(-1, e.dtype) * db)
        if e.op is tir.MulOp:
            return _plus(_times(da, b), _times(db, a))
        if e.op is tir.DivOp:
            below = None if db is None else const(-1, e.dtype) * db * a / (b * b)
            return _plus(None if da is None else da / b, below)
        if e.op in (tir.MinOp, tir.MaxOp):
            first = ex.less_equal(a, b) if e.op is tir.MinOp else ex.greater_equal(a, b)
            return self._chosen(first, a, b, ex.select)
        return None

    def _chosen(self, condition: Expr, a: Expr, b: Expr, make: Callable[[Expr, Expr, Expr], Expr]) -> Expr | None:
        da, db = self.of(a), self.of(b)
        if da is None and db is None:
            return None
        zero = const(0, a.dtype)
        return make(condition, zero if da is None else da, zero if db is None else db)


def _plus(a: Expr | None, b: Expr | None) -> Expr | None:
    return b if a is None else a if b is None else a + b


def _times(a: Expr | None, b: Expr) -> Expr | None:
    return None if a is None else a * b


def _solved(index: Expr, wanted: Expr, free: Mapping[int, IterVar]) -> tuple[IterVar, Expr] | None:
    """Returns a free axis with its value for which an index is `wanted`.

    The index is the axis, plus what is known or is summed over.
    """
    value = wanted
    while True:
        if id(index) in free:
            return free[id(index)], value
        if not isinstance(index, Apply) or index.op not in (tir.AddOp, tir.SubOp):
            return None
        a, b = index.args
        inside = [any(id(part) in free for part in parts_of([side])) for side in (a, b)]
        if inside == [True, False]:
            index, value = a, value - b if index.op is tir.AddOp else value + b
        elif index.op is tir.AddOp and id(a) in free and id(b) in free:
            return free[id(a)], value - b
        elif index.op is tir.AddOp and inside[1]:
            # One of the two sides is solved for; what remains of the other is summed over.
            index, value = (a, value - b) if id(a) in free else (b, value - a)
        else:
            return None


def _of_read(op: ComputeOp, output: Tensor, read: Read, head: Tensor) -> Tensor | None:
    """Returns what one read adds to the gradient of its tensor; None for nothing."""
    body = op.body[output.value_index]
    kind = body.reduction.reducer if isinstance(body, Reduce) else None
    if kind is not None and kind not in ("sum", "max", "min"):
        raise fail(
            f"te.gradient does not differentiate the reduction of '{op.name}'", "sum, max and min have gradients"
        )
    value = body.reduction.sources[0] if isinstance(body, Reduce) else body
    partial = _Derivative(read).of(value)
    if partial is None:
        return None
    if kind in ("max", "min"):
        chosen = ex.equal(value, output(*op.axis))
        partial = ex.select(chosen, partial, const(0, partial.dtype))
    condition = body.reduction.condition if isinstance(body, Reduce) else None
    leading = head.ndim - output.ndim
    shape = [*head.dims[:leading], *read.tensor.dims]

    def element(*index: IterVar) -> Expr:
        before, wanted = index[:leading], index[leading:]
        axes = [*op.axis, *op.reduce_axis]
        free = {id(axis): axis for axis in axes}
        values: dict[int, Expr] = {}
        checks: list[Expr] = []
        left: list[tuple[Expr, Expr]] = []
        for place, target in zip(read.args, wanted, strict=True):
            found = _solved(substitute(place, values), target, free)
            if found is None or any(part is found[0] for part in parts_of([found[1]])):
                left.append((place, target))
                continue
            axis, solution = found
            del free[id(axis)]
            values = {key: substitute(old, {id(axis): solution}) for key, old in values.items()} | {id(axis): solution}
            checks += [ex.greater_equal(solution, axis.min), ex.less(solution, axis.min + axis.extent)]
        summed = {key: reduce_axis((axis.min, axis.min + axis.extent), f"{axis.name}_r") for key, axis in free.items()}
        values = {key: substitute(each, summed) for key, each in values.items()} | dict(summed)
        guards = [substitute(check, summed) for check in checks]
        guards += [ex.equal(substitute(place, values), target) for place, target in left]
        guards += [] if condition is None else [substitute(condition, values)]
        outer = head(*before, *(substitute(axis, values) for axis in op.axis))
        term = ex.if_then_else(both(guards), outer * substitute(partial, values), const(0, partial.dtype))
        return te_sum(term, axis=tuple(summed.values())) if summed else term

    names = [f"ax{number}" for number in range(len(shape))]
    return compute_named(tuple(shape), names, element, f"{read.tensor.name}_grad")


def gradient(output: Tensor, inputs: Sequence[Tensor], head: Tensor | None = None) -> list[Tensor]:
    """Returns the gradients of a tensor with respect to inputs, times `head`.

    `head` has the shape of `output`, or further dimensions before it, which the gradients have, too. Without it a gradient has those of
    `output` before those of the input. Raises MirError for operations that are not computes, and for functions without a known derivative.
    """
    adjoint = {output: _identity(output) if head is None else head}
    order = _order(output)
    for tensor in reversed(order):
        above = adjoint.get(tensor)
        if above is None or isinstance(tensor.op, PlaceholderOp) or any(tensor is each for each in inputs):
            continue
        if not isinstance(tensor.op, ComputeOp):
            raise fail(f"te.gradient differentiates computes, which '{tensor.name}' is not")
        reads = [part for part in parts_of([tensor.op.body[tensor.value_index]]) if isinstance(part, Read)]
        for read in reads:
            term = _of_read(tensor.op, tensor, read, above)
            if term is not None:
                held = adjoint.get(read.tensor)
                adjoint[read.tensor] = term if held is None else broadcast("T_add", ex.add, held, term)
    leading = adjoint[output].dims[: adjoint[output].ndim - output.ndim]
    return [adjoint[each] if each in adjoint else _zeros(each, leading) for each in inputs]


def _order(output: Tensor) -> list[Tensor]:
    """Returns the tensors that an output needs, inputs first."""
    found: list[Tensor] = []
    seen: set[int] = set()
    pending: list[tuple[Tensor, bool]] = [(output, False)]
    while pending:
        tensor, opened = pending.pop()
        if opened:
            found.append(tensor)
        elif id(tensor) not in seen:
            seen.add(id(tensor))
            pending.append((tensor, True))
            pending += [(each, False) for each in tensor.op.input_tensors]
    return found


def _identity(output: Tensor) -> Tensor:
    def element(*index: IterVar) -> Expr:
        pairs = zip(index[: output.ndim], index[output.ndim :], strict=True)
        same = both(ex.equal(a, b) for a, b in pairs)
        return ex.select(same, const(1, output.dtype), const(0, output.dtype))

    names = [f"ax{number}" for number in range(2 * output.ndim)]
    return compute_named((*output.dims, *output.dims), names, element, "identity")


def _zeros(tensor: Tensor, leading: Sequence[Expr]) -> Tensor:
    dims = (*leading, *tensor.dims)
    names = [f"ax{number}" for number in range(len(dims))]
    return compute_named(dims, names, lambda *_: const(0, tensor.dtype), "zeros")


__all__ = ["gradient"]
