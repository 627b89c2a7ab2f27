"""What a function's builder knows while it reads: names in scope, places, errors."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NoReturn, TypeAlias

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from ...dialects.tir.operators import Const, ExprBuilder
from ...support.diagnostics import MirError, error_at
from ..items import Item, ParseContext
from ..python.tree import Expr, Token, token_of
from ..source import Source
from .names import Names


@dataclass(frozen=True)
class Callee:
    """A function that may be called: its symbol, its class (None outside of a module) and the dtype it returns."""

    symbol: str
    module: str | None
    result: Attribute | None


@dataclass
class FileNames:
    """The functions of a file by the name they are called by: `f`, `Module.f`."""

    callees: dict[str, Callee] = field(default_factory=dict[str, Callee])


Entry: TypeAlias = "SSAValue | Const"


class Scope(ExprBuilder):
    """Names, places and the list of ops that is being filled."""

    def __init__(self, item: Item, context: ParseContext, functions: FileNames):
        super().__init__()
        self.item, self.context, self.functions = item, context, functions
        self.names: dict[str, Entry] = {}
        # Names whose definition failed: what uses them is wrong only because of that.
        self.poisoned: set[str] = set()
        # The names the printer would give: a name that shadows another is told from it from the beginning.
        self.unique = Names()
        self.shown: dict[SSAValue, str] = {}
        self._undo: list[tuple[str, Entry | None]] = []
        self.source = Source(item)

    # Places

    def at(self, where: Expr | None) -> LocationAttr:
        """The location of a node of the tree, or the current one where it has no token."""
        token = where if type(where) is Token else token_of(where) if where is not None else None
        return self.location if token is None or token.start < 0 else self.source.location(token.start)

    def fail(self, where: Expr | None, message: str, *notes: str) -> NoReturn:
        """Refuses what stands at `where`."""
        raise error_at(self.at(where), message, *notes)

    @contextmanager
    def recovering(self) -> Generator[None]:
        """Errors inside are reported, and reading goes on behind."""
        try:
            yield
        except (MirError, VerifyException) as error:
            self.context.report(error, self.location)

    @contextmanager
    def poisoning(self, name: str) -> Generator[None]:
        """After an error inside, nothing more is said of `name`."""
        try:
            yield
        except MirError:
            self.names.pop(name, None)
            self.poisoned.add(name)
            raise

    # Names

    def define(self, name: str, entry: Entry) -> None:
        """Binds a name until the innermost `local` ends."""
        self._undo.append((name, self.names.get(name)))
        self.names[name] = entry

    def fresh(self, name: str) -> str:
        """The name of something that the text calls `name`: unlike every other in scope."""
        return self.unique.define(None, name)

    @contextmanager
    def local(self) -> Generator[None]:
        """Names defined inside end with it."""
        mark = len(self._undo)
        try:
            with self.unique.scope():
                yield
        finally:
            self.restore(mark)

    def mark(self) -> int:
        """A point that `restore` goes back to."""
        return len(self._undo)

    def restore(self, mark: int) -> None:
        """Ends the names defined since `mark`."""
        while len(self._undo) > mark:
            name, before = self._undo.pop()
            if before is None:
                self.names.pop(name, None)
            else:
                self.names[name] = before

    # Regions

    @contextmanager
    def inside(self, block: Block) -> Generator[None]:
        """Ops made inside go to `block`; names defined inside end with it."""
        outer, self.ops = self.ops, []
        try:
            with self.local():
                yield
            block.add_ops(self.ops)
        finally:
            self.ops = outer

    @contextmanager
    def before(self, position: int) -> Generator[None]:
        """Ops made inside go before the op at `position` of the present list: where the text would have had them."""
        end = len(self.ops)
        yield
        made = self.ops[end:]
        if made and position < end:
            del self.ops[end:]
            self.ops[position:position] = made

    def detached(self) -> list[Operation]:
        """Starts a new list of ops; the one it replaces is given back, to be set again by the caller."""
        outer, self.ops = self.ops, []
        return outer
