"""parallel, vectorize, unroll, bind: how the iterations of a loop are run."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer
from ....dialects.arith.expr import free_vars
from ..analysis.block_kind import axis_kinds, driving_variables, why_order_matters
from ..analysis.dependence import why_iterations_meet
from ..analysis.structure import child_blocks, loops_above
from ..engine.errors import refuse
from ..engine.primitive import primitive
from ..engine.state import State
from .common.loops import require_complete_or_reduction, require_loop


@primitive
def parallel(state: State, loop: tir.ForOp) -> None:
    """Spreads the iterations of a loop over threads.

    for i in range(64): …   →   for i in T.parallel(64): …
    """
    _set_kind(loop, "parallel", "parallel")


@primitive
def vectorize(state: State, loop: tir.ForOp) -> None:
    """Makes the iterations of a loop the lanes of vectors.

    for i in range(16): …   →   for i in T.vectorized(16): …
    """
    _set_kind(loop, "vectorize", "vectorized")


@primitive
def unroll(state: State, loop: tir.ForOp) -> None:
    """Writes out the iterations of a loop one after the other.

    for i in range(4): …   →   for i in T.unroll(4): …
    """
    loop = require_loop(loop, "unroll")
    loop.properties["kind"] = StringAttr("unrolled")
    loop.properties.pop("thread", None)


@primitive
def bind(state: State, loop: tir.ForOp, thread_axis: str) -> None:
    """Runs the iterations of a loop by the threads of a GPU's axis.

    for i in range(32): …   →   for i in T.thread_binding(32, thread="threadIdx.x"): …
    """
    known = ("blockIdx.x", "blockIdx.y", "blockIdx.z", "threadIdx.x", "threadIdx.y", "threadIdx.z")
    if thread_axis not in known and not thread_axis.startswith("vthread"):
        raise refuse(
            loop, f"bind: there is no thread axis '{thread_axis}'", f"there are {', '.join(known)} and vthread"
        )
    _set_kind(loop, "bind", "thread_binding", thread_axis)


def _set_kind(loop: tir.ForOp, name: str, kind: str, thread: str | None = None) -> None:
    loop = require_loop(loop, name)
    for block in child_blocks(loop):
        _check(loop, block, name, thread)
    met = why_iterations_meet(loop, _waits(loop, thread))
    if met is not None:
        block, reason = met
        raise refuse(
            block,
            f"{name}: iterations of loop '{loop.var_name.data}' may not run at once: {reason}",
            "an iteration may read and overwrite only elements that no other iteration writes: "
            "compute the blocks in loops of their own, or keep the loop serial",
        )
    loop.properties["kind"] = StringAttr(kind)
    if thread is None:
        loop.properties.pop("thread", None)
    else:
        loop.properties["thread"] = StringAttr(thread)


def _check(loop: tir.ForOp, block: tir.BlockOp, name: str, thread: str | None) -> None:
    """Raises unless the loop only drives spatial axes of the block (for threadIdx also reduction axes)."""
    called, var = block.block_name.data, loop.var_name.data
    # Turns of a loop over spatial axes are apart whether the block starts its sums or adds to others'.
    require_complete_or_reduction(block, name, loop, started=False)
    reason = why_order_matters(block, loop)
    if reason is not None:
        raise refuse(
            block,
            f"{name}: the bindings of block '{called}' are not affine in its loops: {reason}",
            "no two iterations may run the same instance: bind each axis to loops of its own",
        )
    analyzer = Analyzer()
    across_threads = _is_of_threads(thread)
    for axis, kind, binding in zip(block.iter_names.data, axis_kinds(block), block.bindings, strict=True):
        if kind == "S" or (kind == "R" and across_threads):
            continue
        if any(atom.payload is loop.loop_var for atom in free_vars(analyzer.expr(binding))):
            raise refuse(
                loop,
                f"{name}: loop '{var}' drives axis '{axis.data}' of block '{called}', which is not a spatial axis: its iterations depend on each other",
                f"rfactor loop '{var}' to make its iterations independent, or {name} a loop that drives spatial axes only"
                + _spatial_loops(block),
            )


def _is_of_threads(thread: str | None) -> bool:
    """Returns whether iterations are run by threads of one group, which can wait for each other."""
    return thread is not None and thread.startswith("threadIdx")


def _waits(loop: tir.ForOp, thread: str | None) -> Callable[[tir.BlockOp, SSAValue], bool]:
    """Returns a test whether threads wait for what a block writes: to shared memory, or into a common sum."""

    def is_waited_for(block: tir.BlockOp, buffer: SSAValue) -> bool:
        assert isinstance(buffer.type, tir.BufferType)
        shared = buffer.type.scope.data.partition(".")[0] not in ("global", "local", "texture")
        return _is_of_threads(thread) and (shared or loop.loop_var in driving_variables(block, "R"))

    return is_waited_for


def _spatial_loops(block: tir.BlockOp) -> str:
    """Returns the loops around the block that drive only spatial axes, for a note."""
    used = driving_variables(block, ("R", "scan", "opaque"))
    names = [f"'{loop.var_name.data}'" for loop in loops_above(block) if loop.loop_var not in used]
    return f" ({', '.join(names)})" if names else ""
