"""Blocks: their axes, predicate, regions and head; a missing `T.reads` or `T.writes` is inferred."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.traits import is_side_effect_free

from ....dialects.arith.regions import BlockReadWriteDetector, copy_expression
from ....dialects.tir.buffer import NO_ATTRS
from ....dialects.tir.expr import LetOp, VarOp
from ....dialects.tir.operators import Const, Value, as_const
from ....dialects.tir.stmt import BlockOp, ForOp, InitOp, ReadsOp, WritesOp
from ....support.diagnostics import MirError
from ....support.edit import detach
from ....support.text import counted
from ....support.walk import ops_in
from ...python.tree import Assign, Call, Expr, Expression, Mapping, Sequence, Stmt, Token, With, called
from ..arguments import list_items, named_arguments
from ..expressions import expr, range_of, read_condition
from ..literals import read_dictionary, read_string
from ..reader import Reader, describe, segments
from ..registry import construct
from ..statements import statements
from .buffers import read_region

_AXES = {
    "T.axis.spatial": "S", "T.axis.S": "S", "T.axis.reduce": "R", "T.axis.R": "R", "T.axis.scan": "scan", "T.axis.opaque": "opaque",
    "T.axis.O": "opaque",
}  # fmt: skip


@dataclass
class Axes:
    """The axes of a block, as far as its statements have been read."""

    names: list[Token] = field(default_factory=list[Token])
    kinds: list[str] = field(default_factory=list[str])
    mins: list[SSAValue] = field(default_factory=list[SSAValue])
    extents: list[SSAValue] = field(default_factory=list[SSAValue])
    bindings: list[SSAValue] = field(default_factory=list[SSAValue])


def has_axes(body: list[Stmt]) -> bool:
    """Returns whether a block's statements bind axes."""
    return any(isinstance(s, Assign) and called(s.value).startswith("T.axis.") for s in body)


def contains_block(body: list[Stmt]) -> bool:
    """Returns whether there is a block among the statements, or in their bodies."""
    pending: list[Stmt] = list(body)
    while pending:
        statement = pending.pop()
        if isinstance(statement, With) and any(called(item) == "T.block" for item, _ in statement.items):
            return True
        pending += getattr(statement, "body", [])
        pending += getattr(statement, "orelse", [])
    return False


@construct.region("T.block")
def read_block(reader: Reader, call: Call, statement: With) -> None:
    """`with T.block("name"):`."""
    name_node, _ = named_arguments(reader, call, ("name", "no_realize"), 0)
    name = "" if name_node is None else read_string(reader, name_node, "a block's name")
    axes = Axes()
    predicate: SSAValue | None = None
    rest: list[Stmt] = []
    annotations = NO_ATTRS
    mark = reader.mark()
    # Axes and predicate are of the loops outside: their expressions come before the block.
    for inner in statement.body:
        value = inner.value if isinstance(inner, Assign | Expression) else None
        function = called(value)
        if function.startswith("T.axis."):
            with reader.recovering():
                axis_statement(reader, inner, axes)
        elif function == "T.where":
            pass
        elif function == "T.block_attr" and isinstance(value, Call):
            with reader.recovering():
                annotations = block_attr(reader, value, annotations)
        else:
            rest.append(inner)
    for inner in statement.body:
        value = inner.value if isinstance(inner, Expression) else None
        if isinstance(value, Call) and called(value) == "T.where":
            with reader.recovering():
                predicate = read_where(reader, value, predicate)
    reader.restore(mark)
    reader.location = reader.at(statement.token)
    block = Block(arg_types=[e.type for e in axes.extents])
    op = BlockOp.create(
        operands=[*axes.mins, *axes.extents, *axes.bindings, *([predicate] if predicate is not None else [])],
        properties={
            "operandSegmentSizes": segments(
                len(axes.mins), len(axes.extents), len(axes.bindings), int(predicate is not None)
            ),
            "block_name": StringAttr(name),
            "iter_names": ArrayAttr([]),
            "iter_types": ArrayAttr([StringAttr(k) for k in axes.kinds]),
            "annotations": annotations,
        },
        regions=[Region(block)],
        location=reader.location,
    )
    reader.ops.append(op)
    with reader.inside(block):
        names = [reader.bind(axis, arg) for axis, arg in zip(axes.names, block.args, strict=True)]
        op.properties["iter_names"] = ArrayAttr([StringAttr(n) for n in names])
        statements(reader, rest)
        complete(reader, op)


