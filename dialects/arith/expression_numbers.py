"""Numbers expression nodes so that those of one structure have one number."""

from __future__ import annotations

from ..tir import node as ex
from ..tir.node import Apply, Call, Const, Expr, StringImm
from ..tir.node.functor import expr_parts, kind_of


class ExpressionNumbers:
    """Numbers expressions, equal ones alike; `first` and `parts` are by number."""

    def __init__(self) -> None:
        self.first: list[Expr] = []
        self.parts: list[tuple[int, ...]] = []
        self._known: dict[object, int] = {}
        self._memo: dict[int, tuple[Expr, int]] = {}

    def of(self, root: Expr) -> int:
        """Returns the number of an expression, which all that are built like it have."""
        pending = [root]
        while pending:
            e = pending[-1]
            rest = [part for part in expr_parts(e) if id(part) not in self._memo]
            if rest and id(e) not in self._memo:
                pending += rest
                continue
            pending.pop()
            if id(e) not in self._memo:
                self._memo[id(e)] = (e, self._number(e))
        return self._memo[id(root)][1]

    def _number(self, e: Expr) -> int:
        parts = tuple(self._memo[id(part)][1] for part in expr_parts(e))
        own: object
        match e:
            case Const() | StringImm():
                own = repr(e.value)
            case Call():
                others = [
                    o if isinstance(o, str | int | float) else id(o) for o in e.operands if not isinstance(o, Expr)
                ]
                own = (e.intrinsic, e.callee, *others)
            case Apply():
                own = e.op
            case ex.BufferLoad():
                own = id(e.buffer)
            case _:
                own = id(e)
        key = (kind_of(e), e.dtype, own, parts)
        number = self._known.get(key)
        if number is None:
            number = self._known[key] = len(self.first)
            self.first.append(e)
            self.parts.append(parts)
        return number
