"""Index maps and padding values as functions of expressions, converted from and to script lambdas."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Attribute, Block, BlockArgument, Region, SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer, Expr, symbol
from ....dialects.arith.expr import Atom, as_expr, free_vars, substitute
from ....dialects.schedule import Lambda, YieldOp
from ....dialects.tir.types import F32, I32
from ....support.edit import builder_at_end
from .errors import refuse


class LambdaMap:
    """A script's lambda as a function of expressions."""

    def __init__(self, source: Lambda):
        block = source.region.block
        last = block.last_op
        assert isinstance(last, YieldOp)
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        self.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in source.names])
        self.single = bool(last.single.value.data)
        self.separators = [place.value.data for place in last.separators]
        analyzer = Analyzer()
        self.parameters = [_atom(analyzer.expr(argument)) for argument in block.args]
        self.values = [_value(value, analyzer, self.parameters) for value in last.values]

    def __call__(self, *arguments: Expr) -> object:
        given = dict(zip(self.parameters, map(as_expr, arguments), strict=True))
        values: list[object] = [substitute(v, given) if isinstance(v, Expr) else v for v in self.values]
        for place in reversed(self.separators):
            values.insert(place, _separator())
        return values[0] if self.single else values


def _separator() -> object:
    from ..primitives.transform_layout import AXIS_SEPARATOR

    return AXIS_SEPARATOR


def _atom(expr: Expr) -> Atom:
    atom = expr.atom
    assert atom is not None
    return atom


def _value(value: SSAValue, analyzer: Analyzer, parameters: Sequence[Atom]) -> Expr | float:
    owner = value.owner
    if isinstance(owner, tir.ConstOp) and isinstance(owner.value, FloatAttr):
        return owner.value.value.data
    expr = analyzer.expr(value)
    for atom in free_vars(expr):
        if atom not in parameters:
            inner = atom.payload if isinstance(atom.payload, SSAValue) else value
            raise refuse(
                value if isinstance(inner, BlockArgument) else inner,
                "a lambda of a schedule computes indices from its parameters, and this is not integer arithmetic on them",
                "use +, -, *, //, %, T.min, T.max, comparisons and T.if_then_else",
            )
    return expr


class RecordedMap:
    """A Python function given to a primitive: called as it is, it keeps what it computed, for the trace."""

    def __init__(self, function: Callable[..., Any]):
        self.function = function
        self.__signature__ = inspect.signature(function)
        self._symbols: Sequence[Expr] | None = None
        self._result: object = None

    def __call__(self, *symbols: Expr, **named: Expr) -> Any:
        result: object = self.function(*symbols, **named)
        self._symbols, self._result = [*symbols, *named.values()], result
        return result

    def names(self) -> list[str]:
        """Returns the parameters' names, `i0`, `i1`… for `*indices`; calls the function if it was not yet."""
        parameters = self.__signature__.parameters.values()
        first = [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.KEYWORD_ONLY)]
        last = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
        if self._symbols is None:
            self(*(symbol(name) for name in first), **{name: symbol(name) for name in last})
        assert self._symbols is not None
        between = len(self._symbols) - len(first) - len(last)
        return [*first, *(f"i{len(first) + k}" for k in range(between)), *last]

    def to_lambda(self) -> Lambda:
        """Returns the computation as a lambda of a script."""
        names = self.names()
        assert self._symbols is not None
        single = not isinstance(self._result, list | tuple)
        results = [self._result] if single else list(cast("Sequence[object]", self._result))
        block = Block(arg_types=[I32] * len(names))
        builder = builder_at_end(block, tir.ConstOp.int(0, I32).location)
        analyzer = Analyzer()
        given = {_atom(s): analyzer.expr(a) for s, a in zip(self._symbols, block.args, strict=True)}
        values: list[SSAValue] = []
        separators: list[int] = []
        for result in results:
            if result is _separator():
                separators.append(len(values))
            elif isinstance(result, float):
                values.append(builder.insert(tir.ConstOp.float(result, F32)).result)
            else:
                type_: Attribute = I32
                values.append(analyzer.to_ssa(substitute(as_expr(cast("Expr | int", result)), given), builder, type_))
        builder.insert(YieldOp(values, single=single, separators=separators))
        return Lambda(Region(block), tuple(names))
