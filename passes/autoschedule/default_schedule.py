"""The pass `default-schedule`: schedules functions by rules on their shape and the target.

The rules (this folder) use schedule primitives only, so that what they did can be printed and done by hand. A
function that its user scheduled (`tir.is_scheduled`), or with blocks that are already tiled, annotated, predicated or nested is left as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ...dialects import tir
from ...dialects.schedule import ScriptOp
from ...support.target import Target, named
from ...support.text import take_name
from ..common.described_cpu import described_cpu
from ..option_range import require_range
from ..schedule import BlockRV, Schedule
from ..schedule.analysis.block_kind import axis_kinds
from ..schedule.analysis.structure import child_blocks, consumers
from ..schedule.apply_schedule import is_scheduled
from ..schedule.engine.tensor_intrinsics import declaring, is_half
from ..tir.rewriting import prim_funcs
from .attention import match_attention, schedule_attention
from .auto_inline import inline_blocks
from .block_shape import fresh_blocks, remembering_shapes, shape_of
from .contraction import match_contraction, schedule_by_shape
from .contraction.dot_products import choose_dot, schedule_dot_product
from .contraction.fused_columns import find_run, merge_run, merging_pays
from .contraction.grouped_convolution import find_groups, split_groups
from .elementwise import schedule_elementwise
from .loop_nests import block_of
from .open_windows import schedule_open_window
from .packed_weights import find_packed_products, schedule_packed_product
from .reduction import few_rows, schedule_reduction, schedule_rows, shared_rows
from .refusals import CURRENT_RULE, tolerating
from .sliding_windows.sliding_windows import pays as windows_pay
from .sliding_windows.sliding_windows import rows_of, schedule_windows
from .sliding_windows.window_match import Window, match_window
from .start_again import start_again
from .strict_reduction import reduces_floats, schedule_in_order
from .winograd import Stages, find_stages, schedule_winograd
from .written_rules import apply_written_rules


def schedule_function(sch: Schedule, function: tir.PrimFuncOp, target: Target, strict_math: bool = False) -> None:
    """Schedules one function of the schedule's module.

    Written rules that the function's kernel matches (`match-schedule-rules`) come before those of this folder. With `strict_math` sums of floats keep their order.
    """
    function, done = apply_written_rules(sch, function)
    blocks = None if done or is_scheduled(function) else fresh_blocks(function)
    if blocks is None:
        return
    packed = find_packed_products(blocks)
    stages = [block for each in packed for block in each.blocks]
    blocks = [*stages, *inline_blocks(sch, [block for block in blocks if block not in stages])]
    if strict_math and any(map(reduces_floats, blocks)):
        for block in blocks:
            with tolerating("single blocks", block):
                if reduces_floats(block):
                    schedule_in_order(sch, sch.handle(block), target)
                else:
                    schedule_block(sch, sch.handle(block), target)
        return
    attention = match_attention(blocks)
    if attention is not None:
        spare, length = function.clone(), len(sch.trace)
        with tolerating("attention", blocks[-1]):
            schedule_attention(sch, attention, target)
            return
        # Half of that schedule is slower than none: the blocks are scheduled one by one.
        function = start_again(sch, function, spare, length)
        blocks = child_blocks(function)
    for each in packed:
        with tolerating("products with packed weights", each.product):
            schedule_packed_product(sch, each, target)
    handles = [sch.handle(b) for b in blocks if b not in stages]
    for handle in handles:
        if sch.state.stands(handle):
            with tolerating("groups", block_of(sch, handle)):
                _split_groups(sch, handle)
    # Groups that were split have other blocks.
    for stages in find_stages([b for b in blocks if b.parent is not None]):
        with tolerating("winograd's convolution", _main_block(stages)):
            schedule_winograd(sch, stages, target)
    rules = (
        ("merged rows", _merge_rows),
        ("windows", _schedule_window),
        ("contractions", _schedule_contraction),
        ("windows of open sizes", schedule_open_window),
    )
    for rule, schedule in rules:
        # Contractions before what is left: they take what follows them along, and its handle with it.
        for handle in handles:
            if sch.state.stands(handle):
                with tolerating(rule, block_of(sch, handle)):
                    schedule(sch, handle, target)
    left = [b for b in child_blocks(function) if shape_of(b) is not None and _is_root_nest(b)]
    group = [] if packed else _row_group(left)
    if group and not few_rows(group, target):
        with tolerating("reductions row by row", group[-1]):
            schedule_rows(sch, [sch.handle(b) for b in group], shared_rows(group), target, schedule_block)
    else:
        group = []
    for block in left:
        if block not in group:
            with tolerating("single blocks", block):
                schedule_block(sch, sch.handle(block), target)


def _main_block(stages: Stages) -> tir.BlockOp | None:
    """Returns the block by which a convolution is called."""
    return stages.data.products if stages.data is not None else stages.output.out if stages.output is not None else None


def _schedule_contraction(sch: Schedule, block: BlockRV, target: Target) -> None:
    """Schedules a block that is a contraction; leaves others alone."""
    shape = shape_of(block_of(sch, block))
    match = None if shape is None else match_contraction(shape)
    if match is None:
        return
    product = choose_dot(match, target)
    if product is not None:
        schedule_dot_product(sch, block, match, product, target)
    else:
        schedule_by_shape(sch, block, match, target)


def _split_groups(sch: Schedule, block: BlockRV) -> None:
    """Gives a convolution in groups an axis for them."""
    shape = shape_of(block_of(sch, block))
    found = None if shape is None else find_groups(shape)
    if found is not None:
        split_groups(sch, block, *found)


def _merge_rows(sch: Schedule, block: BlockRV, target: Target) -> None:
    """Merges the columns of a contraction that are stored in rows into one axis."""
    shape = shape_of(block_of(sch, block))
    run = None if shape is None else find_run(shape)
    if shape is not None and run is not None and merging_pays(shape, run, target):
        merge_run(sch, block, run)


def _schedule_window(sch: Schedule, block: BlockRV, target: Target) -> None:
    """Schedules a reduction over windows, where vectors along rows are the better scheme."""
    op = block_of(sch, block)
    window = _paying_window(op, target)
    readers = consumers(op)
    follows = _paying_window(readers[0], target) if len(readers) == 1 else None
    if follows is not None and rows_of(follows) is op:
        # Its rows are scheduled together with what reads them.
        return
    if window is not None:
        schedule_windows(sch, block, window, target)


def _paying_window(block: tir.BlockOp, target: Target) -> Window | None:
    """Returns the block as a reduction over windows, where vectors along rows are the better scheme."""
    shape = shape_of(block)
    window = None if shape is None else match_window(shape)
    if shape is None or window is None or not windows_pay(window, match_contraction(shape), target):
        return None
    return window


def _is_root_nest(block: tir.BlockOp) -> bool:
    """Returns whether the block's loops hold nothing else."""
    parent = block.parent_op()
    outer: tir.ForOp | None = None
    while isinstance(parent, tir.ForOp):
        outer = parent
        parent = parent.parent_op()
    return outer is None or len(child_blocks(outer)) == 1


