"""What a block reads and writes, where the text does not say: TVM's region inference.

Each access is a box; loop variables inside the block are relaxed to the range they run over, accesses of one buffer are
joined to one box. Exact for indices that are sums of variables times constants, floor division and modulo by constants;
where a bound is not known the whole dimension is taken. (TVM 0.16: `GetBlockAccessRegion`, used by its parser.)
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects.builtin import IntegerType, StringAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from ...support.diagnostics import error_at
from ..tir.arithmetic import AddOp, BinaryOp, FloorDivOp, FloorModOp, MaxOp, MinOp, MulOp, SubOp
from ..tir.buffer import (
    AllocateOp,
    AllocBufferOp,
    BufferGetOp,
    BufferOp,
    BufferRegionOp,
    DeclBufferOp,
    LoadOp,
    MatchBufferOp,
    StoreOp,
    buffer_name,
)
from ..tir.expr import CallOp, ConstOp, LetOp, RampOp, SelectOp, VarOp
from ..tir.operators import Const, ExprBuilder, Value, as_const
from ..tir.stmt import BlockOp, ForOp, InitOp, ReadsOp, WritesOp
from ..tir.types import I32, BufferType
from .linear_form import Linear, LinearAtom, copy_tree


@dataclass(slots=True)
class _Span:
    """The values an index takes, both ends included; `exact` is the one expression that it is, when it is one."""

    low: Linear | None
    high: Linear | None
    exact: SSAValue | None = None


@dataclass(slots=True)
class Box:
    """A region to be built: for each dimension a span, of the index dtype."""

    buffer: SSAValue
    spans: list[_Span]
    types: list[Attribute]
    inside: Container[Operation]

    def build(self, builder: ExprBuilder) -> SSAValue:
        """Emits the `tir.buffer_region`."""
        mins: list[SSAValue] = []
        extents: list[SSAValue] = []
        sizes = _sizes(self.buffer)
        for dim, (span, type_) in enumerate(zip(self.spans, self.types, strict=True)):
            if span.exact is not None:
                low: Value = copy_tree(span.exact, builder, self.inside)
                extent: Value = Const(1, low.type)
            elif span.low is None or span.high is None or _is_dtype_bound(span.low, span.high):
                # Nothing is known, or no more than what the dtype of a symbolic size says.
                size = sizes[dim]
                extent = size
                low = Const(0, size.type)
            else:
                low = builder.value(span.low.build(builder, type_, self.inside))
                extent = span.high.plus(span.low, -1).plus(Linear(1)).build(builder, type_, self.inside)
            low, extent = builder.match(low, extent)
            mins.append(builder.value(low))
            extents.append(builder.value(extent))
        return builder.emit(BufferRegionOp(self.buffer, mins, extents))


def _sizes(buffer: SSAValue) -> list[Value]:
    made = buffer.owner
    assert isinstance(buffer.type, BufferType)
    open_sizes: Iterator[SSAValue] = iter(made.shape if isinstance(made, BufferOp) else ())
    return [
        Const(d.value.data, d.type) if hasattr(d, "value") else next(open_sizes)  # pyright: ignore
        for d in buffer.type.shape.data
    ]


def block_regions(builder: ExprBuilder, block: BlockOp, body: Iterable[Operation]) -> tuple[list[Box], list[Box]]:
    """What a block whose (not yet attached) body is given reads and writes, in order of first access.

    Raises MirError where memory is accessed in a way that cannot be seen (through a handle).
    """
    body = list(body)
    analysis = _Analysis(block, body)
    analysis.visit(body)
    reads, writes = list(analysis.reads.values()), list(analysis.writes.values())
    if analysis.has_init:
        reads = [box for box in reads if box.buffer not in analysis.writes]
    return reads, writes


def infer_regions(block: BlockOp) -> None:
    """Writes at the head of an attached block without reads and writes what its body accesses.

    Raises MirError as `block_regions` does.
    """
    body = block.body.block
    builder = ExprBuilder()
    builder.location = block.location
    reads, writes = block_regions(builder, block, body.ops)
    for op, boxes in ((ReadsOp, reads), (WritesOp, writes)):
        builder.ops.append(op.create(operands=[box.build(builder) for box in boxes], location=block.location))
    first = body.first_op
    if first is None:
        body.add_ops(builder.ops)
    else:
        body.insert_ops_before(builder.ops, first)


class _Analysis:
    def __init__(self, block: BlockOp, body: Sequence[Operation]):
        self.block = block
        self.body = body
        self.reads: dict[SSAValue, Box] = {}
        self.writes: dict[SSAValue, Box] = {}
        self.own: set[SSAValue] = set()
        self.views: dict[SSAValue, SSAValue] = {}
        self.has_init = False
        self.spans: dict[SSAValue, _Span] = {}
        # Loop variables and axes, and every op, of the block's body.
        self.inner: set[SSAValue] = set()
        self.inside: set[Operation] = set()
        self.dependent: dict[SSAValue, bool] = {}
        self.atoms: dict[SSAValue, Hashable] = {}

    # Accesses

    def visit(self, ops: Iterable[Operation]) -> None:
        """Collects the accesses of ops, in order."""
        for op in ops:
            self.inside.add(op)
            match op:
                case LoadOp():
                    if not _is_address(op):
                        self.access(self.reads, op.buffer, op.indices)
                case StoreOp():
                    self.access(self.writes, op.buffer, op.indices)
                case AllocBufferOp() | AllocateOp():
                    self.own.add(op.results[0])
                case DeclBufferOp():
                    if op.source is None or op.source in self.own:
                        self.own.add(op.result)
                case MatchBufferOp():
                    if op.source is not None:
                        self.views[op.result] = op.source
                case BufferGetOp() if op.field.data == "data":
                    self.pointer(op)
                case ForOp():
                    self.inner.add(op.body.block.args[0])
                    self.visit(op.body.block.ops)
                case BlockOp():
                    self.nested(op)
                case ReadsOp() | WritesOp():
                    pass
                case _:
                    self.has_init = self.has_init or isinstance(op, InitOp)
                    for region in op.regions:
                        for inner in region.blocks:
                            self.visit(inner.ops)

    def nested(self, block: BlockOp) -> None:
        """A block inside: what it says that it reads and writes, its axes relaxed to what they are bound to."""
        for arg, binding in zip(block.iter_vars, block.bindings, strict=True):
            self.inner.add(arg)
            span = self.span(binding)
            self.spans[arg] = _Span(span.low, span.high)
        # What its regions are made of stands in it, before them: the block around needs expressions of its own.
        missing = 2
        for op in block.body.block.ops:
            missing -= isinstance(op, ReadsOp | WritesOp)
            if not missing:
                break
            self.inside.add(op)
        for kind, boxes in ((ReadsOp, self.reads), (WritesOp, self.writes)):
            op = block.find(kind)
            for region in op.operands if op is not None else ():
                made = region.owner
                if isinstance(made, BufferRegionOp):
                    self.box(boxes, made)

    def box(self, boxes: dict[SSAValue, Box], region: BufferRegionOp) -> None:
        """The access of a region."""
        spans: list[_Span] = []
        for low, extent in zip(region.mins, region.extents, strict=True):
            start, size = self.span(low), as_const(extent)
            if size is not None and size.value == 1:
                spans.append(start)
                continue
            count = self.span(extent).high
            known = start.high is not None and count is not None
            high = start.high.plus(count).plus(Linear(-1)) if known else None  # pyright: ignore
            spans.append(_Span(start.low, high))
        self.add(boxes, region.buffer, spans, [m.type for m in region.mins])

    def pointer(self, op: BufferGetOp) -> None:
        """`A.data`: known only as the argument of an access pointer, which says what it does."""
        buffer = op.buffer
        if buffer in self.own:
            return
        for use in op.result.uses:
            call = use.operation
            mask = as_const(call.operands[-1]) if isinstance(call, CallOp) and call.operands else None
            if not isinstance(call, CallOp) or call.intrinsic != StringAttr("tvm_access_ptr") or mask is None:
                raise error_at(
                    op,
                    f"what block '{self.block.block_name.data}' accesses through '{buffer_name(buffer)}.data' cannot be seen",
                    "write its T.reads(…) and T.writes(…)",
                )
            assert isinstance(buffer.type, BufferType)
            whole = [_Span(None, None)] * buffer.type.rank
            types: list[Attribute] = [I32] * buffer.type.rank
            for bit, boxes in ((1, self.reads), (2, self.writes)):
                if int(mask.value) & bit:
                    self.add(boxes, buffer, whole, types)

    def access(self, boxes: dict[SSAValue, Box], buffer: SSAValue, indices: Iterable[SSAValue]) -> None:
        """A load or store."""
        indices = list(indices)
        types: list[Attribute] = [i.type if isinstance(i.type, IntegerType) else I32 for i in indices]
        self.add(boxes, buffer, [self.span(i) for i in indices], types)

    def add(self, boxes: dict[SSAValue, Box], buffer: SSAValue, spans: list[_Span], types: list[Attribute]) -> None:
        """Joins an access with those of the same buffer."""
        source = self.views.get(buffer)
        if source is not None:
            if isinstance(source.owner, BufferRegionOp):
                self.box(boxes, source.owner)
            return
        if buffer in self.own:
            return
        before = boxes.get(buffer)
        if before is None:
            boxes[buffer] = Box(buffer, spans, types, self.inside)
        else:
            before.spans = [self.join(a, b) for a, b in zip(before.spans, spans, strict=True)]

    def join(self, a: _Span, b: _Span) -> _Span:
        """The least span over two."""
        if a.exact is not None and b.exact is not None and self.key(a.exact) == self.key(b.exact):
            return a
        if a.low is None or b.low is None or a.high is None or b.high is None:
            return _Span(None, None)
        return _Span(_extreme(MinOp, a.low, b.low), _extreme(MaxOp, a.high, b.high))

    # Indices

    @cached_property
    def stored(self) -> set[SSAValue]:
        """The buffers that the block stores to, through views, too."""
        inside = [op for each in self.body for op in each.walk()]
        stored: set[SSAValue] = {op.buffer for op in inside if isinstance(op, StoreOp)}
        for op in reversed(inside):
            if isinstance(op, MatchBufferOp | DeclBufferOp) and op.result in stored and op.source is not None:
                source = op.source.owner
                if isinstance(source, BufferRegionOp | BufferGetOp):
                    stored.add(source.buffer)
        return stored

    def varies(self, value: SSAValue) -> bool:
        """Whether a value depends on a loop or axis inside the block, is named, called for or chosen there, or is loaded from what
        the block has of its own or stores to: nothing that its regions could be told in."""
        known = self.dependent.get(value)
        if known is None:
            made = value.owner
            if isinstance(made, Block):
                known = value in self.inner
            elif made in self.inside and (isinstance(made, LetOp | CallOp | BufferOp) or made.regions):
                known = True
            elif isinstance(made, LoadOp):
                known = made.buffer in self.stored or any(self.varies(operand) for operand in made.operands)
            else:
                known = any(self.varies(operand) for operand in made.operands)
            self.dependent[value] = known
        return known

    def span(self, value: SSAValue) -> _Span:
        """The values an index takes while the loops inside the block run."""
        found = self.spans.get(value)
        if found is None:
            found = self.compute(value)
            self.spans[value] = found
        return found

    def compute(self, value: SSAValue) -> _Span:
        if isinstance(value, BlockArgument):
            loop = value.block.parent_op()
            if isinstance(loop, ForOp) and value in self.inner:
                low, first, count = self.span(loop.min).low, self.span(loop.min).high, self.span(loop.extent).high
                known = first is not None and count is not None
                return _Span(low, first.plus(count).plus(Linear(-1)) if known else None)  # pyright: ignore
        op = value.owner
        spans = self.of_op(op, value) if isinstance(op, Operation) else None
        if spans is None:
            if self.varies(value):
                return _Span(None, None)
            form = Linear(0, {LinearAtom(self.key(value), value): 1})
            spans = _Span(form, form)
        if not self.varies(value) and isinstance(value.type, IntegerType):
            spans.exact = value
        return spans

    def of_op(self, op: Operation, value: SSAValue) -> _Span | None:
        """The span of an operation on spans; None for one that is not taken apart."""
        if isinstance(op, ConstOp):
            const = as_const(value)
            return None if const is None else _Span(Linear(int(const.value)), Linear(int(const.value)))
        if isinstance(op, LetOp) and op in self.inside:
            inner = self.span(op.value)
            return _Span(inner.low, inner.high)
        if isinstance(op, RampOp):
            base, stride = self.span(op.base), as_const(op.stride)
            if base.low is None or base.high is None or stride is None:
                return _Span(None, None)
            reach = int(stride.value) * (op.result.type.shape.data[0].data - 1)
            return _Span(base.low.plus(Linear(min(reach, 0))), base.high.plus(Linear(max(reach, 0))))
        if isinstance(op, SelectOp):
            joined = self.join(self.span(op.true_value), self.span(op.false_value))
            return _Span(joined.low, joined.high)
        if not isinstance(op, BinaryOp) or type(op) not in _ARITHMETIC:
            return None
        a, b = self.span(op.lhs), self.span(op.rhs)
        if a.low is None or a.high is None or b.low is None or b.high is None:
            return None
        return _arithmetic(op, a.low, a.high, b.low, b.high)

    def key(self, value: SSAValue) -> Hashable:
        """Equal for values that are the same expression."""
        known = self.atoms.get(value)
        if known is None:
            made = value.owner
            const = as_const(value)
            if const is not None:
                known = ("const", const.value, const.type)
            elif isinstance(made, Block | VarOp | LetOp | BufferOp):
                known = id(value)
            else:
                properties = frozenset(made.properties.items())
                known = (made.name, properties, value.type, tuple(self.key(o) for o in made.operands))
            self.atoms[value] = known
        return known


def _is_address(load: LoadOp) -> bool:
    """Whether a load stands for the address of its element."""
    return all(
        isinstance(use.operation, CallOp) and use.operation.intrinsic.data == "address_of" for use in load.result.uses
    ) and bool(load.result.first_use)


def _point(op: type[BinaryOp], a: Linear, b: Linear) -> Linear:
    """An operation on two forms as an atom."""
    return Linear(0, {LinearAtom((op.name, a.key(), b.key()), op=op, parts=(a, b)): 1})


def _extreme(op: type[BinaryOp], a: Linear, b: Linear) -> Linear:
    difference = a.minus(b)
    if difference is None:
        return _point(op, a, b)
    return a if (difference <= 0) == (op is MinOp) else b


_ARITHMETIC = frozenset((AddOp, SubOp, MulOp, FloorDivOp, FloorModOp, MinOp, MaxOp))


def _arithmetic(op: Operation, a_low: Linear, a_high: Linear, b_low: Linear, b_high: Linear) -> _Span | None:
    match op:
        case AddOp():
            return _Span(a_low.plus(b_low), a_high.plus(b_high))
        case SubOp():
            return _Span(a_low.plus(b_high, -1), a_high.plus(b_low, -1))
        case MinOp() | MaxOp():
            return _Span(_extreme(type(op), a_low, b_low), _extreme(type(op), a_high, b_high))
        case MulOp():
            for (low, high), (x, y) in (((a_low, a_high), (b_low, b_high)), ((b_low, b_high), (a_low, a_high))):
                if not x.terms and x.minus(y) == 0:
                    first, last = low.times(x.constant), high.times(x.constant)
                    return _Span(first, last) if x.constant >= 0 else _Span(last, first)
        case FloorDivOp() | FloorModOp():
            if b_low.terms or b_low.minus(b_high) != 0 or b_low.constant <= 0:
                return None
            count = b_low.constant
            if isinstance(op, FloorDivOp):
                return _Span(_floordiv(a_low, count), _floordiv(a_high, count))
            return _floormod(a_low, a_high, count)
        case _:
            pass
    return None


def _parted(form: Linear, count: int) -> tuple[Linear, Linear]:
    """(whole, rest) with form = whole * count + rest, the rest's constant within 0 … count - 1."""
    whole = {a: f // count for a, f in form.terms.items() if f % count == 0}
    rest = {a: f for a, f in form.terms.items() if f % count}
    return Linear(form.constant // count, whole), Linear(form.constant % count, rest)


def _floordiv(form: Linear, count: int) -> Linear:
    whole, rest = _parted(form, count)
    return whole if not rest.terms else whole.plus(_point(FloorDivOp, rest, Linear(count)))


def _floormod(low: Linear, high: Linear, count: int) -> _Span:
    distance = high.minus(low)
    if distance is not None and distance < count:
        _, rest = _parted(low, count)
        if not rest.terms and rest.constant + distance < count:
            return _Span(rest, rest.plus(Linear(distance)))
        if distance == 0:
            form = _point(FloorModOp, rest, Linear(count))
            return _Span(form, form)
    return _Span(Linear(0), Linear(count - 1))


def _is_dtype_bound(low: Linear, high: Linear) -> bool:
    """Whether the range is that of all int32 numbers, shifted: the bound of a size that nothing else is known of."""
    return max(abs(low.constant), abs(high.constant - low.constant) + 1) >= (1 << 31) - 1
