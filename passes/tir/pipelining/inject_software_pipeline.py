"""The pass `inject-software-pipeline`: overlaps the statements of several iterations, as in TVM.

    for i in T.serial(4, annotations={               S0(0)
            "software_pipeline_stage": [0, 1],       for i in range(3):
            "software_pipeline_order": [0, 1]}):  →      S0(i + 1); S1(i)
        S0(i); S1(i)                                 S1(3)

A loop annotated with `software_pipeline_stage` and `software_pipeline_order` becomes a prologue, which starts the first
iterations, a body, in which the stages of several iterations run together, and an epilogue, which ends the last ones. Buffers that are
written in one stage and read in another get as many versions as iterations are in flight. Stages that
`software_pipeline_async_stages` names run in the background: `async_scope`, with commits and waits.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Block, Operation, SSAValue

from ....dialects import tir
from ....dialects.arith.regions import infer_regions
from ....support.diagnostics import error_at
from ....support.walk import post_order, walk_ops
from ..rewriting import PrimFuncPass, acts_until_end
from .pipeline_emit import Pipeline
from .pipeline_stages import ANNOTATIONS, Dependences, double_buffers, make_statements

_HEAD = (tir.ReadsOp, tir.WritesOp, tir.AllocBufferOp, tir.MatchBufferOp, tir.InitOp)


@dataclass(frozen=True)
class InjectSoftwarePipeline(PrimFuncPass):
    """Turns loops with the annotations of a software pipeline into prologue, body and epilogue."""

    name = "inject-software-pipeline"

    def apply_to(self, func: tir.PrimFuncOp) -> None:
        """Rewrites the pipelines of one prim_func, inner ones first.

        Raises MirError for a loop whose body is not a sequence of statements, for annotations that do not fit it, and where
        the stages would have a statement run before what it depends on.
        """
        loops = [inner for inner in post_order(func) if isinstance(inner, tir.ForOp)]
        for loop in loops:
            if any(key in loop.annotations.data for key in ANNOTATIONS[:2]):
                _inject(loop)


def _inject(loop: tir.ForOp) -> None:
    body = loop.body.block
    holder = _only(loop)
    if isinstance(holder, tir.BlockOp):
        _must_be_plain(loop, holder)
        body = holder.body.block
    allocations = [op for op in body.ops if isinstance(op, tir.AllocBufferOp)]
    inside = [op for op in post_order(loop) if isinstance(op, tir.BlockOp)]
    blocks: list[tir.BlockOp] = []
    for block in _blocks_of(loop, body):
        if _holds_several(block):
            allocations += [inner for inner in block.body.block.ops if isinstance(inner, tir.AllocBufferOp)]
            blocks += _blocks_of(loop, block.body.block)
        else:
            blocks.append(block)
    for block in blocks:
        if block.find(tir.ReadsOp) is None and block.find(tir.WritesOp) is None:
            infer_regions(block)
    statements = make_statements(loop, blocks)
    if len(statements) < 2:
        raise error_at(
            loop,
            f"the body of the software pipeline '{loop.var_name.data}' is not a sequence of statements: it has one only",
            "a pipeline overlaps several statements; take the annotations away, or split the statement",
        )
    dependences = Dependences(loop, statements, [allocation.result for allocation in allocations])
    dependences.check()
    twice = double_buffers(inside)
    versions: dict[SSAValue, int] = {}
    for allocation in allocations:
        count = dependences.versions(allocation.result)
        versions[allocation.result] = 2 if count == 1 and allocation.result in twice else count
    Pipeline(loop, statements, allocations, versions).emit()


def _only(loop: tir.ForOp) -> Operation | None:
    """Returns the only statement of the body, or None."""
    found = [op for op in loop.body.block.ops if not op.results]
    return found[0] if len(found) == 1 else None


def _must_be_plain(loop: tir.ForOp, block: tir.BlockOp) -> None:
    """Raises MirError for a block that does more than to hold statements."""
    name = f"block '{block.block_name.data}' of the software pipeline '{loop.var_name.data}'"
    if block.iter_vars:
        raise error_at(block, f"{name} has axes", "run convert-blocks-to-opaque first")
    if block.predicate is not None:
        raise error_at(block, f"{name} has a T.where", "make the loop's extent what the condition says")
    for op in block.body.block.ops:
        if isinstance(op, tir.MatchBufferOp):
            raise error_at(op, f"{name} matches a buffer", "run lower-match-buffer first")
        if isinstance(op, tir.InitOp):
            raise error_at(op, f"{name} has a T.init", "run lower-init-block first")


def _statements(loop: tir.ForOp, block: Block) -> list[Operation]:
    """Returns the statements of a block, in order.

    Raises MirError for an op that acts on the statements after it.
    """
    found: list[Operation] = []
    for op in block.ops:
        if isinstance(op, _HEAD):
            continue
        if isinstance(op, tir.LetOp | tir.DeclBufferOp) or acts_until_end(op):
            what = "a let" if isinstance(op, tir.LetOp) else f"'{op.name.removeprefix('tir.')}'"
            raise error_at(
                op,
                f"the body of the software pipeline '{loop.var_name.data}' is not a sequence of statements: it has {what}",
                "what acts on the statements after it belongs around the loop, or into one statement",
            )
        if not op.results:
            found.append(op)
    return found


def _holds_several(block: tir.BlockOp) -> bool:
    """Returns whether a block is a sequence of statements, as a nested pipeline is."""
    body = list(block.body.block.ops)
    if any(isinstance(op, tir.MatchBufferOp | tir.InitOp | tir.LetOp) or acts_until_end(op) for op in body):
        return False
    return sum(not op.results and not isinstance(op, _HEAD) for op in body) > 1


def _blocks_of(loop: tir.ForOp, body: Block) -> list[tir.BlockOp]:
    """Makes the statements of a block blocks; returns them in order."""
    statements = _statements(loop, body)
    place = {op: number for number, op in enumerate(body.ops)}
    return [_as_block(op, _needed(loop, op, place)) for op in statements]


def _as_block(op: Operation, needed: list[Operation]) -> tir.BlockOp:
    """Makes a statement a block, which contains clones of the ops that it needs."""
    home = op.parent
    assert home is not None
    if isinstance(op, tir.BlockOp) and op.predicate is None and not op.iter_vars:
        block = op
    else:
        block = tir.BlockOp("", [], [], [], [], [])
        block.location = op.location
        home.insert_op_before(block, op)
        op.detach()
        block.body.block.add_op(op)
    body, mapper = block.body.block, dict[SSAValue, SSAValue]()
    copies = [earlier.clone(mapper) for earlier in needed]
    if copies:
        for inner in list(walk_ops(block)):
            if any(operand in mapper for operand in inner.operands):
                inner.operands = [mapper.get(operand, operand) for operand in inner.operands]
        if body.first_op is None:
            body.add_ops(copies)
        else:
            body.insert_ops_before(copies, body.first_op)
    return block


def _needed(loop: tir.ForOp, op: Operation, place: dict[Operation, int]) -> list[Operation]:
    """Returns the adjacent ops whose results a statement uses, in order.

    Raises MirError for a load that several statements use.
    """
    found: dict[Operation, None] = {}
    pending = [operand for inner in walk_ops(op) for operand in inner.operands]
    while pending:
        owner = pending.pop().owner
        if not isinstance(owner, Operation) or owner not in place or owner in found:
            continue
        if isinstance(owner, _HEAD) or owner is op:
            continue
        if isinstance(owner, tir.LoadOp | tir.CallOp) and len({u.operation for u in owner.results[0].uses}) > 1:
            raise error_at(
                owner,
                f"statements of the software pipeline '{loop.var_name.data}' share a value",
                "a value that is loaded for several statements belongs into a buffer",
            )
        found[owner] = None
        pending += [operand for inner in walk_ops(owner) for operand in inner.operands]
    return sorted(found, key=place.__getitem__)
