"""Rules of TIR tried on floats: both sides computed by numpy on special values, wherever the rule's ops are of floats too."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import SSAValue

from .....dialects import rule as ir
from .....dialects.relay.operator import from_attribute
from .....support.diagnostics import Diagnostic
from .inputs import special_values
from .integers import Choice, Unsaid, choices_of, is_condition, name_of
from .terms import results, roots

Array = NDArray[Any]

TRIES = 20_000
"""How many values of each capture a rule is tried on."""

TOLERANCE = 1e-3
"""Of rules marked `fast`, relative to the greatest magnitude of captures and results."""

MARK = "one that holds for real numbers, and not for all that floats can be, says so: fast rewrite @…"


def check_floats(rule: ir.RewriteOp) -> tuple[Diagnostic | None, bool]:
    """What is wrong with a rule of TIR on float32, and whether it was tried on any.

    It is not where its conditions exclude floats, or it has an op of integers alone.
    """
    tried = False
    try:
        for choice in choices_of(rule):
            for zero in (0.0, -0.0):
                sides = _Sides(rule, choice, zero)
                found, used = sides.compare()
                if found is not None:
                    name = rule.sym_name.data
                    problem = Diagnostic(f"rule @{name} changes the meaning of floats: {found}", rule.location)
                    return problem.with_note(MARK) if not rule.is_fast else problem, True
                tried = tried or used
    except Unsaid:
        return None, False
    return None, tried


class _Sides:
    """Both sides of a rule as arrays; a literal 0 is `zero`."""

    def __init__(self, rule: ir.RewriteOp, choice: Choice, zero: float):
        self.rule, self.choice, self.zero = rule, choice, zero
        self.generator = np.random.default_rng(0)
        self.arrays: dict[SSAValue, Array] = {}

    def compare(self) -> tuple[str | None, bool]:
        """The captures with which the sides differ, and whether the conditions hold for any floats."""
        rule = self.rule
        with np.errstate(all="ignore"):
            pairs = [(self.value(a), self.value(b)) for a, b in zip(roots(rule), results(rule), strict=True)]
            holds = np.full(TRIES, True)
            for op in rule.body.block.ops:
                if isinstance(op, ir.WhereOp):
                    holds &= np.asarray(self.known(op.condition), bool)
            for a, b in pairs:
                a, b = np.broadcast_arrays(a, b, np.empty(TRIES))[:2]
                wrong = holds & ~self.agree(a, b)
                if wrong.any():
                    place = int(np.argmax(wrong))
                    return f"{self.captures(place)}: {_shown(a[place])} became {_shown(b[place])}", True
        return None, bool(holds.any()) and any(array.dtype.kind == "f" for array in self.arrays.values())

    def agree(self, a: Array, b: Array) -> Array:
        if a.dtype.kind == "b" or b.dtype.kind == "b":
            finite = np.full(TRIES, True)
            for array in self.arrays.values():
                finite &= np.isfinite(array) if array.dtype.kind == "f" else True
            return np.asarray((a == b) | (self.rule.is_fast & ~finite))
        same = (a == b) & (np.signbit(a) == np.signbit(b)) | (np.isnan(a) & np.isnan(b))
        if not self.rule.is_fast:
            return np.asarray(same)
        met = [np.abs(np.broadcast_to(x, TRIES)) for x in (*self.arrays.values(), a) if x.dtype.kind == "f"]
        most = np.max([np.where(np.isfinite(x), x, np.inf) for x in met], axis=0)
        ordinary = (most < 1e6) & np.all([(x == 0) | (x > 1e-6) for x in met], axis=0)
        return np.asarray(same | ~ordinary | (np.abs(a - b) <= TOLERANCE * np.maximum(most, 1)))

    def captures(self, place: int) -> str:
        named = {
            op.capture.data: array
            for value, array in self.arrays.items()
            if isinstance(op := value.owner, ir.AnyOp) and op.capture is not None
        }
        return ", ".join(f"%{name} = {_shown(array[place])}" for name, array in named.items()) or "always"

    def value(self, value: SSAValue) -> Array:
        """Raises Unsaid for what is not of floats."""
        if value not in self.arrays:
            self.arrays[value] = self._value(value)
        return self.arrays[value]

    def _value(self, value: SSAValue) -> Array:
        match value.owner:
            case ir.AnyOp() if value.type == ir.VALUE:
                if is_condition(value, self.choice):
                    return self.generator.integers(0, 2, TRIES).astype(bool)
                few = (np.arange(-12, 12) / 2).astype(np.float32)
                numbers = np.concatenate([special_values("float32"), few])
                return np.asarray(self.generator.choice(numbers, TRIES))
            case ir.LiteralOp() as op:
                return self.number(from_attribute(op.value))
            case ir.ConstantOp() as op:
                return self.number(self.known(op.value))
            case ir.FoldOp() as op:
                return self.value(op.value)
            case ir.SelectOp() as op:
                return np.where(self.known(op.condition), self.value(op.on_true), self.value(op.on_false))
            case (ir.MatchOp() | ir.BuildOp()) as op if not op.attr_names.data:
                make = _OPS.get(name := name_of(op, self.choice))
                args = [self.value(arg) for arg in op.args]
                if make is None or any((arg.dtype.kind == "b") != (name in _LOGIC) for arg in args[name == _SELECT :]):
                    raise Unsaid(name)
                return np.asarray(make(*args))
            case _:
                raise Unsaid("a value")

    def number(self, value: Any) -> Array:
        if isinstance(value, bool):
            return np.asarray(value)
        array = np.asarray(value, np.float32)
        return np.where(array == 0, np.float32(self.zero), array)

    def known(self, value: SSAValue) -> Any:
        """A condition or an attribute, of each try where it depends on values. Raises Unsaid for what is not known."""
        if value.type == ir.VALUE:
            return self.value(value)
        match value.owner:
            case ir.DataOp() as op:
                return from_attribute(op.value)
            case ir.ComputeOp() as op if op.function.data in _FIXED:
                return _FIXED[op.function.data]
            case ir.ComputeOp() as op if op.function.data in _FUNCTIONS:
                return _FUNCTIONS[op.function.data](*map(self.known, op.args))
            case _:
                raise Unsaid("an attribute")


def _shown(value: Any) -> str:
    return str(value) if value.dtype.kind == "b" else repr(float(value))


def _same(value: Any) -> Any:
    return value


def _smaller(a: Array, b: Array) -> Array:
    return np.where(a < b, a, b)


def _larger(a: Array, b: Array) -> Array:
    return np.where(a > b, a, b)


def _contains(items: Any, item: Any) -> bool:
    return item in items


def _tuple(*items: Any) -> tuple[Any, ...]:
    return items


_SELECT = "tir.select"
_LOGIC = ("tir.and", "tir.or", "tir.not")
_Functions: TypeAlias = "dict[str, Callable[..., Any]]"
_OPS: _Functions = {
    "tir.add": np.add, "tir.sub": np.subtract, "tir.mul": np.multiply, "tir.div": np.divide,
    "tir.min": _smaller, "tir.max": _larger,
    "tir.eq": np.equal, "tir.ne": np.not_equal, "tir.lt": np.less, "tir.le": np.less_equal, "tir.gt": np.greater,
    "tir.ge": np.greater_equal, "tir.and": np.logical_and, "tir.or": np.logical_or, "tir.not": np.logical_not,
    _SELECT: np.where,
}  # fmt: skip
_FIXED: dict[str, Any] = {"dtype": "float32", "is_float": True, "rank": 0, "is_constant": True, "one_use": True}
_FUNCTIONS: _Functions = {
    "and_": np.logical_and, "or_": np.logical_or, "not_": np.logical_not, "all": _same, "any": _same,
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "neg": operator.neg, "truediv": np.divide,
    "identity": _same, "abs": np.abs, "contains": _contains, "tuple": _tuple,
}  # fmt: skip
