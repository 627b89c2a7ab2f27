"""Reads a function of TVMScript: names in scope, places, errors, and the ops that are made."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import NoReturn, TypeAlias

from xdsl.dialects.builtin import DenseArrayBase, LocationAttr, StringAttr, i32
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from ...dialects.tir.arithmetic import BinaryOp
from ...dialects.tir.buffer import BufferGetOp, buffer_name
from ...dialects.tir.expr import CallOp, LetOp
from ...dialects.tir.intrinsics import intrinsic_type
from ...dialects.tir.operators import Const, ExprBuilder, Value, is_float
from ...dialects.tir.stmt import EvaluateOp
from ...dialects.tir.types import BufferType, HandleType, StringType, element_of, lanes_of, type_to_dtype
from ...support.diagnostics import MirError, error_at
from ..items import Item, ParseContext
from ..python.tree import Expr, Token, token_of
from ..source import Source
from .names import Names

_NUMBERED = re.compile(r"(_\d+)+$")


@dataclass(frozen=True)
class KnownFunction:
    """A callable function: its symbol, its class (None outside of a module), the dtype it returns."""

    symbol: str
    module: str | None
    result: Attribute | None


@dataclass
class FileNames:
    """The functions of a file by the name they are called by: `f`, `Module.f`."""

    callees: dict[str, KnownFunction] = field(default_factory=dict[str, KnownFunction])


Entry: TypeAlias = "SSAValue | Const"


@cache
def segments(*sizes: int) -> DenseArrayBase:
    """The `operandSegmentSizes` of an op."""
    return DenseArrayBase.from_list(i32, sizes)


def hint(name: str) -> str | None:
    """Returns a name as an SSA name hint, or None for one that cannot be.

    Trailing numbers are dropped: MLIR's printer adds its own, and would print `x` with a number and `x_1` as one name.
    """
    name = _NUMBERED.sub("", name)
    return name if SSAValue.is_valid_name(name) else None


def describe(value: Value) -> str:
    """A value's type in words."""
    if not isinstance(value, Const) and isinstance(value.type, BufferType):
        return f"the buffer '{buffer_name(value)}'"
    return type_to_dtype(value.type)


class Reader(ExprBuilder):
    """Holds names in scope, places, errors and the list of ops, while one function is read."""

    def __init__(self, item: Item, context: ParseContext, functions: FileNames, source: Source | None = None):
        super().__init__()
        self.item, self.context, self.functions = item, context, functions
        self.names: dict[str, Entry] = {}
        # Names whose definition failed: what uses them is wrong only because of that.
        self.poisoned: set[str] = set()
        # The printer's names: a name that shadows another differs from it from the beginning.
        self.unique = Names()
        self.shown: dict[SSAValue, str] = {}
        self.func_attrs: dict[str, Attribute] = {}
        # Declarations of captured variables, which come first in the function, and what makes ops of nodes.
        self.prologue: list[Operation] = []
        self.emitter: object = None
        # Whether the statement that is read is the last of its region.
        self.at_end = False
        self._undo: list[tuple[str, Entry | None]] = []
        self.source = Source(item) if source is None else source

    def at(self, where: Expr | None) -> LocationAttr:
        """The location of a node of the tree, or the current one where it has no token."""
        token = where if type(where) is Token else token_of(where) if where is not None else None
        return self.location if token is None or token.start < 0 else self.source.location(token.start)

    def fail(self, where: Expr | None, message: str, *notes: str) -> NoReturn:
        """Raises a MirError at `where`."""
        raise error_at(self.at(where), message, *notes)

    @contextmanager
    def recovering(self) -> Generator[None]:
        """Errors inside are reported, and reading goes on after them."""
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
        """Moves the ops created inside before the op at `position` of the present list, as the text has them."""
        end = len(self.ops)
        yield
        made = self.ops[end:]
        if made and position < end:
            del self.ops[end:]
            self.ops[position:position] = made

    def detached(self) -> list[Operation]:
        """Starts a new list of ops; returns the one before, which the caller sets again."""
        outer, self.ops = self.ops, []
        return outer

    def buffer_data(self, buffer: SSAValue) -> SSAValue:
        """`A.data`, at the current location."""
        assert isinstance(buffer.type, BufferType)
        return self.emit(BufferGetOp(buffer, "data", HandleType.get(buffer.type.dtype, buffer.type.scope.data)))

    def intrinsic(self, name: str, arguments: Sequence[SSAValue], type_: Attribute | None = None) -> SSAValue:
        """Emits a call of an intrinsic, by default of the dtype that follows from its arguments.

        A void call has an unused int32 result here.
        """
        if type_ is None:
            type_ = intrinsic_type(name, [a.type for a in arguments])
        return self.emit(
            CallOp.create(operands=arguments, properties={"intrinsic": StringAttr(name)}, result_types=(type_,))
        )

    def evaluate(self, value: SSAValue) -> None:
        """`T.evaluate(value)`, at the current location."""
        self.ops.append(EvaluateOp.create(operands=(value,), location=self.location))

    def drop_result(self, value: SSAValue) -> None:
        """A void call has no result."""
        made = value.owner
        assert isinstance(made, CallOp)
        plain = CallOp.create(operands=made.operands, properties=made.properties, location=made.location)
        # It has just been made.
        self.ops.pop()
        made.erase()
        self.ops.append(plain)

    def bind(self, name: Token, arg: BlockArgument) -> str:
        """Makes a region's argument visible; its name, unlike all others in scope."""
        arg.name_hint = hint(name)
        arg.location = self.at(name)
        self.define(name, arg)
        fresh = self.shown[arg] = self.fresh(name)
        return fresh

    def folding(self, op: type[BinaryOp], a: Value, b: Value, start: int) -> Value:
        """`binary`; what folding leaves unused of the operands, whose ops begin at `start`, is removed."""
        count = len(self.ops)
        result = self.binary(op, a, b)
        if len(self.ops) == count:
            kept: list[Operation] = []
            for made in reversed(self.ops[start:]):
                if any(r.first_use is not None or r is result for r in made.results) or isinstance(made, LetOp):
                    kept.append(made)
                else:
                    made.erase()
            self.ops[start:] = reversed(kept)
        return result

    def matched(self, a: Value, b: Value, position: int) -> tuple[Value, Value]:
        """`match`, with what is made of `a` before the op at `position`, as if it stood in the text."""
        first, second = self.common_types(a.type, b.type)
        with self.before(position):
            a = self.cast(a, first)
        return a, self.cast(b, second)

    def convert(self, value: Value, wanted: Attribute, subject: str) -> Value:
        """A value as the dtype it is assigned to: constants adapt, numbers are cast where nothing is cut off."""
        described = describe(value)
        if lanes_of(value.type) not in (1, lanes_of(wanted)):
            raise self.error(f"{subject} {type_to_dtype(wanted)} here, but the value is {described}")
        element, given = element_of(wanted), element_of(value.type)
        if isinstance(element, HandleType | StringType) or isinstance(given, HandleType | StringType | BufferType):
            raise self.error(f"{subject} {type_to_dtype(wanted)} here, but the value is {described}")
        cuts = is_float(given) and not is_float(element)
        if cuts and not (isinstance(value, Const) and float(value.value).is_integer()):
            raise self.error(
                f"{subject} {type_to_dtype(wanted)} here, but the value is {described}",
                f'to cut off the fraction, write T.Cast("{type_to_dtype(wanted)}", …)',
            )
        return self.cast(value, wanted)
