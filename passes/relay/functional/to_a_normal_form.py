"""`to-a-normal-form`: binds every value by a `let`, in order of evaluation.

    add(exp(%x), 1f)   ->   let %x_0 = exp(%x); let %x_1 = add(%x_0, 1f); %x_1

As TVM's ToANormalForm (A-normal form; Flanagan et al., "The Essence of Compiling with Continuations", 1993): constants, calls,
tuples, branches and local functions are bound to `%x_0`, `%x_1`, …; parameters, variables, global functions and constructors are not;
the body of a Primitive function stays as it is. A chain of `let`s is a value, too, so that for each of them one more variable is
bound at its end. Values in this form already stay so.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

from xdsl.context import Context
from xdsl.dialects.builtin import LocationAttr, ModuleOp, StringAttr
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from ....dialects.relay import ir
from ....support.edit import insert_op_after, insert_op_before
from ....support.walk import walk_ops
from ..common.function_attributes import is_primitive
from ..common.rewriting import functions_of, place_leaves, replace_values, returned

ATOMS = (ir.GlobalRefOp, ir.ConstructorRefOp, ir.LetOp, ir.ReturnOp)
"""Ops that need no `let`: they are names."""


@dataclass(frozen=True)
class ToANormalForm(ModulePass):
    """Bind every value by a let."""

    name = "to-a-normal-form"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions_of(op).values():
            if is_primitive(function):
                continue
            names = LetBinder(function)
            for block in _own_blocks(function):
                if not _is_normal(block):
                    _normalize(block, names)
            names.finish()


def _own_blocks(function: ir.FuncOp) -> list[Block]:
    """The function's blocks, an outer one before its inner ones, without those of kernels."""
    found: list[Block] = []
    pending = [function.body.block]
    while pending:
        block = pending.pop()
        found.append(block)
        inner = [r.block for op in block.ops if not (isinstance(op, ir.FnOp) and is_primitive(op)) for r in op.regions]
        pending += reversed(inner)
    return found


def _is_normal(block: Block) -> bool:
    """Returns whether every value is bound, and the block's value is a variable."""
    value = returned(block)
    if not isinstance(value, BlockArgument) and not isinstance(value.owner, ATOMS):
        return False
    return all(isinstance(op, ATOMS) or (_binding(op) is not None and op.results[0].has_one_use()) for op in block.ops)


def _binding(op: Operation) -> ir.LetOp | None:
    """Returns the `let` right after an op that names its value."""
    following = op.next_op
    return following if isinstance(following, ir.LetOp) and following.value is op.results[0] else None


class LetBinder:
    """Makes lets for the values of a function, under the names `x_0`, `x_1`, …"""

    def __init__(self, function: ir.FuncOp):
        self._function = function
        self._names: dict[SSAValue, SSAValue] = {}
        self._lets: set[Operation] = set()

    def bind(self, op: Operation) -> None:
        """Redirects every use of an op's result to a `let` right after it, which is made if there is none."""
        let = _binding(op)
        if let is None:
            let = self.make(op.results[0], op.location)
            insert_op_after(let, op)
        self._names[op.results[0]] = let.result
        self._lets.add(let)

    def make(self, value: SSAValue, location: LocationAttr) -> ir.LetOp:
        """A `let`, named when all are made, to be put somewhere."""
        let = ir.LetOp("", value)
        let.location = location
        return let

    def finish(self) -> None:
        """Puts the variables in the places of what they name, and numbers them in the order of the text."""
        replace_values(self._function, self._names, keep=self._lets)
        numbers = count()
        for op in list(walk_ops(self._function)):
            if isinstance(op, ir.LetOp) and not op.var_name.data:
                op.properties["var_name"] = StringAttr(f"x_{next(numbers)}")
            place_leaves(op)


def _normalize(block: Block, binder: LetBinder) -> None:
    lets = sum(isinstance(op, ir.LetOp) for op in block.ops)
    for op in list(block.ops):
        if not isinstance(op, ATOMS):
            binder.bind(op)
    end = block.last_op
    assert isinstance(end, ir.ReturnOp)
    for _ in range(lets):
        let = binder.make(end.value, end.location)
        insert_op_before(let, end)
        end.operands[0] = let.result