def block_attr(reader: Reader, call: Call, before: DictionaryAttr) -> DictionaryAttr:
    """`T.block_attr({…})`."""
    if len(call.arguments) != 1 or call.keywords:
        reader.fail(call, "T.block_attr takes one dictionary")
    return DictionaryAttr({**before.data, **read_dictionary(reader, call.arguments[0]).data})


def read_where(reader: Reader, call: Call, before: SSAValue | None) -> SSAValue:
    """`T.where(predicate)`."""
    if before is not None:
        reader.fail(call, "a block has one T.where", "join conditions with 'and'")
    if len(call.arguments) != 1 or call.keywords:
        reader.fail(call, "T.where takes one condition")
    return read_condition(reader, call.arguments[0], "the predicate of T.where")


def axis_statement(reader: Reader, statement: Stmt, axes: Axes) -> None:
    """`vi = T.axis.spatial(128, i)` or `vi, vj = T.axis.remap("SS", [i, j])`."""
    if not isinstance(statement, Assign) or not isinstance(statement.value, Call):
        reader.fail(
            statement.value if isinstance(statement, Expression) else None,
            "an axis needs a name",
            "write vi = T.axis.spatial(128, i)",
        )
    target, call = statement.target, statement.value
    names = target.items if isinstance(target, Sequence) else [target]
    for name in names:
        if not isinstance(name, Token) or name.type != "NAME" or "." in name:
            reader.fail(name, "an axis is bound to a name")
    read = construct.axis.get(called(call))
    if read is None:
        reader.fail(
            call,
            f"there is no {called(call)}",
            "an axis is T.axis.spatial, reduce, scan or opaque, or several by T.axis.remap",
        )
    read(reader, call, [n for n in names if isinstance(n, Token)], axes)


@construct.axis(*_AXES)
def single_axis(reader: Reader, call: Call, names: list[Token], axes: Axes) -> None:
    """`vi = T.axis.spatial(128, i)`."""
    kind = called(call)
    if len(names) != 1:
        reader.fail(names[0] if names else call, f"{kind} makes one axis", "several are made by T.axis.remap")
    dom, binding_node, _ = named_arguments(reader, call, ("dom", "binding", "dtype"), 2)
    assert dom is not None and binding_node is not None
    ends = dom.items if isinstance(dom, Sequence) else None
    if ends is not None and len(ends) != 2:
        reader.fail(dom, "an axis runs over an extent, or over a pair (start, stop)")
    if isinstance(dom, Call) and dom.function in ("T.Range", "I.Range") and len(dom.arguments) == 2:
        ends = dom.arguments
    if ends is not None:
        low, extent = range_of(reader, ends[0], ends[1])
    else:
        extent = expr(reader, dom)
        low = Const(0, extent.type)
    binding = expr(reader, binding_node)
    add_axis(reader, axes, names[0], _AXES[kind], low, extent, binding, dom)


def add_axis(
    reader: Reader, axes: Axes, name: Token, kind: str, low: Value, extent: Value, binding: Value, dom: Expr
) -> None:
    """One axis; a constant domain takes the binding's dtype, a constant binding the domain's."""
    reader.location = reader.at(dom)
    extent = as_const(extent) or extent
    if isinstance(extent, Const):
        # Of an extent that is computed, the start stays the value that it was computed from: the printer finds the end by it.
        low = as_const(low) or low
    if isinstance(extent, Const) and isinstance(low, Const) and not isinstance(binding, Const):
        low, extent = reader.cast(low, binding.type), reader.cast(extent, binding.type)
    low = reader.cast(low, extent.type)
    mins, extents = reader.value(low), reader.value(extent)
    reader.location = reader.at(name)
    bound = reader.value(reader.cast(binding, extent.type) if isinstance(binding, Const) else binding)
    if bound.type != extents.type:
        reader.fail(
            name,
            f"axis '{name}' runs over {describe(extents)}, but is bound to a value of dtype {describe(bound)}",
            "write the extent in the same dtype, like T.int64(128)",
        )
    axes.names.append(name)
    axes.kinds.append(kind)
    axes.mins.append(mins)
    axes.extents.append(extents)
    axes.bindings.append(bound)
    # Until the body begins, the name of the axis means the value that it is bound to: a T.where may use it.
    if name not in reader.names:
        reader.define(name, bound)


