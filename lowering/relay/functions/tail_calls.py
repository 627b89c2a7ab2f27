"""Finds the tail calls of a function to itself, which are loops written as recursion.

Such a call becomes a jump to the function's start. The tensors that it passes are copied to memory that the frame keeps for
the parameters, so that one frame serves all iterations (Steele, "Debunking the 'expensive procedure call' myth", 1977).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.ir import Block, Operation, OpResult, SSAValue

from ....dialects.relay import ir as relay
from ..memory.frame import Frame, Sources, branches, is_written, plan_frame, returned
from .flat_values import TensorLeaf, leaves_of
from .prepare_constants import PreparedOp


@dataclass(frozen=True)
class TailCalls:
    """A function's tail calls, each with the parameters' leaves that it changes."""

    calls: dict[relay.CallGlobalOp, tuple[int, ...]]

    @property
    def changed(self) -> list[int]:
        """The leaves of the parameters that some call changes."""
        return sorted({leaf for leaves in self.calls.values() for leaf in leaves})


def framed(name: str, function: relay.FuncOp | relay.FnOp, *, refs: bool) -> tuple[Frame, TailCalls]:
    """Returns the frame of function `name`, and its tail calls; with `refs` in the module none jumps."""
    jumps = TailCalls({}) if refs else tail_calls(name, function)
    leaves = [leaf for param in function.params for leaf in leaves_of(param.type, param)]
    carried = [leaf.bytes for k in jumps.changed if isinstance(leaf := leaves[k], TensorLeaf)]
    return plan_frame(function.body.block, refs=refs, carried=carried), jumps


def tail_calls(name: str, function: relay.FuncOp | relay.FnOp) -> TailCalls:
    """Returns the calls of `function`, which is called `name`, that can be jumps.

    Parameters and results must be tensors of known shape: boxes are on the heap, which is freed after each iteration. An argument
    must be the same parameter, a constant, or come from an op that writes it to memory of its own: another value may be in the memory
    of another parameter, which is overwritten.
    """
    found: dict[relay.CallGlobalOp, tuple[int, ...]] = {}
    if isinstance(function, relay.FuncOp):
        types = [*(param.type for param in function.params), returned(function.body.block).type]
        if all(isinstance(leaf, TensorLeaf) for type_ in types for leaf in leaves_of(type_)):
            sources = Sources()
            params = [(param, k) for param in function.params for k in range(len(leaves_of(param.type)))]
            for op in _last(function.body.block):
                if isinstance(op, relay.CallGlobalOp) and op.callee.root_reference.data == name:
                    changed = _changed(op, params, sources)
                    if changed is not None:
                        found[op] = changed
    return TailCalls(found)


def _last(body: Block) -> Iterator[Operation]:
    """Yields the ops that produce the function's result, and after which nothing is left to do."""
    pending = [body]
    while pending:
        block = pending.pop()
        op = _giver(returned(block))
        if op is None or op.parent is not block or not _ends(op):
            continue
        if inner := branches(op):
            pending += inner
        else:
            yield op


def _giver(value: SSAValue) -> Operation | None:
    """Returns the op that produces a value, through `let`."""
    while isinstance(value, OpResult) and isinstance(value.op, relay.LetOp):
        value = value.op.value
    return value.op if isinstance(value, OpResult) else None


def _ends(op: Operation) -> bool:
    """Returns whether only `let`s of the result are between an op and the end of its block."""
    following = op.next_op
    while isinstance(following, relay.LetOp):
        following = following.next_op
    return isinstance(following, relay.ReturnOp)


def _is_fresh(op: Operation) -> bool:
    """Returns whether the op's results are in no parameter's memory."""
    return isinstance(op, relay.ConstantOp | PreparedOp) or is_written(op)


def _changed(call: relay.CallGlobalOp, params: list[tuple[SSAValue, int]], sources: Sources) -> tuple[int, ...] | None:
    """Returns the parameters' leaves that a call changes; None if one may alias another parameter."""
    changed: list[int] = []
    leaves = [(value, k) for value in call.arguments for k in range(len(leaves_of(value.type)))]
    for number, ((value, leaf), own) in enumerate(zip(leaves, params, strict=True)):
        source = sources.of(value, leaf)
        if source == own:
            continue
        if not (isinstance(source[0], OpResult) and _is_fresh(source[0].op)):
            return None
        changed.append(number)
    return tuple(changed)
