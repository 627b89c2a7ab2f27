"""The passes of TVM's `lower`, in its order: those that follow a lowered schedule in `mirstack.lower`.

They are no part of the way to machine code (`lowering/pipeline.py`): `mirstack.lower` returns the TIR that TVM's function of this
name returns, so it runs TVM's list.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ....dialects import tir
from ....support.edit import erase_op
from ....support.walk import walk_ops
from .place_declarations import place_declarations
from .share_indices import share_indices

BLOCK_PASSES = (
    "lower-init-block", "plan-and-update-buffer-allocation-location", "convert-blocks-to-opaque", "compact-buffer-allocation",
    "unify-thread-binding", "lower-match-buffer", "inject-software-pipeline", "lower-opaque-block", "flatten-buffer",
    "narrow-data-type", "simplify",
)  # fmt: skip
"""Names of the passes that make flat loops of blocks and buffers, for functions not made of schedules."""

LOWER_PASSES = (
    "loop-partition", "vectorize-loop", "inject-virtual-thread", "inject-double-buffer", "storage-rewrite", "unroll-loop",
    "simplify", "remove-no-op", "rewrite-unsafe-select", "hoist-if-then-else",
)  # fmt: skip
"""By name. In simple mode loops are not partitioned."""


_OPTIONS: dict[str, dict[str, object]] = {"narrow-data-type": {"target_bits": 32}}


PHASES = {"loop-partition": 1, "simplify": 2}
"""The pass of `LOWER_PASSES` before which a phase of TVM's `tir.add_lower_pass` is; 0 is before all passes, 3 after them."""

Make = Callable[[str, dict[str, object]], ModulePass]
"""Makes the pass of a name with options."""


def _made(name: str, options: dict[str, object]) -> ModulePass:
    from ....passes.registry import PASSES

    return next(entry for entry in PASSES if entry.name == name).load()(**options)


def names(module: ModuleOp, *, simple_mode: bool, disabled: Collection[str]) -> Iterator[str | int]:
    """Yields the passes for lowered schedules, or for functions with blocks, and the phases between them.

    `disabled` are TVM's names.
    """
    from ....passes.pass_info import camel_case

    yield 0
    has_blocks = any(isinstance(op, tir.BlockOp) for op in walk_ops(module))
    for group in (BLOCK_PASSES if has_blocks else (), LOWER_PASSES):
        for name in group:
            if group is LOWER_PASSES and name in PHASES:
                yield PHASES[name]
            if not (simple_mode and name == "loop-partition") and camel_case(name) not in disabled:
                yield name
    yield 3


UNROLL_PRAGMAS = ("pragma_auto_unroll_max_step", "pragma_unroll_explicit")


def drop_unroll_pragmas(function: tir.PrimFuncOp) -> None:
    """Takes away what was said to `unroll-loop`, which has run."""
    for op in list(walk_ops(function)):
        if isinstance(op, tir.AttrOp) and op.key.data in UNROLL_PRAGMAS:
            token = op.node.owner
            erase_op(op)
            if isinstance(token, tir.IterVarOp) and not token.result.uses:
                variable = token.var.owner
                erase_op(token)
                if isinstance(variable, tir.VarOp):
                    _drop_variable(variable)


def _drop_variable(variable: tir.VarOp) -> None:
    loops = [use.operation for use in variable.result.uses]
    if all(isinstance(loop, tir.ForOp) and loop.var is variable.result for loop in loops):
        for loop in loops:
            loop.operands = loop.operands[:2]
        erase_op(variable)


def run_passes(
    module: ModuleOp,
    *,
    simple_mode: bool = False,
    disabled: Collection[str] = (),
    make: Make = _made,
    at_phase: Callable[[int, ModuleOp], ModuleOp] = lambda _, module: module,
) -> ModuleOp:
    """Runs the passes, in place, except those `disabled` by TVM's names (`CommonSubexprElimTIR`).

    `at_phase` is called at each phase, and returns the module to go on with.
    """
    context = Context()
    for each in list(names(module, simple_mode=simple_mode, disabled=disabled)):
        if isinstance(each, int):
            module = at_phase(each, module)
        else:
            make(each, _OPTIONS.get(each, {})).apply(context, module)
    for op in module.ops:
        if isinstance(op, tir.PrimFuncOp):
            drop_unroll_pragmas(op)
            if "CommonSubexprElimTIR" not in disabled:
                share_indices(op)
            place_declarations(op)
    return module
