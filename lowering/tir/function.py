"""Holds the state of one prim_func's lowering: the form of each TIR value, conversions between forms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from xdsl.dialects import scf, vector
from xdsl.dialects.builtin import IndexType, IntegerType, MemRefType, UnrealizedConversionCastOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ...dialects.interned import vector_type
from ...dialects.tir.expr import VarOp
from ...dialects.tir.types import element_of, is_unsigned
from ...support.diagnostics import error_at
from ...support.edit import create_op
from ...support.memoize import memoized
from .emitter import INDEX, StdEmitter
from .module_globals import ModuleGlobals
from .values import ADDRESS, Buffer, Form, Index, Plain, Pointer, Ramp, convert_type, flat_type

Handler = Callable[["FunctionLowering", Any], None]
Registered = TypeVar("Registered", bound=Callable[..., None])

HANDLERS: dict[type[Operation], Handler] = {}
"""What lowers each op; filled by `expressions`, `memory` and `statements`."""


def lowers(*kinds: type[Operation]) -> Callable[[Registered], Registered]:
    """Registers the decorated function as the lowering of these ops."""

    def register(handler: Registered) -> Registered:
        for kind in kinds:
            HANDLERS[kind] = handler
        return handler

    return register


class FunctionLowering(StdEmitter):
    """Lowers the body of one function into `entry`."""

    def __init__(self, entry: Block, globals_: ModuleGlobals):
        super().__init__()
        self.start_function(entry)
        self.globals = globals_
        self.forms: dict[SSAValue, Form] = {}
        self.buffers: dict[SSAValue, Buffer] = {}
        self.sizes: dict[Operation, int] = {}
        """The ops of one iteration of each lowered loop; of an unrolled loop those of all its iterations."""
        self.memory: dict[Block, tuple[set[SSAValue], set[SSAValue]]] = {}
        """Of lowered loops' bodies what memory they read and write."""
        self.rest: Iterable[Operation] = iter(())
        """The ops that follow the one being lowered in its region; a handler may take them for a scope of its own."""
        self.frees: list[list[SSAValue]] = [[]]
        """By open region: the heap memory to be freed where it ends."""
        self.anchors: list[tuple[Block, int]] = [(entry, 0)]
        """Where memory of constant size is taken: the function, or the innermost parallel loop's body (and its place in `frees`)."""
        self.in_parallel = False
        self.prefetch = 0
        """Bytes by which memory is fetched ahead of the vectors that are loaded; 0 where it is left to the processor."""
        self.returned: SSAValue | None = None
        self.mask: SSAValue | None = None
        """Which lanes of a vector load count, inside one side of a lane-by-lane choice."""
        self.data: set[SSAValue] | None = None
        """The values that the function stores, and those that they are computed from, once they are asked for."""

    # Statements

    def lower_ops(self, ops: Iterable[Operation]) -> None:
        """Lowers ops in order."""
        iterator = iter(ops)
        for op in iterator:
            handler = HANDLERS.get(type(op))
            if handler is None:
                raise error_at(
                    op,
                    f"'{op.name}' cannot be compiled for a CPU",
                    "only the tir dialect is lowered inside a prim_func",
                )
            self.location = op.location
            outer, self.rest = self.rest, iterator
            handler(self, op)
            self.rest = outer

    def lower_region(self, block: Block, ops: Iterable[Operation], end: Callable[[], object] | None = None) -> None:
        """Lowers `ops` into the new `block`, then frees what they allocated, then runs `end`."""
        with self.inside(block):
            self.frees.append([])
            self.lower_ops(ops)
            self.release()
            if end is not None:
                end()

    def release(self) -> None:
        """Frees what the region that ends here allocated."""
        from xdsl.dialects import memref

        for pointer in reversed(self.frees.pop()):
            self.append(memref.DeallocOp.get(pointer))

    def loop(self, bounds: Sequence[SSAValue], body: Block) -> scf.ForOp:
        """Emits a loop of these bounds (first, end, step) around a block that takes its variable."""
        loop = create_op(scf.ForOp, bounds, (), {}, self.location)
        loop.add_region(Region(body))
        return self.append(loop)

    # Values

    def bind(self, value: SSAValue, form: Form) -> None:
        """Binds a TIR value to its form, and passes its name on."""
        self.forms[value] = form
        if value.name_hint is not None:
            ssa = form.value if isinstance(form, Index | Plain) else None
            if isinstance(ssa, SSAValue) and ssa.name_hint is None:
                ssa.name_hint = value.name_hint

    def form(self, value: SSAValue) -> Form:
        """Returns the form of a TIR value. Raises MirError for a value that has none."""
        found = self.forms.get(value)
        if found is None and isinstance(owner := value.owner, VarOp):
            raise error_at(
                owner,
                f"nothing gives the variable '{owner.var_name.data}' a value",
                "it must be an extent, stride or offset, on its own, of a T.match_buffer of a parameter",
            )
        if found is None:
            raise error_at(
                value, "this value cannot be used in compiled code", "it is not a number, nor a handle of a buffer"
            )
        return found

    def plain(self, value: SSAValue) -> SSAValue:
        """`value` in the converted type of its dtype."""
        form = self.form(value)
        match form:
            case Plain():
                return form.value
            case Index():
                return self.index_as(form, convert_type(value.type, value))
            case Ramp():
                return self.ramp_vector(form, element_of(convert_type(value.type, value)))
            case Pointer():
                return self.address(form)

    def plains(self, values: Sequence[SSAValue]) -> list[SSAValue]:
        """`plain` of each."""
        return [self.plain(v) for v in values]

    def index(self, value: SSAValue) -> Index:
        """Returns an integer scalar in `index`."""
        form = self.form(value)
        match form:
            case Index():
                return form
            case Plain() if isinstance(value.type, IntegerType):
                return self.plain_as_index(form.value, value.type)
            case _:
                raise error_at(value, "an integer is needed here", f"this has type {value.type}")

    def plain_as_index(self, value: SSAValue, source: IntegerType) -> Index:
        """Returns an integer of its own width in `index`, extended by its sign."""
        unsigned = is_unsigned(source)
        width = source.width.data
        if width > 64:
            raise error_at(value, f"an index of {width} bits cannot be compiled", "use int64")
        ssa = self.cast_index(value, INDEX, signed=not unsigned)
        if unsigned:
            return Index(ssa, 0, (1 << width) - 1 if width < 63 else None)
        # The range of int32 is not worth keeping: nothing that it bounds is non-negative.
        return Index(ssa)

    def index_as(self, index: Index, type_: Attribute) -> SSAValue:
        """Converts an index to an integer of type `type_`, modulo its width, or to `index`."""
        if isinstance(type_, IndexType):
            return self.ssa(index)
        if isinstance(index.value, int):
            return self.constant(index.value, type_)
        return self.cast_index(index.value, type_)

    def broadcast(self, value: SSAValue, lanes: int) -> SSAValue:
        """`value` in every lane."""
        return self.emit(vector.BroadcastOp, (value,), vector_type(value.type, lanes))

    # Memory

    def address(self, pointer: Pointer) -> SSAValue:
        """Returns a handle as an address."""
        return self.cast(pointer.base, ADDRESS)

    def view(self, pointer: Pointer, element: Attribute) -> SSAValue:
        """Returns the memory at a handle as a one-dimensional memref of `element`s."""
        if isinstance(pointer.base.type, MemRefType) and pointer.base.type.element_type == element:
            return pointer.base
        return self.cast(pointer.base, flat_type(element))

    def cast(self, value: SSAValue, type_: Attribute) -> SSAValue:
        """Returns the same address at another type; no machine code results."""
        if value.type == type_:
            return value
        if isinstance(value.type, MemRefType) and isinstance(type_, MemRefType):
            value = self.cast(value, ADDRESS)
        return self.emit(UnrealizedConversionCastOp, (value,), type_)

    def buffer(self, value: SSAValue) -> Buffer:
        """Returns the lowered form of a buffer. Raises MirError if it is not declared yet."""
        found = self.buffers.get(value)
        if found is None:
            raise error_at(value, "this buffer is used before it is declared")
        return found

    def linear(self, buffer: Buffer, indices: Sequence[Index]) -> Index:
        """Returns the distance of an element from the buffer's base, in elements."""
        total = buffer.offset
        for index, stride in zip(indices, buffer.strides, strict=True):
            total = self.index_add(total, self.index_mul(index, stride))
        return total


@memoized
def is_index_dtype(type_: Attribute) -> bool:
    """Returns whether arithmetic on this dtype may be done in `index`: signed scalars of 32 or 64 bits."""
    return isinstance(type_, IntegerType) and not is_unsigned(type_) and type_.width.data in (32, 64)
