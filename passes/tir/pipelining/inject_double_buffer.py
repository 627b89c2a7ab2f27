"""The pass `inject-double-buffer`: fills memory for the next iteration during this one, as in TVM.

    for i in range(8):                            B[0:4] = A[0:4]
        with T.attr(B, "double_buffer_scope"):    for i in range(8):
            B[0:4] = A[4 * i:4 * i + 4]      →        if i + 1 < 8: B[(i + 1) % 2 * 4:…] = A[4 * (i + 1):…]
        … B[j] …                                      … B[i % 2 * 4 + j] …

`T.attr(p, "double_buffer_scope", 1)` says that the statements after it fill the memory `p` for one iteration of the loop
around. The memory becomes twice as large: the first half is filled before the loop; in iteration i the half of iteration i + 1 is
filled, while the half of iteration i is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerType, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ....dialects import tir
from ....dialects.arith import Analyzer
from ....dialects.tir.buffer import buffer_name
from ....dialects.tir.operators import Const, ExprBuilder, Value, as_const
from ....dialects.tir.types import HandleType, element_of
from ....support.diagnostics import error_at
from ....support.edit import erase_op, insert_ops_before
from ....support.effects import is_side_effect_free
from ....support.walk import enclosing, following, owner_op, walk_ops
from ..clone_body import copy_ops, replace_at_uses, variables_of
from ..data_dependence import Touched
from ..rewriting import acts_until_end, erase_dead, multiply_extent, prim_funcs, set_indices

SCOPE, WRITE = "double_buffer_scope", "double_buffer_write"


@dataclass(eq=False)
class Doubled:
    """Memory that is to be doubled: who fills it, and what reaches it."""

    attr: tir.AttrOp
    memory: tir.AllocateOp | tir.DeclBufferOp
    loop: tir.ForOp
    producer: list[Operation]
    """The statements that the attribute is about."""
    views: list[tir.DeclBufferOp] = field(default_factory=list[tir.DeclBufferOp])
    accesses: list[tir.LoadOp | tir.StoreOp] = field(default_factory=list["tir.LoadOp | tir.StoreOp"])

    @property
    def name(self) -> str:
        """Returns the name of the memory."""
        return self.memory.var_name.data


def _scope(attr: tir.AttrOp) -> Doubled:
    """Returns the double buffer that an attribute asks for.

    Raises MirError where it is not in a loop, or names memory that cannot be doubled.
    """
    value = attr.node
    owner = value.owner
    if isinstance(owner, tir.BufferGetOp):
        owner = owner.buffer.owner
    if isinstance(owner, tir.DeclBufferOp) and owner.source is not None:
        owner = owner.source.owner
    if not isinstance(owner, tir.AllocateOp | tir.DeclBufferOp):
        raise error_at(
            attr, f"{SCOPE} is not about memory that the function allocates", "name the handle of a T.allocate"
        )
    loop = next((outer for outer in enclosing(attr) if isinstance(outer, tir.ForOp)), None)
    if loop is None or owner.parent_op() is None:
        raise error_at(
            attr, f"the {SCOPE} of '{owner.var_name.data}' is in no loop", "it is filled for each iteration of a loop"
        )
    found = Doubled(attr, owner, loop, following(attr))
    _reach(found)
    return found


def _reach(found: Doubled) -> None:
    """Collects all that accesses the memory: loads and stores of flat buffers."""
    pending: list[SSAValue] = [found.memory.result]
    if isinstance(found.memory, tir.DeclBufferOp):
        found.views.append(found.memory)
    while pending:
        value = pending.pop()
        for use in value.uses:
            match use.operation:
                case tir.LoadOp() as op:
                    found.accesses.append(op)
                case tir.StoreOp() as op if op.buffer is value:
                    found.accesses.append(op)
                case tir.DeclBufferOp() as op:
                    found.views.append(op)
                    pending.append(op.result)
                case tir.BufferGetOp() as op:
                    if isinstance(op.result.type, HandleType):
                        pending.append(op.result)
                case tir.AttrOp():
                    pass
                case _:
                    raise error_at(
                        use.operation,
                        f"the double buffer '{found.name}' is given away as a pointer",
                        "only loads and stores can be sent to one of its halves",
                    )
    flat = all(view.result.type.rank == 1 and not view.stride_dims.data for view in found.views)
    if not flat or (isinstance(found.memory, tir.AllocateOp) and len(found.memory.extents) != 1):
        raise error_at(
            found.memory,
            f"the double buffer '{found.name}' is not flat",
            "run flatten-buffer before inject-double-buffer",
        )


def _check(found: Doubled) -> None:
    """Raises MirError where filling the memory an iteration early would change what the loop computes."""
    name, loop, attr = found.name, found.loop, found.attr
    home = attr.parent_op()
    while isinstance(home, tir.ScopeOp):
        home = home.parent_op()
    if home is not loop:
        raise error_at(
            attr, f"the {SCOPE} of '{name}' is under a condition", "it is filled in every iteration of its loop"
        )
    order = {op: number for number, op in enumerate(walk_ops(loop))}
    filling = {inner for op in found.producer for inner in walk_ops(op)}
    if found.memory not in order:
        raise error_at(
            found.memory, f"the double buffer '{name}' outlives the iterations of loop '{loop.var_name.data}'",
            "allocate it in the loop: each iteration fills all that it reads",
        )  # fmt: skip
    for access in found.accesses:
        if isinstance(access, tir.StoreOp) != (access in filling) or order.get(access, -1) < order[attr]:
            verb = "written outside of its" if isinstance(access, tir.StoreOp) else "read before the end of its"
            raise error_at(
                access, f"the double buffer '{name}' is {verb} {SCOPE}",
                "what fills it is in the scope, what reads it after the scope: with T.attr(…):",
            )  # fmt: skip
    roots = Touched([], order)
    written = {roots.root(op.buffer) for op in order if isinstance(op, tir.StoreOp)}
    for op in filling:
        if isinstance(op, tir.CallOp) and not is_side_effect_free(op):
            raise error_at(
                op, f"what fills the double buffer '{name}' calls '{op.intrinsic.data}'", "it only loads and stores"
            )
        if isinstance(op, tir.StoreOp) and roots.root(op.buffer) is not found.memory.result:
            owner = roots.root(op.buffer).owner
            if owner not in filling:
                raise error_at(
                    op, f"what fills the double buffer '{name}' writes '{buffer_name(op.buffer)}' as well", _EARLY
                )
    for op in (*filling, *_needed(found)):
        if (
            isinstance(op, tir.LoadOp)
            and roots.root(op.buffer) in written
            and roots.root(op.buffer).owner not in filling
        ):
            raise error_at(
                op,
                f"what fills the double buffer '{name}' reads '{buffer_name(op.buffer)}', which the loop writes",
                _EARLY,
            )


_EARLY = "it is filled one iteration early: that must not change what it is filled with, nor anything else"


def _needed(found: Doubled) -> list[Operation]:
    """Returns the ops of the loop whose results the statements that fill the memory use, in order."""
    order = {op: number for number, op in enumerate(walk_ops(found.loop))}
    inside = {inner for op in found.producer for inner in walk_ops(op)}
    kept = {found.memory, *found.views}
    needed: dict[Operation, None] = {}
    pending = [operand for inner in inside for operand in inner.operands]
    while pending:
        owner = pending.pop().owner
        if isinstance(owner, Operation) and owner in order and owner not in inside | kept and owner not in needed:
            needed[owner] = None
            pending += [operand for inner in walk_ops(owner) for operand in inner.operands]
    return sorted(needed, key=order.__getitem__)


class Injector:
    """Rewrites one double buffer."""

    def __init__(self, found: Doubled):
        self.found = found
        self.loop = found.loop
        self.type = found.loop.min.type

    def run(self) -> None:
        """Doubles the memory, fills it before the loop and, in each iteration, for the next."""
        found, loop = self.found, self.loop
        stride = self.move_memory()
        needed = _needed(found)
        for access in found.accesses:
            if isinstance(access, tir.LoadOp):
                self.shift(access, lambda _: loop.loop_var, stride)
        # Before the loop: for the first iteration.
        first = self.copies(needed, loop.min, stride)
        builder = ExprBuilder(loop.location)
        home = loop.parent
        assert home is not None
        if _has_iterations(loop):
            scope: Operation = tir.ScopeOp(Region(first))
            if not any(map(acts_until_end, first.ops)):
                ops = list(first.ops)
                for op in ops:
                    op.detach()
                home.insert_ops_before(ops, loop)
                scope = loop
        else:
            some = builder.value(builder.binary(tir.LtOp, Const(0, self.type), loop.extent))
            scope = tir.IfOp(some, Region(first))
        if scope is not loop:
            scope.location = found.attr.location
            home.insert_ops_before([*builder.ops, scope], loop)
        # In each iteration: for the next one, if there is one.
        builder = ExprBuilder(found.attr.location)
        after = builder.binary(tir.AddOp, loop.loop_var, Const(1, self.type))
        low = as_const(loop.min)
        end: Value = (
            loop.extent if low is not None and not low.value else builder.binary(tir.AddOp, loop.min, loop.extent)
        )
        condition = builder.value(builder.binary(tir.LtOp, after, end))
        body = self.copies(needed, None, stride)
        handle = self.handle()
        one = tir.ConstOp.int(1)
        mark = tir.AttrOp(handle, WRITE, one)
        mark.location = one.location = found.attr.location
        ahead = [one, mark] if isinstance(handle.owner, tir.AllocateOp) else [handle.owner, one, mark]
        assert all(isinstance(op, Operation) for op in ahead)
        if body.first_op is None:
            body.add_ops(ahead)  # pyright: ignore[reportArgumentType]
        else:
            body.insert_ops_before(ahead, body.first_op)  # pyright: ignore[reportArgumentType]
        branch = tir.IfOp(condition, Region(body))
        branch.location = found.attr.location
        insert_ops_before([*builder.ops, branch], found.attr)
        for op in (*reversed(found.producer), found.attr):
            erase_op(op)

    def handle(self) -> SSAValue:
        """Returns the pointer to the memory; for a declared buffer, the result of a new detached op."""
        memory = self.found.memory
        if isinstance(memory, tir.AllocateOp):
            return memory.result
        type_ = memory.result.type
        return tir.BufferGetOp(memory.result, "data", HandleType.get(type_.dtype, type_.scope.data)).result

    def move_memory(self) -> SSAValue | Const:
        """Allocates twice the memory before the loop; returns the size of a half."""
        found, loop = self.found, self.loop
        memory, home = found.memory, loop.parent
        assert home is not None
        inside = set(walk_ops(loop))
        views = [view for view in found.views if view is not memory and view in inside]
        gets = [use.operation for use in memory.result.uses if isinstance(use.operation, tir.BufferGetOp)]
        moved = {memory, *views, *gets}
        for op in (memory, *views):
            for operand in op.operands:
                maker = owner_op(operand)
                if maker in inside and maker not in moved and not isinstance(maker, tir.ConstOp):
                    raise error_at(
                        memory, f"the size of the double buffer '{found.name}' is computed in the loop", "compute it before"
                    )  # fmt: skip
                if isinstance(maker, tir.ConstOp) and maker in inside:
                    maker.detach()
                    home.insert_op_before(maker, loop)
                    inside.discard(maker)
        builder = ExprBuilder(memory.location)
        if isinstance(memory, tir.AllocateOp):
            known = as_const(memory.extents[0])
            stride: SSAValue | Const = memory.extents[0] if known is None else known
            double = builder.value(builder.binary(tir.MulOp, stride, Const(2, memory.extents[0].type)))
            memory.operands[0] = double
        else:
            extent = memory.extents()[0]
            stride = Const(extent, self.type) if isinstance(extent, int) else extent
        memory.detach()
        home.insert_ops_before([*builder.ops, memory], loop)
        for op in (*(get for get in gets if get in inside), *views):
            op.detach()
            home.insert_op_before(op, loop)
        for view in found.views:
            multiply_extent(view, 2)
        return stride

    def shift(
        self, access: tir.LoadOp | tir.StoreOp, iteration: Callable[[ExprBuilder], Value], stride: SSAValue | Const
    ) -> None:
        """Shifts an access to the half of an iteration."""
        builder = ExprBuilder(access.location)
        index = access.indices[0]
        half = builder.binary(tir.FloorModOp, iteration(builder), Const(2, self.type))
        offset = builder.cast(builder.node(tir.MulOp, half, builder.cast(stride, self.type)), element_of(index.type))
        value = builder.value(builder.binary(tir.AddOp, offset, index))
        insert_ops_before(builder.ops, access)
        set_indices(access, [value])

    def copies(self, needed: Sequence[Operation], iteration: SSAValue | None, stride: SSAValue | Const) -> Block:
        """Clones the statements that fill the memory, for one iteration, or for the one after the loop's."""
        found, loop = self.found, self.loop
        block = Block()
        values = {variable: loop.loop_var if iteration is None else iteration for variable in variables_of(loop)}
        block.add_ops(copy_ops([*needed, *found.producer], values))
        ops = list(block.ops)
        stores = [inner for op in ops for inner in walk_ops(op) if isinstance(inner, tir.StoreOp)]

        def next_iteration(builder: ExprBuilder) -> Value:
            return builder.binary(tir.AddOp, loop.loop_var, Const(1, self.type))

        def same_iteration(builder: ExprBuilder) -> Value:
            assert iteration is not None
            return as_const(iteration) or iteration

        if iteration is None:
            replace_at_uses((inner for op in ops for inner in walk_ops(op)), loop.loop_var, next_iteration)
        buffers = {view.result for view in found.views}
        for store in stores:
            if store.buffer in buffers:
                self.shift(store, next_iteration if iteration is None else same_iteration, stride)
        return block


