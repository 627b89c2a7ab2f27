"""Axes of blocks: creates blocks with given axes, and rewrites block bodies in terms of other axes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.dialects.builtin import DictionaryAttr
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue

from .....dialects import tir
from .....dialects.arith import Analyzer, Expr, symbol
from .....dialects.arith.expr import TRUE, ZERO, Atom, free_vars, substitute
from .....dialects.arith.from_ssa import is_index_type
from .....dialects.tir.buffer import NO_ATTRS
from .....dialects.tir.types import I1
from .....support.edit import builder_before, move_to_end
from .....support.walk import walk_ops
from ....tir.rewriting import erase_if_dead
from ...analysis.structure import const_int, is_inside
from .clone_expression import clone_value


@dataclass(frozen=True, eq=False)
class Axis:
    """An axis of a block to be created: `symbol` represents it until the block exists."""

    name: str
    kind: str
    min: Expr
    extent: Expr
    binding: Expr
    type: Attribute
    symbol: Expr = ZERO

    def __post_init__(self) -> None:
        if self.symbol is ZERO:
            object.__setattr__(self, "symbol", symbol(self.name))

    @property
    def atom(self) -> Atom:
        """Returns the variable that `symbol` is."""
        atom = self.symbol.atom
        assert atom is not None
        return atom

    @property
    def variable(self) -> SSAValue:
        """The value of an axis that a block has."""
        value = self.atom.payload
        assert isinstance(value, SSAValue)
        return value


def axes_of(block: tir.BlockOp, analyzer: Analyzer) -> list[Axis]:
    """Returns the axes that a block has."""
    rows = zip(
        block.iter_names.data,
        block.iter_types.data,
        block.dom_mins,
        block.dom_extents,
        block.bindings,
        block.iter_vars,
        strict=True,
    )
    return [
        Axis(
            name.data,
            kind.data,
            analyzer.expr(low),
            analyzer.expr(extent),
            analyzer.expr(binding),
            var.type,
            analyzer.expr(var),
        )
        for name, kind, low, extent, binding, var in rows
    ]


def axis_over(loop: tir.ForOp, name: str, kind: str, analyzer: Analyzer) -> Axis:
    """Returns an axis that is bound to a loop and has its range."""
    low, extent, variable = (analyzer.expr(v) for v in (loop.min, loop.extent, loop.loop_var))
    return Axis(name, kind, low, extent, variable, loop.loop_var.type)


def make_block(
    builder: Builder,
    name: str,
    axes: Sequence[Axis],
    analyzer: Analyzer,
    *,
    predicate: Expr = TRUE,
    annotations: DictionaryAttr = NO_ATTRS,
) -> tuple[tir.BlockOp, dict[Atom, Expr]]:
    """Inserts an empty block with these axes; returns it with the expression of each axis' symbol."""
    mins = [analyzer.to_ssa(a.min, builder, a.type) for a in axes]
    extents = [analyzer.to_ssa(a.extent, builder, a.type) for a in axes]
    bindings = [analyzer.to_ssa(a.binding, builder, a.type) for a in axes]
    condition = None if predicate == TRUE else analyzer.to_ssa(predicate, builder, I1)
    body = Region(Block(arg_types=[a.type for a in axes]))
    block = tir.BlockOp(
        name,
        [a.name for a in axes],
        [a.kind for a in axes],
        mins,
        extents,
        bindings,
        predicate=condition,
        annotations=annotations,
        body=body,
    )
    builder.insert(block)
    values: dict[Atom, Expr] = {}
    for axis, argument in zip(axes, body.block.args, strict=True):
        argument.name_hint = axis.name if SSAValue.is_valid_name(axis.name) else None
        values[axis.atom] = Analyzer().expr(argument)
    return block, values


def bind_long_axes(analyzer: Analyzer, block: tir.BlockOp) -> None:
    """Tells the ranges of a block's axes; one of a single value is to stand as itself, not as its value."""
    for variable, low, extent in zip(block.iter_vars, block.dom_mins, block.dom_extents, strict=True):
        if const_int(extent) != 1:
            analyzer.bind(variable, low, extent)


def move_body(old: tir.BlockOp, new: tir.BlockOp) -> None:
    """Moves a block's statements to the end of another; uses of the old axes are still to be replaced."""
    move_to_end(old.body.block.ops, new.body.block)


_ARITHMETIC: tuple[type[Operation], ...] = (tir.AddOp, tir.SubOp, tir.MulOp, tir.FloorDivOp, tir.FloorModOp)


def variable_of(e: Expr) -> SSAValue | None:
    """Returns the value that an expression is, when it is no more than that."""
    payload = None if e.atom is None else e.atom.payload
    return payload if isinstance(payload, SSAValue) else None


def replace_variables(root: Operation, values: Mapping[SSAValue, Expr], analyzer: Analyzer) -> None:
    """Replaces variables by expressions in the ops in `root`.

    Where a variable is part of index arithmetic, all of that arithmetic is simplified with what `analyzer` knows.
    """
    moved: dict[Atom, Expr] = {}
    for old, e in values.items():
        new = variable_of(e)
        atom = Analyzer().expr(old).atom
        if new is not None and new.type == old.type:
            old.replace_uses_with_if(new, lambda use: is_inside(use.operation, root))
        elif atom is not None:
            moved[atom] = e
    if not moved:
        return
    for op in list(walk_ops(root)):
        if op is root or _is_index_arithmetic(op):
            continue
        for index, operand in enumerate(op.operands):
            if not (operand in values or _is_arithmetic(operand, root)):
                continue
            e = analyzer.expr(operand)
            if not any(a in moved for a in free_vars(e)):
                continue
            short = analyzer.simplify(substitute(e, moved))
            op.operands[index] = analyzer.to_ssa(short, builder_before(op), operand.type)
            erase_if_dead(operand)
    _replace_rest(root, moved, analyzer)


def _is_arithmetic(value: SSAValue, root: Operation) -> bool:
    return isinstance(value, OpResult) and _is_index_arithmetic(value.op) and is_inside(value.op, root)


def _is_index_arithmetic(op: Operation) -> bool:
    return type(op) in _ARITHMETIC and all(map(is_index_type, op.result_types))


def _replace_rest(root: Operation, moved: Mapping[Atom, Expr], analyzer: Analyzer) -> None:
    """Replaces uses outside of the arithmetic that the analyzer reads (in values too deep for it, say)."""
    for atom, e in moved.items():
        old = atom.payload
        assert isinstance(old, SSAValue)
        for use in list(old.uses):
            if is_inside(use.operation, root) and use.operation is not root:
                value = analyzer.to_ssa(analyzer.simplify(e), builder_before(use.operation), old.type)
                use.operation.operands[use.index] = value


def variables_used(ops: Iterable[Operation], variables: Iterable[SSAValue]) -> set[SSAValue]:
    """Returns those of the variables that the ops use."""
    wanted = set(variables)
    return {operand for op in ops for operand in op.operands if operand in wanted}


def make_self_contained(part: Operation, block: Operation) -> None:
    """Clones into `part`, an op in `block`, the values that it uses of the block's body around it."""
    for op in list(walk_ops(part)):
        if op is part:
            continue
        for index, operand in enumerate(op.operands):
            owner = operand.owner
            if isinstance(owner, Operation) and is_inside(owner, block) and not is_inside(owner, part):
                op.operands[index] = clone_value(operand, {}, builder_before(op), block)
