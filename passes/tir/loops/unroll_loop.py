"""The pass `unroll-loop`: unrolls loops, as TVM's `tir.transform.UnrollLoop`.

for i in T.unroll(2):                     B[0] = A[0]
    B[i] = A[i]                   →       B[1] = A[1]
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ....dialects import tir
from ....dialects.arith import Analyzer
from ....dialects.tir.open_reductions import carries_open_reduction, starts_empty_reduction
from ....support.diagnostics import error_at
from ....support.edit import erase_op
from ....support.walk import post_order, walk_ops
from ...option_range import require_range
from ..clone_body import clone_iteration, hoist_views, move_last_iteration
from ..rewriting import prim_funcs

MAX_OPS = 100_000
"""How many ops unrolling may make of one function."""

_STEP, _EXPLICIT = "pragma_auto_unroll_max_step", "pragma_unroll_explicit"


@dataclass(frozen=True)
class UnrollLimits:
    """The limits under which loops are unrolled at one place."""

    max_step: int
    explicit: bool


@dataclass
class Size:
    """The size of a statement: stores and calls, nesting depth of unrolled loops and of other loops."""

    steps: int = 0
    unrolled: int = 0
    normal: int = 0

    def and_then(self, other: Size) -> Size:
        """Returns the size of two statements in sequence."""
        return Size(self.steps + other.steps, max(self.unrolled, other.unrolled), max(self.normal, other.normal))


@dataclass(frozen=True)
class UnrollLoop(ModulePass):
    """Unrolls the loops of kind unrolled, and serial ones that are small.

    A serial loop is unrolled where all loops in it are, at most `auto_max_depth` unrolled ones are nested, and either
    it executes at most `auto_max_step` stores and calls or has at most `auto_max_extent` iterations. Loops around a block whose
    reduction may be empty stay loops: its `T.init` is of the whole reduction. Without
    `explicit_unroll` such loops are only marked as unrolled, for the code generator. The pragmas `auto_unroll_max_step` and
    `unroll_explicit` override the options for the statements after them.
    """

    name = "unroll-loop"
    auto_max_step: int = 0
    auto_max_depth: int = 8
    auto_max_extent: int = 0
    explicit_unroll: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Unrolls the loops of every prim_func of the module.

        Raises MirError for a loop of kind unrolled without a constant extent, and where the function would become too large.
        """
        require_range(op, "auto-max-step", self.auto_max_step, 0)
        require_range(op, "auto-max-depth", self.auto_max_depth, 0)
        for func in prim_funcs(op):
            _Unroller(self, func).run()


class _Unroller:
    def __init__(self, options: UnrollLoop, func: tir.PrimFuncOp):
        self.options = options
        self.func = func
        self.sizes: dict[Operation, Size] = {}
        self.ops: dict[Operation, int] = {}
        self.limits = _limits(func, UnrollLimits(options.auto_max_step, options.explicit_unroll))
        self.analyzer = Analyzer()

    def run(self) -> None:
        for op in post_order(self.func):
            if op is self.func:
                break
            size = Size()
            for region in op.regions:
                for block in region.blocks:
                    size = size.and_then(self.of_block(block))
            if isinstance(op, tir.StoreOp | tir.EvaluateOp):
                size.steps += 1
            if isinstance(op, tir.ForOp):
                self.loop(op, size)
            elif op.parent is not None:
                self.sizes[op] = size

    def of_block(self, block: Block) -> Size:
        size = Size()
        for op in block.ops:
            found = self.sizes.pop(op, None)
            if found is not None and (found.steps or found.unrolled or found.normal):
                size = size.and_then(found)
        return size

    def loop(self, loop: tir.ForOp, size: Size) -> None:
        """Decides about a loop, whose body was decided about."""
        options, limits = self.options, self.limits[loop]
        extent = self.analyzer.simplify(loop.extent).value
        if extent == 0 and starts_empty_reduction(loop):
            loop.kind = StringAttr("serial")
            self.sizes[loop] = Size(size.steps, size.unrolled, size.normal + 1)
            return
        wanted = loop.kind.data == "unrolled" or limits.max_step or options.auto_max_extent
        if wanted and extent is not None and extent > 1 and carries_open_reduction(loop):
            # T.init runs where the reduction is over nothing, too, which lowering sees of one block that is all of it.
            self.sizes[loop] = Size(size.steps, size.unrolled, size.normal + 1)
            return
        unroll = (
            loop.kind.data == "serial"
            and extent is not None
            and extent >= 0
            and not size.normal
            and size.unrolled <= options.auto_max_depth
            and (extent * size.steps <= limits.max_step or extent <= options.auto_max_extent)
        )
        if loop.kind.data == "unrolled":
            if extent is None or extent < 0:
                raise error_at(
                    loop,
                    f"loop '{loop.var_name.data}' cannot be unrolled: its extent is not a number",
                    "only a loop of constant extent is of kind T.unroll; split it, and unroll the inner loop",
                )
            unroll = True
        if unroll and extent is not None:
            self.sizes[loop] = Size(size.steps * extent, size.unrolled + 1, size.normal)
        else:
            self.sizes[loop] = Size(size.steps, size.unrolled, size.normal + 1)
        single = extent is not None and 0 <= extent <= options.auto_max_extent == 1
        if extent is not None and ((unroll and limits.explicit) or single):
            if loop.kind.data == "unrolled" or extent * sum(1 for _ in walk_ops(loop)) <= MAX_OPS:
                self.unroll(loop, extent)
        elif unroll:
            loop.kind = StringAttr("unrolled")

    def unroll(self, loop: tir.ForOp, extent: int) -> None:
        """Replaces the loop by its iterations."""
        count = sum(1 for _ in walk_ops(loop))
        if count * extent > MAX_OPS:
            raise error_at(
                loop,
                f"loop '{loop.var_name.data}' cannot be unrolled: its {extent} iterations would be {count * extent} operations",
                f"at most {MAX_OPS} are made; split the loop, and unroll a short inner one",
            )
        size = self.sizes.pop(loop)
        hoist_views(loop)
        if not extent:
            erase_op(loop)
            return
        for iteration in range(extent - 1):
            clone_iteration(loop, iteration)
        last = move_last_iteration(loop, extent - 1)
        if last:
            self.sizes[last[0]] = size


def _limits(func: tir.PrimFuncOp, outer: UnrollLimits) -> dict[Operation, UnrollLimits]:
    """Returns the limits at each loop: those of the pass, or of the pragmas in whose scope it is."""
    found: dict[Operation, UnrollLimits] = {}
    current: dict[Block, UnrollLimits] = {func.body.block: outer}
    for op in walk_ops(func):
        if op is func or op.parent is None:
            continue
        limits = current[op.parent]
        if isinstance(op, tir.AttrOp):
            limits = current[op.parent] = _with_pragma(limits, op.key.data, _number(op.value))
        if isinstance(op, tir.ForOp):
            found[op] = limits
            for key, value in op.annotations.data.items():
                limits = _with_pragma(limits, key, value.value.data if isinstance(value, IntegerAttr) else None)
        for region in op.regions:
            for block in region.blocks:
                current[block] = limits
    return found


def _with_pragma(limits: UnrollLimits, key: str, value: int | None) -> UnrollLimits:
    if value is None or key not in (_STEP, _EXPLICIT):
        return limits
    return UnrollLimits(value, limits.explicit) if key == _STEP else UnrollLimits(limits.max_step, bool(value))


def _number(value: SSAValue) -> int | None:
    op = value.owner
    return op.value.value.data if isinstance(op, tir.ConstOp) and isinstance(op.value, IntegerAttr) else None
