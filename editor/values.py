"""Finds the ops and values that a place in the text means, and writes their types as the text would."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from ..dialects.relay.text import is_known
from ..support.diagnostics import source_position
from ..support.walk import walk_ops
from .analysis import Place
from .names import Symbol, names_in
from .parts import OpsByOffset
from .positions import Lines


def ops_by_offset(place: Place) -> OpsByOffset:
    """Returns the ops of an item by where they begin in its text."""
    known = place.part.by_offset
    if place.index not in known:
        known[place.index] = _index(place)
    return known[place.index]


def _index(place: Place) -> OpsByOffset:
    item = place.part.items[place.index]
    lines = Lines(item.text)
    ops: dict[int, list[Operation]] = {}
    arguments: dict[int, BlockArgument] = {}

    def offset(location: Attribute) -> int | None:
        position = source_position(location)
        return None if position is None else lines.place(position[1] - item.line + 1, position[2])

    for top in place.ops:
        for op in walk_ops(top):
            start = offset(op.location)
            if start is not None:
                ops.setdefault(start, []).append(op)
            for argument in (a for region in op.regions for block in region.blocks for a in block.args):
                where = offset(argument.location)
                if where is not None:
                    arguments.setdefault(where, argument)
    return OpsByOffset(sorted(ops), ops, arguments)


def ops_in(place: Place, start: int, end: int) -> list[Operation]:
    """Returns the outermost ops that begin in a stretch of an item's text, in their order."""
    index = ops_by_offset(place)
    first, last = bisect_left(index.starts, start), bisect_left(index.starts, end)
    found = [op for at in index.starts[first:last] for op in index.ops[at]]
    inside = set(found)
    order = {op: k for k, op in enumerate(op for top in place.ops for op in walk_ops(top))} if len(found) > 1 else {}
    return sorted((op for op in found if not _is_around(inside, op)), key=lambda op: order.get(op, 0))


def _is_around(ops: set[Operation], op: Operation) -> bool:
    around = op.parent_op()
    while around is not None:
        if around in ops:
            return True
        around = around.parent_op()
    return False


def value_of(place: Place, symbol: Symbol) -> SSAValue | None:
    """Returns the value that a name means; None where the item has none for it.

    While the item has an error, it is that of the name when the item had none.
    """
    value = _value(place, symbol)
    if place.earlier is None or (value is not None and is_known(value.type)):
        return value
    before = next((each for each in _definitions(place.earlier) if each.name == symbol.name), None)
    return value if before is None else _value(place.earlier, before)


def _definitions(place: Place) -> Iterator[Symbol]:
    return (each.symbol for each in names_in(place.item).occurrences if each.defines and each.symbol is not None)


def _value(place: Place, symbol: Symbol) -> SSAValue | None:
    for _ in range(_ALIASES):
        argument = ops_by_offset(place).arguments.get(symbol.definition.start)
        if argument is not None:
            return argument
        made = [op for op in ops_in(place, *symbol.statement) if op.results]
        if made:
            results = made[-1].results
            return results[symbol.index] if symbol.index < len(results) else results[0]
        # `%1 = %0;` makes no op: it is what the other name means.
        start, end = symbol.statement
        uses = [each for each in names_in(place.item).occurrences if start <= each.start < end and not each.defines]
        if len(uses) != 1 or uses[0].symbol is None:
            return None
        symbol = uses[0].symbol
    return None


_ALIASES = 10
"""How many names in a row may only be other names of a value."""


def type_words(type: Attribute) -> str:
    """Returns a type as its level writes it: `Tensor[(4), float32]`, `T.Buffer((4,), "float32")`."""
    from ..dialects.relay.text import type_text
    from ..dialects.te.types import TensorType as TeTensor
    from ..dialects.tir.types import BufferType, type_to_dtype
    from ..support.diagnostics import MirError

    match type:
        case BufferType():
            scope = "" if type.scope.data == "global" else f', scope="{type.scope.data}"'
            return f'T.Buffer({_shape(type.shape)}, "{type_to_dtype(type.dtype)}"{scope})'
        case TeTensor():
            return f"tensor {_shape(type.shape)}, {type_to_dtype(type.dtype)}"
        case _ if type.name.startswith("schedule."):
            return type.name.removeprefix("schedule.")
        case _ if type.name.startswith(("relay.", "tensor", "tuple")):
            return type_text(type)
        case _:
            try:
                return type_to_dtype(type)
            except MirError:
                return str(type)


def _shape(dims: ArrayAttr) -> str:
    # An extent that an operand holds is a name of the text, which the declaration shows.
    texts = [str(dim.value.data) if isinstance(dim, IntegerAttr) else "…" for dim in dims.data]
    return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"


def signature_at(place: Place, offset: int, names: tuple[str, ...]) -> str | None:
    """Returns the types of an operator's use at an offset of an item: `(A, B) -> C`; None without one."""
    for op in ops_by_offset(place).ops.get(offset, ()):
        if op.name.removeprefix("relay.") in names and op.results:
            operands = ", ".join(type_words(operand.type) for operand in op.operands)
            return f"({operands}) -> {', '.join(type_words(result.type) for result in op.results)}"
    return None


def blocks_and_loops(ops: list[Operation]) -> Iterator[tuple[str, str]]:
    """Yields ("block", name) and ("loop", name) for those of prim_funcs, in the order of the program."""
    from ..dialects import tir

    for top in ops:
        for op in walk_ops(top):
            match op:
                case tir.BlockOp():
                    yield "block", op.block_name.data
                case tir.ForOp():
                    yield "loop", op.var_name.data
                case _:
                    pass
