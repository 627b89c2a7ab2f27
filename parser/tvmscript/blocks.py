"""Blocks: their axes, predicate, regions and head; a missing `T.reads` or `T.writes` is inferred."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.traits import is_side_effect_free

from ...dialects.arith.block_regions import block_regions
from ...dialects.arith.linear_form import copy_tree
from ...dialects.tir.buffer import NO_ATTRS
from ...dialects.tir.expr import LetOp, VarOp
from ...dialects.tir.operators import Const, Value, as_const
from ...dialects.tir.stmt import BlockOp, ForOp, InitOp, ReadsOp, WritesOp
from ...support.diagnostics import MirError
from ...support.text import counted
from ..python.tree import Assign, Call, Expr, Expression, Mapping, Sequence, Stmt, Token, With
from .buffers import Buffers
from .expressions import hint, segments

_AXES = {
    "spatial": "S", "S": "S", "reduce": "R", "R": "R", "scan": "scan", "opaque": "opaque", "O": "opaque",
}  # fmt: skip


@dataclass
class _Axes:
    names: list[Token] = field(default_factory=list[Token])
    kinds: list[str] = field(default_factory=list[str])
    mins: list[SSAValue] = field(default_factory=list[SSAValue])
    extents: list[SSAValue] = field(default_factory=list[SSAValue])
    bindings: list[SSAValue] = field(default_factory=list[SSAValue])


def called(node: object) -> str:
    """The name of the function that an expression calls, or ""."""
    return str(node.function) if isinstance(node, Call) and isinstance(node.function, Token) else ""


def has_axes(body: list[Stmt]) -> bool:
    """Whether a block's statements bind axes."""
    return any(isinstance(s, Assign) and called(s.value).startswith("T.axis.") for s in body)


def contains_block(body: list[Stmt]) -> bool:
    """Whether there is a block among the statements, or in their bodies."""
    pending: list[Stmt] = list(body)
    while pending:
        statement = pending.pop()
        if isinstance(statement, With) and any(called(item) == "T.block" for item, _ in statement.items):
            return True
        pending += getattr(statement, "body", [])
        pending += getattr(statement, "orelse", [])
    return False