def _row_group(blocks: list[tir.BlockOp]) -> list[tir.BlockOp]:
    """Returns the last stages of a function that may run row by row, at least one a reduction."""
    for start in range(len(blocks) - 1):
        group = blocks[start:]
        reductions = sum("R" in axis_kinds(b) for b in group)
        if reductions and shared_rows(group):
            return group
    return []


def schedule_block(sch: Schedule, block: BlockRV, target: Target) -> None:
    """Schedules one block by its kind."""
    shape = shape_of(block_of(sch, block))
    if shape is None:
        return
    if shape.reduction:
        schedule_reduction(sch, block, target)
    else:
        schedule_elementwise(sch, block, target)


def rules_applied(function: tir.PrimFuncOp, target: Target, strict_math: bool = False) -> list[str]:
    """Returns the names of the rules that would change a function, in order; the function stays as it is."""
    copy = function.clone()
    sch = Schedule(ModuleOp([copy]))
    sch.state.focus = function.sym_name.data
    names: dict[str, None] = {}
    with declaring(_beside(function)), remembering_shapes(sch):
        sch.before_change.append(lambda: names.setdefault(CURRENT_RULE.get()))
        schedule_function(sch, copy, target, strict_math)
    names.pop("", None)
    return list(names)


def _beside(function: tir.PrimFuncOp) -> list[Operation]:
    """Returns the ops of a function's module: rules and intrinsics for a copy of it in another one."""
    parent = function.parent_op()
    return list(parent.body.block.ops) if isinstance(parent, ModuleOp) else []


def print_schedules(module: ModuleOp, target: Target, strict_math: bool = False) -> None:
    """Inserts after each function the script of the schedule that rules would apply to it.

    The function stays as it is.
    """
    scripts = [s for s in module.body.block.ops if isinstance(s, ScriptOp)]
    taken = {name.data for op in module.body.block.ops if isinstance(name := op.properties.get("sym_name"), StringAttr)}
    by_hand = {s.target.root_reference.data for s in scripts if s.target is not None}
    for function in prim_funcs(module):
        name = function.sym_name.data
        if name in by_hand or is_half(function):
            continue
        copy = function.clone()
        sch = Schedule(ModuleOp([copy]))
        sch.state.focus = name
        with declaring(_beside(function)), remembering_shapes(sch):
            schedule_function(sch, copy, target, strict_math)
        trace = sch.trace.simplified()
        if len(trace):
            chosen = take_name(f"{name}_schedule", taken)
            script = trace.as_script(chosen, name)
            script.location = function.location
            module.body.block.insert_op_after(script, function)


@dataclass(frozen=True)
class DefaultSchedule(ModulePass):
    """Schedules functions by rules on shape and target.

    `cpu` is LLVM's name of the processor ("" for this one), `threads` how many threads parallel loops may use (0: all).
    `caches` are the sizes of its data caches where they are not those that are known of it ("32K,1M,16M").

    A rule that a primitive refuses stops there; `--explain default-schedule` says which one, and why.
    With `print`, functions stay as they are, and after each is the schedule, as text that apply-schedule applies.
    With `strict_math`, terms of sums of floats are added in the order of the reduction's axes.
    """

    name = "default-schedule"

    cpu: str = ""
    threads: int = 0
    caches: str = ""
    print: bool = False
    strict_math: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Schedules every function of the module that is not scheduled yet.

        Raises MirError for fewer threads than none.
        """
        require_range(op, "threads", self.threads, 0)
        target = named(described_cpu(op.ops, self.cpu), self.threads or None, self.caches)
        if self.print:
            print_schedules(op, target, self.strict_math)
            return
        sch = Schedule(op)
        for function in prim_funcs(op):
            sch.work_on(function.sym_name.data)
            with remembering_shapes(sch):
                schedule_function(sch, function, target, self.strict_math)
