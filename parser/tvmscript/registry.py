"""Tables of readers: constructs of TVMScript by name, nodes of the syntax tree by type.

    @construct.value("T.Select")
    def read_select(reader: Reader, node: Call) -> Value: …

makes `T.Select(…)` an expression. A construct is one such function; names that are near a misspelt one are looked up here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from xdsl.ir import SSAValue

    from ...dialects.tir.operators import Value
    from ..python.tree import Call, Expr, For, Token, With
    from .constructs.blocks import Axes
    from .reader import Reader

Key = TypeVar("Key", bound=Hashable)
Function = TypeVar("Function", bound=Callable[..., Any])


class ReaderTable(dict[Key, Function], Generic[Key, Function]):
    """Functions by what they read; called with keys it is a decorator that adds one."""

    def __call__(self, *keys: Key) -> Callable[[Function], Function]:
        def add(function: Function) -> Function:
            for key in keys:
                assert key not in self, key
                self[key] = function
            return function

        return add


class Constructs:
    """Readers of `T.name(…)`, by what is around the call."""

    def __init__(self) -> None:
        self.value: ReaderTable[str, Callable[[Reader, Call], Value]] = ReaderTable()
        """`T.Select(c, a, b)` in an expression."""
        self.definition: ReaderTable[str, Callable[[Reader, str, Call], SSAValue | None]] = ReaderTable()
        """`x = T.alloc_buffer(…)`, `with T.allocate(…) as x:`."""
        self.statement: ReaderTable[str, Callable[[Reader, Call], None]] = ReaderTable()
        """`T.evaluate(x)` on a line of its own."""
        self.loop: ReaderTable[str, Callable[[Reader, For, list[Token], Call], None]] = ReaderTable()
        """`for i, j in T.grid(m, n):`."""
        self.region: ReaderTable[str, Callable[[Reader, Call, With], None]] = ReaderTable()
        """`with T.block("B"):`, which takes its statements itself."""
        self.scope: ReaderTable[str, Callable[[Reader, Call, Expr | None], None]] = ReaderTable()
        """`with T.attr(…):`, perhaps one of several items."""
        self.axis: ReaderTable[str, Callable[[Reader, Call, list[Token], Axes], None]] = ReaderTable()
        """`vi = T.axis.spatial(8, i)` in a block's head."""

    def names(self) -> set[str]:
        """All of them, without `T.`."""
        tables = (self.value, self.definition, self.statement, self.loop, self.region, self.scope, self.axis)
        return {name[2:] for table in tables for name in table if name.startswith("T.")}


construct = Constructs()
reads_expression: ReaderTable[type, Callable[[Reader, Any], Value]] = ReaderTable()
reads_statement: ReaderTable[type, Callable[[Reader, Any], None]] = ReaderTable()