class Blocks(Buffers):
    """Reads `with T.block(…)` and `with T.init()`."""

    @abstractmethod
    def statements(self, body: list[Stmt]) -> None:
        """Reads statements into the current region."""

    def block(self, call: Call, statement: With) -> None:
        """`with T.block("name"):`."""
        name_node, _ = self.named_arguments(call, ("name", "no_realize"), 0)
        name = "" if name_node is None else self.string(name_node, "a block's name")
        axes = _Axes()
        predicate: SSAValue | None = None
        rest: list[Stmt] = []
        annotations = NO_ATTRS
        mark = self.mark()
        # Axes and predicate are of the loops outside: their expressions come before the block.
        for inner in statement.body:
            value = inner.value if isinstance(inner, Assign | Expression) else None
            function = called(value)
            if function.startswith("T.axis."):
                with self.recovering():
                    self.axis_statement(inner, function[len("T.axis.") :], axes)
            elif function == "T.where":
                pass
            elif function == "T.block_attr" and isinstance(value, Call):
                with self.recovering():
                    annotations = self.block_attr(value, annotations)
            else:
                rest.append(inner)
        for inner in statement.body:
            value = inner.value if isinstance(inner, Expression) else None
            if isinstance(value, Call) and called(value) == "T.where":
                with self.recovering():
                    predicate = self.where(value, predicate)
        self.restore(mark)
        self.location = self.at(statement.token)
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
            location=self.location,
        )
        self.ops.append(op)
        with self.inside(block):
            names = [self.bind(axis, arg) for axis, arg in zip(axes.names, block.args, strict=True)]
            op.properties["iter_names"] = ArrayAttr([StringAttr(n) for n in names])
            self.statements(rest)
            self.complete(op)

    def bind(self, name: Token, arg: BlockArgument) -> str:
        """Makes a region's argument visible; its name, unlike all others in scope."""
        arg.name_hint = hint(name)
        arg.location = self.at(name)
        self.define(name, arg)
        fresh = self.shown[arg] = self.fresh(name)
        return fresh

    def block_attr(self, call: Call, before: DictionaryAttr) -> DictionaryAttr:
        """`T.block_attr({…})`."""
        if len(call.arguments) != 1 or call.keywords:
            self.fail(call, "T.block_attr takes one dictionary")
        return DictionaryAttr({**before.data, **self.dictionary(call.arguments[0]).data})

    def where(self, call: Call, before: SSAValue | None) -> SSAValue:
        """`T.where(predicate)`."""
        if before is not None:
            self.fail(call, "a block has one T.where", "join conditions with 'and'")
        if len(call.arguments) != 1 or call.keywords:
            self.fail(call, "T.where takes one condition")
        return self.condition(call.arguments[0], "the predicate of T.where")

    # Axes

    def axis_statement(self, statement: Stmt, kind: str, axes: _Axes) -> None:
        """`vi = T.axis.spatial(128, i)` or `vi, vj = T.axis.remap("SS", [i, j])`."""
        if not isinstance(statement, Assign) or not isinstance(statement.value, Call):
            self.fail(
                statement.value if isinstance(statement, Expression) else None,
                "an axis needs a name",
                "write vi = T.axis.spatial(128, i)",
            )
        target, call = statement.target, statement.value
        names = target.items if isinstance(target, Sequence) else [target]
        for name in names:
            if not isinstance(name, Token) or name.type != "NAME" or "." in name:
                self.fail(name, "an axis is bound to a name")
        if kind == "remap":
            self.remap(call, [n for n in names if isinstance(n, Token)], axes)
            return
        if kind not in _AXES:
            self.fail(
                call,
                f"there is no T.axis.{kind}",
                "an axis is T.axis.spatial, reduce, scan or opaque, or several by T.axis.remap",
            )
        if len(names) != 1:
            self.fail(target, f"T.axis.{kind} makes one axis", "several are made by T.axis.remap")
        dom, binding_node, _ = self.named_arguments(call, ("dom", "binding", "dtype"), 2)
        assert dom is not None and binding_node is not None and isinstance(names[0], Token)
        ends = dom.items if isinstance(dom, Sequence) else None
        if ends is not None and len(ends) != 2:
            self.fail(dom, "an axis runs over an extent, or over a pair (start, stop)")
        if isinstance(dom, Call) and dom.function in ("T.Range", "I.Range") and len(dom.arguments) == 2:
            ends = dom.arguments
        if ends is not None:
            low, extent = self.range_of(ends[0], ends[1])
        else:
            extent = self.expr(dom)
            low = Const(0, extent.type)
        binding = self.expr(binding_node)
        self.add_axis(axes, names[0], _AXES[kind], low, extent, binding, dom)

    def add_axis(
        self, axes: _Axes, name: Token, kind: str, low: Value, extent: Value, binding: Value, dom: Expr
    ) -> None:
        """One axis; a constant domain takes the binding's dtype, a constant binding the domain's."""
        self.location = self.at(dom)
        extent = as_const(extent) or extent
        if isinstance(extent, Const):
            # Of an extent that is computed, the start stays the value that it was computed from: the printer finds the end by it.
            low = as_const(low) or low
        if isinstance(extent, Const) and isinstance(low, Const) and not isinstance(binding, Const):
            low, extent = self.cast(low, binding.type), self.cast(extent, binding.type)
        low = self.cast(low, extent.type)
        mins, extents = self.value(low), self.value(extent)
        self.location = self.at(name)
        bound = self.value(self.cast(binding, extent.type) if isinstance(binding, Const) else binding)
        if bound.type != extents.type:
            self.fail(
                name,
                f"axis '{name}' runs over {self.describe(extents)}, but is bound to a value of dtype {self.describe(bound)}",
                "write the extent in the same dtype, like T.int64(128)",
            )
        axes.names.append(name)
        axes.kinds.append(kind)
        axes.mins.append(mins)
        axes.extents.append(extents)
        axes.bindings.append(bound)
        # Until the body begins, the axis stands for what it is bound to: a T.where may name it.
        if name not in self.names:
            self.define(name, bound)

    def remap(self, call: Call, names: list[Token], axes: _Axes) -> None:
        """`vi, vj = T.axis.remap("SR", [i, j])`: axes that run over the ranges of loops."""
        kinds_node, loops_node, _ = self.named_arguments(call, ("kinds", "bindings", "dtype"), 2)
        kinds = self.string(kinds_node, "the kinds of T.axis.remap")
        loops = self.items(loops_node, "the loops of T.axis.remap")
        if not len(kinds) == len(loops) == len(names):
            self.fail(
                call,
                f"T.axis.remap has {counted(len(names), 'name')}, {counted(len(kinds), 'kind')} and {counted(len(loops), 'loop')}",
                "each axis has one letter (S or R) and one loop variable",
            )
        for name, kind, loop in zip(names, kinds, loops, strict=True):
            if kind not in "SR":
                self.fail(kinds_node, f"'{kind}' is no kind of axis here", "S is spatial, R is reduce")
            value = self.expr(loop)
            made = value.owner.parent_op() if isinstance(value, BlockArgument) else None
            if not isinstance(made, ForOp):
                self.fail(
                    loop,
                    "T.axis.remap takes loop variables",
                    "of an expression write T.axis.spatial(extent, expression)",
                )
            self.location = self.at(name)
            self.add_axis(axes, name, kind, self.again(made.min), self.again(made.extent), value, loop)

    def again(self, value: SSAValue) -> Value:
        """A loop's bound for an axis: the number, the named value itself, or the expression anew."""
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
        return copy_tree(value, self)

    # Head and completion

    def regions_op(self, call: Call) -> None:
        """`T.reads(A[i], B[0:4])`, `T.writes(C[i])`."""
        op = ReadsOp if call.function == "T.reads" else WritesOp
        arguments = call.arguments
        if len(arguments) == 1 and isinstance(arguments[0], Sequence):
            arguments = arguments[0].items
        if call.keywords or any(isinstance(a, Mapping) for a in arguments):
            self.fail(call, f"{call.function} takes regions of buffers, like A[i, 0:4]")
        regions = [self.region(a) for a in arguments]
        self.ops.append(op.create(operands=regions, location=self.at(call)))

    def init(self, statement: With) -> None:
        """`with T.init():`."""
        if any(isinstance(made, InitOp) for made in self.ops):
            self.fail(statement.token, "the block has a second T.init()", "write all that it does into the first")
        op = InitOp.create(regions=[Region(Block())], location=self.at(statement.token))
        self.ops.append(op)
        with self.inside(op.body.block):
            self.statements(statement.body)

    def complete(self, op: BlockOp) -> None:
        """Adds the `T.reads` or `T.writes` that the text leaves out, as TVM's parser does."""
        head: list[Operation] = []
        for made in self.ops:
            if isinstance(made, ReadsOp | WritesOp):
                if any(type(made) is type(other) for other in head):
                    self.context.error(made, f"block '{op.block_name.data}' has two lists of {made.name[4:]}")
                head.append(made)
        missing = [kind for kind in (ReadsOp, WritesOp) if not any(isinstance(made, kind) for made in head)]
        if not missing:
            return
        body, self.ops = self.ops, []
        self.location = op.location
        try:
            reads, writes = block_regions(self, op, body)
            if ReadsOp in missing:
                self.ops.append(ReadsOp.create(operands=[r.build(self) for r in reads], location=op.location))
            if WritesOp in missing:
                position = 0 if ReadsOp in missing else body.index(head[0]) + 1
                before, body = body[:position], body[position:]
                self.ops = [*before, *self.ops] if before else self.ops
                self.ops.append(WritesOp.create(operands=[w.build(self) for w in writes], location=op.location))
        except MirError as error:
            self.context.report(error)
        finally:
            self.ops += body