@construct.axis("T.axis.remap")
def remap(reader: Reader, call: Call, names: list[Token], axes: Axes) -> None:
    """`vi, vj = T.axis.remap("SR", [i, j])`: axes that run over the ranges of loops."""
    kinds_node, loops_node, _ = named_arguments(reader, call, ("kinds", "bindings", "dtype"), 2)
    kinds = read_string(reader, kinds_node, "the kinds of T.axis.remap")
    loops = list_items(reader, loops_node, "the loops of T.axis.remap")
    if not len(kinds) == len(loops) == len(names):
        reader.fail(
            call,
            f"T.axis.remap has {counted(len(names), 'name')}, {counted(len(kinds), 'kind')} and {counted(len(loops), 'loop')}",
            "each axis has one letter (S or R) and one loop variable",
        )
    for name, kind, loop in zip(names, kinds, loops, strict=True):
        if kind not in "SR":
            reader.fail(kinds_node, f"'{kind}' is not a kind of axis here", "S is spatial, R is reduce")
        value = expr(reader, loop)
        made = value.owner.parent_op() if isinstance(value, BlockArgument) else None
        if not isinstance(made, ForOp):
            reader.fail(
                loop,
                "T.axis.remap takes loop variables",
                "of an expression write T.axis.spatial(extent, expression)",
            )
        reader.location = reader.at(name)
        add_axis(reader, axes, name, kind, again(reader, made.min), again(reader, made.extent), value, loop)


def again(reader: Reader, value: SSAValue) -> Value:
    """A loop's bound for an axis: the number, the named value itself, or the expression again."""
    const = as_const(value)
    if const is not None:
        return const
    pending = [value]
    while pending:
        made = pending.pop().owner
        if isinstance(made, Block | VarOp | LetOp):
            continue
        if not is_side_effect_free(made) or made.regions:
            return value
        pending += made.operands
    return copy_expression(value, reader.emit)


@construct.statement("T.reads", "T.writes")
def regions_op(reader: Reader, call: Call) -> None:
    """`T.reads(A[i], B[0:4])`, `T.writes(C[i])`."""
    op = ReadsOp if call.function == "T.reads" else WritesOp
    arguments = call.arguments
    if len(arguments) == 1 and isinstance(arguments[0], Sequence):
        arguments = arguments[0].items
    if call.keywords or any(isinstance(a, Mapping) for a in arguments):
        reader.fail(call, f"{call.function} takes regions of buffers, like A[i, 0:4]")
    regions = [read_region(reader, a) for a in arguments]
    reader.ops.append(op.create(operands=regions, location=reader.at(call)))


@construct.statement("T.where", "T.block_attr")
def read_misplaced(reader: Reader, call: Call) -> None:
    """Refuses a statement that belongs directly into a block's head."""
    reader.fail(call, f"{call.function} belongs directly into a block", 'write it under with T.block("name"):')


@construct.region("T.init")
def read_init(reader: Reader, call: Call, statement: With) -> None:
    """`with T.init():`."""
    if any(isinstance(made, InitOp) for made in reader.ops):
        reader.fail(statement.token, "the block has a second T.init()", "write all that it does into the first")
    op = InitOp.create(regions=[Region(Block())], location=reader.at(statement.token))
    reader.ops.append(op)
    with reader.inside(op.body.block):
        statements(reader, statement.body)


def complete(reader: Reader, op: BlockOp) -> None:
    """Adds the `T.reads` or `T.writes` that the text leaves out, as TVM's parser does."""
    head: list[Operation] = []
    for made in reader.ops:
        if isinstance(made, ReadsOp | WritesOp):
            if any(type(made) is type(other) for other in head):
                reader.context.error(made, f"block '{op.block_name.data}' has two lists of {made.name[4:]}")
            head.append(made)
    missing = [kind for kind in (ReadsOp, WritesOp) if not any(isinstance(made, kind) for made in head)]
    if not missing:
        return
    body, reader.ops = reader.ops, []
    reader.location = op.location
    try:
        detector = BlockReadWriteDetector(body, op.block_name.data)
        accesses = {ReadsOp: detector.reads_beside_init(), WritesOp: detector.writes.values()}
        inferred = detector.declare(op.location, *((kind, accesses[kind]) for kind in missing))
        # Writes that are missing alone come after the reads.
        position = 0 if ReadsOp in missing else body.index(head[0]) + 1
        reader.ops, body = body[:position], body[position:]
        for made in ops_in(inferred):
            detach(made)
            reader.ops.append(made)
    except MirError as error:
        reader.context.report(error)
    finally:
        reader.ops += body
