"""Defines reducers: `te.sum`, `te.max`… and those that `comm_reducer` creates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...support.diagnostics import MirValueError, diagnostic_at
from ...support.text import counted
from ..tir import node as ex
from ..tir.node import Const, Expr, ExprLike, IterVar, Var, convert, current_location, describe, fail, items_of
from .tensor import Reduce, ReducerInstance, Reduction


class AxisReducer:
    """A commutative reducer: called with axes it reduces over them, otherwise it combines values."""

    def __init__(
        self,
        combine: Callable[[Any, Any], Any],
        identity: Callable[..., Any] | None,
        name: str,
        kind: str | None = None,
    ):
        self.combine = combine
        self.identity = identity
        self.name = name
        self.kind = kind
        self.location = current_location()
        self.instances: dict[tuple[str, ...], ReducerInstance] = {}

    def __repr__(self) -> str:
        return f"AxisReducer({self.name})"

    def __call__(
        self, expr: Any = None, *args: Any, axis: Any = None, where: ExprLike | None = None, init: Any = None
    ) -> Any:
        """Returns the reduction of `expr`, a value or tuple: `te.sum(A[k], axis=k, where=c, init=0)`.

        `where` selects elements, `init` replaces the identity as the first value. All three may be passed by position, in that order.
        Without a named axis, if the second argument is not an axis, all arguments are values and are combined in order: `te.max(a, b)`.
        """
        named = {"axis": axis, "where": where, "init": init}
        for name, _ in zip(named, args, strict=False):
            if named[name] is not None:
                raise fail(f"te.{self.name} is given '{name}' twice, in its place and by its name")
        second = args[0] if args else None
        is_axis = isinstance(second, IterVar) and second.iter_type == IterVar.CommReduce
        if axis is not None or is_axis or items_of(second) is not None:
            if len(args) > len(named):
                raise fail(f"te.{self.name} over axes takes {', '.join(named)}, and nothing else")
            named |= dict(zip(named, args, strict=False))
            axes = items_of(named["axis"])
            return self._reduce(expr, (named["axis"],) if axes is None else axes, named["where"], named["init"])
        if isinstance(second, IterVar) and self.kind in ("sum", "prod"):
            raise fail(f"'{second.name}' is not an axis to reduce over", "make one with k = te.reduce_axis((0, n))")
        values = [v for v in args if v is not None]
        if expr is None:
            text = f"te.{self.name} needs a value"
            raise MirValueError(
                diagnostic_at(
                    current_location(),
                    text,
                    f"write te.{self.name}(a, b), or over axes te.{self.name}(A[i, k], axis=k)",
                )
            )
        if not values and self.kind in ("all", "any"):
            return ex.as_condition(expr, f"an operand of te.{self.name}")
        if not values:
            raise fail(
                f"te.{self.name} needs axes to reduce over, or two values to combine",
                f"write te.{self.name}(A[i, k], axis=k) with k = te.reduce_axis((0, n))",
            )
        if left := [name for name, value in named.items() if value is not None]:
            raise fail(
                f"te.{self.name} combines values, and takes no '{left[0]}'",
                f"over axes: te.{self.name}(A[i, k], axis=k, {left[0]}=…) with k = te.reduce_axis((0, n))",
            )
        result = expr
        for value in values:
            result = self.combine(result, value)
        return result

    def _reduce(self, expr: Any, axes: tuple[Any, ...], where: ExprLike | None, init: Any) -> Any:
        for axis in axes:
            if not isinstance(axis, IterVar) or axis.iter_type != IterVar.CommReduce:
                name = f"'{axis.name}'" if isinstance(axis, IterVar) else describe(axis)
                raise fail(f"{name} is not an axis to reduce over", "make one with k = te.reduce_axis((0, n))")
        if not axes:
            raise fail(f"te.{self.name} is given no axis to reduce over")
        if len({id(axis) for axis in axes}) != len(axes):
            raise fail(f"te.{self.name} is given an axis twice")
        parts = items_of(expr)
        several = parts is not None
        sources = (convert(expr),) if parts is None else tuple(map(convert, parts))
        if not sources:
            raise fail(f"te.{self.name} is given nothing to reduce")
        if any(isinstance(s, Reduce) for s in sources):
            raise fail("a reduction cannot be reduced again in one compute", "give the inner reduction a te.compute")
        condition = None if where is None else convert(where)
        if condition is not None and condition.dtype != "bool":
            raise fail(f"the 'where' of a reduction must be bool, not {condition.dtype}")
        if isinstance(condition, Const) and condition.value:
            condition = None
        inits = () if init is None else items_of(init) or (init,)
        if inits and len(inits) != len(sources):
            raise fail(
                f"te.{self.name} reduces {counted(len(sources), 'value')}, but has {counted(len(inits), 'initial value')}"
            )
        begin = tuple(ex.cast(s.dtype, convert(v)) for v, s in zip(inits, sources, strict=bool(inits)))
        reduction = Reduction(self._at(sources, several), sources, axes, condition, begin)
        results = tuple(Reduce.of(reduction, i) for i in range(len(sources)))
        return results[0] if len(results) == 1 else results

    def _at(self, sources: tuple[Expr, ...], several: bool) -> str | ReducerInstance:
        dtypes = tuple(s.dtype for s in sources)
        if self.kind is not None:
            if len(sources) != 1:
                raise fail(f"te.{self.name} reduces one value, not {len(sources)}")
            if self.kind in ("all", "any") and dtypes[0] != "bool":
                raise fail(f"te.{self.name} reduces bool, not {dtypes[0]}")
            return self.kind
        found = self.instances.get(dtypes)
        if found is None:
            found = self.instances[dtypes] = self._instantiate(dtypes, several)
        return found

    def _instantiate(self, dtypes: tuple[str, ...], several: bool) -> ReducerInstance:
        left = tuple(Var(f"x{i}" if several else "x", t) for i, t in enumerate(dtypes))
        right = tuple(Var(f"y{i}" if several else "y", t) for i, t in enumerate(dtypes))
        combined = self.combine(left, right) if several else self.combine(left[0], right[0])
        results = tuple(map(convert, items_of(combined) or (combined,)))
        assert self.identity is not None
        neutral = self.identity(*dtypes)
        identities = tuple(map(convert, items_of(neutral) or (neutral,)))
        for what, values in (("combines", results), ("has identities", identities)):
            if tuple(v.dtype for v in values) != dtypes:
                raise fail(
                    f"reducer '{self.name}' on ({', '.join(dtypes)}) {what} of ({', '.join(v.dtype for v in values)})",
                    "each value must keep its dtype; write te.const(x, dtype) or .astype(dtype)",
                )
        return ReducerInstance(self.name, left + right, results, identities, self.location)


def comm_reducer(
    fcombine: Callable[[Any, Any], Any], fidentity: Callable[..., Any], name: str = "reduce"
) -> AxisReducer:
    """Creates a reducer of one or several values.

    Args:
        fcombine: combines two values, or two tuples of values into a tuple; must be associative and commutative.
        fidentity: takes the dtypes, returns the identity or identities.
        name: names the reducer.
    """
    return AxisReducer(fcombine, fidentity, name)


te_sum = AxisReducer(ex.add, None, "sum", "sum")
te_prod = AxisReducer(ex.multiply, None, "prod", "prod")
te_min = AxisReducer(ex.minimum, None, "min", "min")
te_max = AxisReducer(ex.maximum, None, "max", "max")
te_all = AxisReducer(ex.logical_and, None, "all", "all")
te_any = AxisReducer(ex.logical_or, None, "any", "any")
