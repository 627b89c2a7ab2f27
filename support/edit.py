"""Edits IR: creates, clones, inserts, moves, detaches and erases ops, named as xDSL's methods.

`insert_op_before`, `detach`, `erase_op`, `replace_all_uses_with` and the others have the same results as xDSL's methods, without
what xDSL checks for callers in general: lowering makes tens of thousands of ops. Left out are default
values of properties, and for ops without regions the walk up to see that they are not put inside of themselves.
`tests/support/test_edit.py` holds them to xDSL's own.
"""
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from xdsl.builder import Builder, InsertOpInvT
from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, Block, BlockOps, Operation, OpResult, Region, SSAValue, SSAValues, Use
from xdsl.rewriter import InsertPoint

from .walk import ops_in

OpT = TypeVar("OpT", bound=Operation)


def create_op(
    kind: type[OpT],
    operands: Sequence[SSAValue],
    result_types: Sequence[Attribute],
    properties: dict[str, Attribute],
    location: LocationAttr,
    successors: Sequence[Block] = (),
) -> OpT:
    """Creates an op without regions; `properties` becomes the op's own, and must be complete."""
    op = kind.__new__(kind)
    init_op(op, operands, result_types, properties, location)
    if successors:
        op._successors = tuple(successors)
        op._successor_uses = _used_by(op, successors)
    return op


def init_op(
    op: Operation,
    operands: Sequence[SSAValue],
    result_types: Sequence[Attribute],
    properties: dict[str, Attribute],
    location: LocationAttr,
) -> None:
    """Gives a new op its parts."""
    if operands:
        op._operands = SSAValues(operands)
        op._operand_uses = _used_by(op, operands)
    if len(result_types) == 1:
        op.results = SSAValues((OpResult(result_types[0], op, 0),))
    else:
        op.results = SSAValues([OpResult(type, op, index) for index, type in enumerate(result_types)])
    op.properties = properties
    op.attributes = {}
    op.location = location


def clone_op(op: OpT, operands: Sequence[SSAValue]) -> OpT:
    """Clones an op without regions and successors with other operands, detached."""
    assert not op.regions and not op.successors
    new = create_op(type(op), operands, [result.type for result in op.results], dict(op.properties), op.location)
    if op.attributes:
        new.attributes.update(op.attributes)
    return new


def clone_nested(op: OpT, values: dict[SSAValue, SSAValue]) -> OpT:
    """Clones an op with its regions, detached; its operands are mapped by `values`.

    The results and block arguments are added to `values`. Definitions must come before uses, as they do in regions of one block each.
    """
    operands = [values.get(operand, operand) for operand in op._operands]
    types = [result._type for result in op.results]
    copy = create_op(type(op), operands, types, dict(op.properties), op.location, op._successors)
    if op.attributes:
        copy.attributes.update(op.attributes)
    for old, new in zip(op.results, copy.results, strict=True):
        new._name = old._name
        values[old] = new
    for region in op.regions:
        inside = Region()
        copy.add_region(inside)
        for block in region.blocks:
            home = Block(arg_types=[argument._type for argument in block.args])
            inside.add_block(home)
            for old, new in zip(block.args, home.args, strict=True):
                new._name, new.location = old._name, old.location
                values[old] = new
            for each in block.ops:
                add_op(home, clone_nested(each, values))
    return copy


def _used_by(op: Operation, used: Sequence[SSAValue | Block]) -> tuple[Use, ...]:
    """Returns the uses that an op makes of values, or of blocks."""
    uses: list[Use] = []
    for index, each in enumerate(used):
        first = each.first_use
        use = Use(op, index, None, first)
        if first is not None:
            first._prev_use = use
        each.first_use = use
        uses.append(use)
    return tuple(uses)


def add_op(block: Block, op: Operation) -> None:
    """Appends a detached op to a block."""
    assert op.parent is None and (not op.regions or not op.is_ancestor(block))
    last = block._last_op
    op.parent = block
    if last is None:
        block._first_op = op
    else:
        op._prev_op = last
        last._next_op = op
    block._last_op = op


def insert_op_after(op: Operation, place: Operation) -> None:
    """Inserts a detached op after `place`, in its block."""
    _link(op, place.parent, place, place._next_op)


def insert_op_before(op: Operation, place: Operation) -> None:
    """Inserts a detached op before `place`, in its block."""
    _link(op, place.parent, place._prev_op, place)


def _link(op: Operation, block: Block | None, before: Operation | None, after: Operation | None) -> None:
    assert op.parent is None and block is not None and (not op.regions or not op.is_ancestor(block))
    op.parent = block
    op._prev_op, op._next_op = before, after
    if before is None:
        block._first_op = op
    else:
        before._next_op = op
    if after is None:
        block._last_op = op
    else:
        after._prev_op = op


