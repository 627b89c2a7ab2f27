"""The pass `unify-thread-binding`: one loop for each thread axis of a kernel, around all that it does.

As in TVM's pass of this name: loops and launches of threads inside of another are one kernel with it. Each of its axes becomes
a loop at its beginning, named as the axis, and what was bound to the axis before uses that loop's variable.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

from xdsl.dialects.builtin import DictionaryAttr
from xdsl.ir import Block, Operation, SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer
from ....dialects.tir.operators import as_const
from ....support.diagnostics import MirError, error_at
from ....support.edit import builder_before, erase_op, move_to_end
from ....support.walk import following, owner_op, walk_ops
from ..clone_body import insert_iteration
from ..rewriting import PrimFuncPass

Binding: TypeAlias = "tir.ForOp | tir.LaunchThreadOp"


@dataclass
class ThreadAxis:
    """A thread axis of a kernel, and what is bound to it."""

    bindings: list[Binding] = field(default_factory=list[Binding])


def _is_binding(op: Operation) -> bool:
    return isinstance(op, tir.LaunchThreadOp) or (isinstance(op, tir.ForOp) and op.kind.data == "thread_binding")


def _thread(op: Binding) -> str:
    return "" if op.thread is None else op.thread.data


def _kernel(root: Binding) -> list[Operation]:
    """Returns the ops that a binding is around: a launch is around all that follows it in its region."""
    return [root, *(following(root) if isinstance(root, tir.LaunchThreadOp) else ())]


def unify(root: Binding, analyzer: Analyzer) -> None:
    """Makes one kernel of what `root` begins."""
    ops = _kernel(root)
    inside = {inner for op in ops for inner in walk_ops(op)}
    axes: dict[str, ThreadAxis] = {}
    for op in (inner for outer in ops for inner in walk_ops(outer)):
        if isinstance(op, tir.ForOp | tir.LaunchThreadOp) and _is_binding(op):
            axis = axes.setdefault(_thread(op), ThreadAxis())
            if axis.bindings and not analyzer.can_prove_equal(axis.bindings[0].extent, op.extent):
                raise _different(op, axis.bindings[0])
            axis.bindings.append(op)
    _check_extents(axes, inside)
    home = root.parent
    assert home is not None
    loops: list[tir.ForOp] = []
    for name, axis in axes.items():
        loops.append(_loop(name, axis, root))
    block = Block()
    home.insert_op_before(loops[0], root)
    move_to_end(ops, block)
    for outer, inner in pairwise(loops):
        outer.body.block.add_op(inner)
    move_to_end(block.ops, loops[-1].body.block)
    for loop, axis in zip(loops, axes.values(), strict=True):
        for binding in reversed(axis.bindings):
            _replace(binding, loop)


def _different(op: Binding, first: Binding) -> MirError:
    sizes = [as_const(o.extent) for o in (first, op)]
    numbers = " and ".join(str(size.value) if size is not None else "a size of run time" for size in sizes)
    return error_at(
        op,
        f"loops bound to '{_thread(op)}' of one kernel have different extents: {numbers}",
        "a thread axis has one extent in a kernel; split the loops so that the bound parts agree",
    )


def _check_extents(axes: dict[str, ThreadAxis], inside: set[Operation]) -> None:
    """Raises MirError unless the extents are known where the kernel begins; constants are cloned there."""
    for axis in axes.values():
        extent = axis.bindings[0].extent
        if as_const(extent) is None and owner_op(extent) in inside:
            raise error_at(
                axis.bindings[0],
                f"the extent of '{_thread(axis.bindings[0])}' is computed inside of the kernel",
                "it must be known where the kernel's first thread is bound",
            )


def _loop(name: str, axis: ThreadAxis, root: Binding) -> tir.ForOp:
    """Builds the loop over an axis, its constants before the root."""
    first = axis.bindings[0]
    builder = builder_before(root, first.location)
    number, type_ = as_const(first.extent), first.extent.type
    extent = first.extent if number is None else builder.insert(tir.ConstOp.int(int(number.value), type_)).result
    annotations = {k: v for op in axis.bindings if isinstance(op, tir.ForOp) for k, v in op.annotations.data.items()}
    loop = tir.ForOp(
        name.replace(".", "_"),
        builder.insert(tir.ConstOp.int(0, type_)),
        extent,
        kind="thread_binding",
        thread=name,
        annotations=DictionaryAttr(annotations),
    )
    loop.location = first.location
    return loop


def _replace(binding: Binding, loop: tir.ForOp) -> None:
    """Replaces a binding's variable by the variable of the kernel's loop."""
    if isinstance(binding, tir.LaunchThreadOp):
        for variable in (binding.result, binding.env):
            if variable is not None:
                _replace_variable(variable, loop, binding)
        env = binding.env
        erase_op(binding)
        if env is not None and isinstance(env.owner, tir.EnvThreadOp) and not env.uses:
            erase_op(env.owner)
        return
    variable = binding.loop_var
    low = as_const(binding.min)
    if low is not None and low.value == 0:
        _replace_variable(variable, loop, binding)
    elif variable.uses:
        start = binding.min
        sum_ = builder_before(binding).insert(tir.AddOp(_typed(loop.loop_var, variable, binding), start))
        variable.replace_all_uses_with(sum_.result)
    ops = list(binding.body.block.ops)
    for op in ops:
        op.detach()
    insert_iteration(ops, binding, is_last=binding.next_op is None)
    erase_op(binding)


def _replace_variable(variable: SSAValue, loop: tir.ForOp, anchor: Operation) -> None:
    hint = loop.loop_var.name_hint
    variable.replace_uses_with_if(_typed(loop.loop_var, variable, anchor), lambda use: use.operation is not anchor)
    loop.loop_var.name_hint = hint


def _typed(value: SSAValue, like: SSAValue, anchor: Operation) -> SSAValue:
    """Casts a value to the dtype of another."""
    if value.type == like.type:
        return value
    return builder_before(anchor).insert(tir.CastOp(value, like.type)).result


@dataclass(frozen=True)
class UnifyThreadBinding(PrimFuncPass):
    """Unifies the thread axes of every kernel."""

    name = "unify-thread-binding"

    def apply_to(self, func: tir.PrimFuncOp) -> None:
        """Unifies the kernels of one prim_func; raises MirError where two extents of an axis differ."""
        analyzer = Analyzer()
        covered: set[Operation] = set()
        for inner in list(walk_ops(func)):
            if isinstance(inner, tir.ForOp | tir.LaunchThreadOp) and _is_binding(inner) and inner not in covered:
                covered.update(each for outer in _kernel(inner) for each in walk_ops(outer))
                unify(inner, analyzer)
