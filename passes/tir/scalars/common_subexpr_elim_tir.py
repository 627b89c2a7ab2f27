"""The pass `common-subexpr-elim-tir`: computes equal expressions once, in a `T.LetStmt`.

    B[i] = A[i * 8 + j] + C[i * 8 + j]     →     with T.LetStmt(i * 8 + j) as x:
                                                     B[i] = A[x] + C[x]

As in TVM's pass of this name, loads, calls and vectors of scalars are not merged, and a let is placed in the
innermost region that holds all the uses, so that no loop computes what it need not.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ....dialects import tir
from ....dialects.arith import Analyzer, Kind
from ....dialects.arith import expr as x
from ....dialects.arith.from_ssa import is_index_type
from ....dialects.tir.arithmetic import BinaryOp
from ....dialects.tir.buffer import BufferOp
from ....support.edit import erase_op
from ....support.walk import walk_ops
from ..rewriting import prim_funcs

_ELIGIBLE = (BinaryOp, tir.NotOp, tir.SelectOp, tir.CastOp)


@dataclass
class Computation:
    """Equal expressions: the first of them, in program order, and the others.

    `home` is the innermost block around all.
    """

    first: Operation
    home: Block
    others: list[Operation] = field(default_factory=list[Operation])


class Eliminator:
    """Merges the equal expressions of one function."""

    def __init__(self, func: tir.PrimFuncOp, identify_equiv_terms: bool):
        self.func = func
        self.analyzer = Analyzer() if identify_equiv_terms else None
        self.numbers: dict[Hashable, int] = {}
        self.of_value: dict[SSAValue, int] = {}
        self.depth: dict[Block, int] = {}
        self.found: dict[int, Computation] = {}

    def run(self) -> None:
        """Finds, merges, names."""
        fixed = _declared(self.func)
        for op in walk_ops(self.func):
            for region in op.regions:
                for block in region.blocks:
                    self.depth[block] = self.depth.get(op.parent, -1) + 1 if op.parent is not None else 0
            if isinstance(op, _ELIGIBLE) and op not in fixed and op.parent is not None:
                self.note(op, op.parent)
        repeated = [c for c in self.found.values() if c.others]
        for computation in repeated:
            self.merge(computation)
        names = 0
        for computation in repeated:
            result = computation.first.results[0]
            if result.uses.get_length() > 1 and computation.first.parent is not None:
                names += 1
                _name(computation.first, f"cse_var_{names}")

    def note(self, op: Operation, block: Block) -> None:
        """Takes an expression down."""
        number = self.number(op.results[0])
        known = self.found.get(number)
        if known is None:
            self.found[number] = Computation(op, block)
        else:
            known.others.append(op)
            known.home = self.common(known.home, block)

    def number(self, value: SSAValue) -> int:
        """Returns equal numbers for values that are the same expression; operands are numbered first."""
        known = self.of_value.get(value)
        if known is None:
            known = self.of_value[value] = self.numbers.setdefault(self.key(value), len(self.numbers))
        return known

    def key(self, value: SSAValue) -> Hashable:
        op = value.owner
        if isinstance(op, tir.ConstOp):
            return ("const", op.value, value.type)
        if not isinstance(op, _ELIGIBLE):
            return id(value)
        if self.analyzer is not None and is_index_type(value.type):
            e = self.analyzer.expr(value)
            if all(atom.kind is not Kind.CALL for atom, _ in e.terms) and len(e.terms) < x.MAX_TERMS // 2:
                return (e, value.type)
        return (op.name, value.type, tuple(op.properties.items()), *(self.number(operand) for operand in op.operands))

    def common(self, a: Block, b: Block) -> Block:
        """Returns the innermost block around two."""
        while a is not b:
            if self.depth[a] < self.depth[b]:
                a, b = b, a
            outer = a.parent_op()
            if outer is None or outer.parent is None:
                return a
            a = outer.parent
        return a

    def merge(self, computation: Computation) -> None:
        """Replaces the others by the first."""
        first = computation.first
        if not self.move(first, computation.home):
            return  # Equal to the others, yet written with what is not known around them (`i - i + n`).
        for other in computation.others:
            other.results[0].replace_all_uses_with(first.results[0])
            erase_op(other)

    def move(self, op: Operation, home: Block) -> bool:
        """Moves an expression, and what it is computed from, out to a block around it, if it can be."""
        anchor = op
        while anchor.parent is not home:
            parent = anchor.parent_op()
            if parent is None:
                return False
            anchor = parent
        if anchor is op:
            return True
        pending, chain = [op], list[Operation]()
        while pending:
            current = pending.pop()
            chain.append(current)
            for operand in current.operands:
                owner = operand.owner
                block = owner if isinstance(owner, Block) else owner.parent
                if block is None or self.depth[block] <= self.depth[home]:
                    continue
                if not isinstance(owner, (*_ELIGIBLE, tir.ConstOp)):
                    return False
                pending.append(owner)
        seen: set[Operation] = set()
        for current in reversed(chain):
            if current not in seen:
                seen.add(current)
                current.detach()
                home.insert_op_before(current, anchor)
        return True


def _declared(func: tir.PrimFuncOp) -> set[Operation]:
    """Returns the ops that declarations of buffers and heads of blocks use: no let can be before these."""
    found: set[Operation] = set()
    pending: list[SSAValue] = []
    for op in walk_ops(func):
        if isinstance(op, BufferOp | tir.BufferRegionOp | tir.BlockOp | tir.AllocateOp):
            pending += op.operands
    while pending:
        op = pending.pop().owner
        if isinstance(op, _ELIGIBLE) and op not in found:
            found.add(op)
            pending += op.operands
    return found


def _name(op: Operation, name: str) -> None:
    """Binds the value by a let, unless one follows that does."""
    value = op.results[0]
    block, following = op.parent, op.next_op
    assert block is not None
    if isinstance(following, tir.LetOp) and following.value is value and following.var is None:
        let = following
    else:
        let = tir.LetOp(name, value)
        let.location = op.location
        block.insert_op_after(let, op)
    let_operand = let.value
    value.replace_all_uses_with(let.result)
    let.operands[0] = let_operand
    value.name_hint = None


@dataclass(frozen=True)
class CommonSubexprElimTIR(ModulePass):
    """Names by a let what is computed several times.

    With `identify_equiv_terms`, expressions that are equal as integers are the same (`x + y` and `y + x`), otherwise only those
    that are written alike. Without `enable_cse_tir` nothing is done.
    """

    name = "common-subexpr-elim-tir"
    enable_cse_tir: bool = True
    identify_equiv_terms: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Merges the expressions of every prim_func of the module."""
        if not self.enable_cse_tir:
            return
        for func in prim_funcs(op):
            Eliminator(func, self.identify_equiv_terms).run()