def _has_iterations(loop: tir.ForOp) -> bool:
    """Returns whether a loop is proven to have at least one iteration."""
    analyzer = Analyzer()
    return analyzer.can_prove_ge0(analyzer.expr(loop.extent) - 1)


def _split(loop: tir.ForOp, factor: int) -> None:
    """Unrolls a loop by `factor`, with the remaining iterations after it."""
    low = as_const(loop.min)
    if low is None or low.value or not isinstance(loop.min.type, IntegerType):
        raise error_at(
            loop,
            f"loop '{loop.var_name.data}' of a double buffer cannot be split: it does not start at 0",
            "start at 0",
        )
    type_, home = loop.min.type, loop.parent
    assert home is not None
    ops = list(loop.body.block.ops)

    def iteration(value: Callable[[ExprBuilder], Value], is_tail: bool) -> list[Operation]:
        """Clones the body for one iteration."""
        copies = copy_ops(ops, {loop.var: loop.loop_var} if loop.var is not None else {})
        body = Block()
        body.add_ops(copies)
        replace_at_uses((inner for op in copies for inner in walk_ops(op)), loop.loop_var, value)
        marks = [inner for op in copies for inner in walk_ops(op) if isinstance(inner, tir.AttrOp)] if is_tail else []
        for mark in marks:
            if mark.key.data == WRITE:
                erase_op(mark)
        made = list(body.ops)
        for op in made:
            op.detach()
        if any(map(acts_until_end, made)):
            body.add_ops(made)
            scope = tir.ScopeOp(Region(body))
            scope.location = loop.location
            return [scope]
        return made

    builder = ExprBuilder(loop.location)
    extent: Value = loop.extent
    if not _has_iterations(loop):
        extent = builder.binary(tir.MaxOp, extent, Const(1, type_))
    rest = builder.binary(tir.SubOp, extent, Const(1, type_))
    outer_extent = builder.binary(tir.FloorDivOp, rest, Const(factor, type_))
    base = builder.binary(tir.MulOp, outer_extent, Const(factor, type_))
    outer = tir.ForOp(f"{loop.var_name.data}_outer", loop.min, builder.value(outer_extent), kind=loop.kind.data)
    outer.location = loop.location

    def written_out(number: int) -> Callable[[ExprBuilder], Value]:
        return lambda b: b.binary(
            tir.AddOp, b.binary(tir.MulOp, outer.loop_var, Const(factor, type_)), Const(number, type_)
        )

    def of_tail(number: int) -> Callable[[ExprBuilder], Value]:
        return lambda b: b.binary(tir.AddOp, base, Const(number, type_))

    for number in range(factor):
        outer.body.block.add_ops(iteration(written_out(number), is_tail=False))
    tail: list[Operation] = []
    for number in range(factor):
        inner = ExprBuilder(loop.location)
        condition = inner.binary(tir.LtOp, of_tail(number)(inner), loop.extent)
        known = as_const(condition)
        if known is not None:
            tail += iteration(of_tail(number), is_tail=True) if known.value else []
            continue
        block = Block()
        branch = tir.IfOp(inner.value(condition), Region(block))
        branch.location = loop.location
        block.add_ops(iteration(of_tail(number), is_tail=True))
        tail += [*inner.ops, branch]
    home.insert_ops_before([*builder.ops, outer, *tail], loop)
    erase_op(loop)


@dataclass(frozen=True)
class InjectDoubleBuffer(ModulePass):
    """Fills memory marked by the attribute `double_buffer_scope` one iteration early, in halves.

    With `split_loop`, 1 or an even number, the loop is unrolled by it.
    """

    name = "inject-double-buffer"
    split_loop: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrites the double buffers of every prim_func of the module.

        Raises MirError for a `split_loop` that is odd, and where filling memory early would change what is computed.
        """
        if self.split_loop < 0 or (self.split_loop % 2 and self.split_loop != 1):
            raise error_at(
                op, f"the option split-loop of inject-double-buffer is {self.split_loop}",
                "it is 0 (no split), 1 or an even number, for halves alternate",
            )  # fmt: skip
        for func in prim_funcs(op):
            attrs = [a for a in walk_ops(func) if isinstance(a, tir.AttrOp) and a.key.data == SCOPE]
            loops: dict[tir.ForOp, None] = {}
            for attr in reversed(attrs):
                found = _scope(attr)
                _check(found)
                Injector(found).run()
                loops[found.loop] = None
            if self.split_loop:
                for loop in loops:
                    _split(loop, self.split_loop)
            if attrs:
                erase_dead(func)