def insert_ops_before(ops: Iterable[Operation], place: Operation) -> None:
    """Inserts detached ops before `place`, in its block, in order."""
    for op in ops:
        insert_op_before(op, place)


def detach(op: Operation) -> None:
    """Takes an op out of its block."""
    block, before, following = op.parent, op._prev_op, op._next_op
    assert block is not None
    if before is None:
        block._first_op = following
    else:
        before._next_op = following
    if following is None:
        block._last_op = before
    else:
        following._prev_op = before
    op.parent = op._prev_op = op._next_op = None


def erase_op(op: Operation) -> None:
    """Erases an op without uses, and detaches it from its block. Raises ValueError if a result is used."""
    for result in op.results:
        if result.first_use is not None:
            raise ValueError(f"{op.name} is erased, but one of its results is used")
    if op.parent is not None:
        detach(op)
    unlink_operands(op)
    # Classes that keep much drop it there: the op is part of a cycle with its results, which only a collection frees.
    if op.regions or op._successors or type(op).drop_all_references is not Operation.drop_all_references:
        op.drop_all_references()


def unlink_operands(op: Operation) -> None:
    """Removes an op's uses of its operands, though it still names them; idempotent."""
    for operand, use in zip(op._operands, op._operand_uses, strict=False):
        before, following = use._prev_use, use._next_use
        if before is None:
            operand.first_use = following
        else:
            before._next_use = following
        if following is not None:
            following._prev_use = before
    op._operand_uses = ()


def set_type(value: SSAValue, type: Attribute) -> None:
    """Changes the type of `value` in place; its uses stay."""
    value._type = type


def replace_all_uses_with(value: SSAValue, other: SSAValue) -> None:
    """Replaces all uses of `value` by `other`, which takes over the name unless it has one."""
    if value is other:
        return
    use = value.first_use
    while use is not None:
        following = use._next_use
        op, operands = use._operation, list(use._operation._operands)
        operands[use._index] = other
        op._operands = SSAValues(operands)
        first = other.first_use
        use._prev_use, use._next_use = None, first
        if first is not None:
            first._prev_use = use
        other.first_use = use
        use = following
    value.first_use = None
    if other._name is None:
        other._name = value._name


def move_before(ops: Iterable[Operation], anchor: Operation) -> None:
    """Moves ops, in order, to just before `anchor`."""
    for op in ops_in(ops.block) if isinstance(ops, BlockOps) else list(ops):
        detach(op)
        insert_op_before(op, anchor)


def move_to_end(ops: Iterable[Operation], block: Block) -> None:
    """Moves ops, in order, to the end of `block`."""
    for op in ops_in(ops.block) if isinstance(ops, BlockOps) else list(ops):
        detach(op)
        add_op(block, op)


def block_of_ops(ops: Iterable[Operation]) -> Region:
    """Returns a region of one block that takes the ops over."""
    block = Block()
    move_to_end(ops, block)
    return Region(block)


class PlacedBuilder(Builder):
    """A builder that sets the location of the ops that it inserts."""

    def __init__(self, place: InsertPoint, location: LocationAttr):
        super().__init__(place)
        self.location = location
        # For builders that take it over.
        self.operation_insertion_handler = [self._locate]

    def insert(self, op: InsertOpInvT, insertion_point: InsertPoint | None = None) -> InsertOpInvT:
        """Inserts an op, or several, at its place."""
        # Mostly one op without regions: `isinstance` would take a call of Python to say that it is an op.
        single: Any = op
        if getattr(op, "regions", True) or insertion_point is not None:
            for each in (op,) if isinstance(op, Operation) else op:
                each.location = self.location
            return super().insert(op, insertion_point)
        single.location = self.location
        place = self.insertion_point
        if place.insert_before is not None:
            insert_op_before(single, place.insert_before)
        else:
            add_op(place.block, single)
        return op

    def _locate(self, op: Operation) -> None:
        op.location = self.location

    def at_end(self, block: Block) -> PlacedBuilder:
        """Returns a builder for the end of another block."""
        return PlacedBuilder(InsertPoint.at_end(block), self.location)


def builder_before(op: Operation, location: LocationAttr | None = None) -> PlacedBuilder:
    """Returns a builder whose ops come before `op`, at its location or the one given."""
    return PlacedBuilder(InsertPoint.before(op), op.location if location is None else location)


def builder_at_end(block: Block, location: LocationAttr) -> PlacedBuilder:
    """Returns a builder whose ops come at the end of `block`."""
    return PlacedBuilder(InsertPoint.at_end(block), location)
