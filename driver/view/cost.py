"""Lists the kernels of a program with their work, and their times where it was run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, StringAttr
from xdsl.ir import Operation

from ...dialects import relay, te, tir
from ...lowering.driver.kernel_work import work_of_kernels
from ...lowering.driver.loading.profile import Profile
from ...lowering.driver.profile_facts import KernelWork
from ...lowering.mangle_symbols import linked_name
from ...lowering.options import Options
from ...lowering.tir.signature import SHAPE, Size
from ...support.walk import walk_ops


@dataclass
class Kernel:
    """A kernel: the number of its calls, and of one call operations, bytes and seconds, as far as known."""

    name: str
    calls: float
    flops: float | None
    bytes: float | None
    rule: str
    ops: list[Operation]
    """What it computes: they know their places in the source."""
    seconds: float | None = None


def kernels_of(module: ModuleOp, options: Options) -> list[Kernel]:
    """Returns the kernels of a module whose Relay functions call them, in their order."""
    calls: dict[str, list[Operation]] = {}
    for op in walk_ops(module):
        if isinstance(op, relay.CallTirOp):
            calls.setdefault(op.callee.root_reference.data, []).append(op)
    for op in module.ops:
        # A kernel that takes another's place at large sizes.
        shape = op.attrs.data.get(SHAPE) if isinstance(op, te.FuncOp) else None
        variant = shape.data.get("variant") if isinstance(shape, DictionaryAttr) else None
        if isinstance(op, te.FuncOp) and isinstance(variant, StringAttr) and op.sym_name.data in calls:
            calls[variant.data] = calls[op.sym_name.data]
    if not any(isinstance(op, relay.FuncOp) for op in module.ops):
        functions = [op for op in module.ops if isinstance(op, tir.PrimFuncOp | te.FuncOp)]
        calls = {op.sym_name.data: [op] for op in functions}
    work = work_of_kernels(module, options)
    return [_kernel(name, ops, work.get(linked_name(name), KernelWork())) for name, ops in calls.items()]


def _kernel(name: str, ops: list[Operation], work: KernelWork) -> Kernel:
    inside = [each for op in ops for each in walk_ops(op)]
    return Kernel(name, len(ops), _known(work.operations), _known(work.bytes), work.rule, inside)


def _known(size: Size | None) -> float | None:
    """Returns an amount; None where it depends on sizes that only a call knows."""
    return size if isinstance(size, int) else None


def add_times(kernels: Iterable[Kernel], profile: Profile) -> None:
    """Gives the kernels that a profile has run their times, and their work at the sizes of the run."""
    rows = {row.symbol: row for row in profile.rows if row.symbol and row.calls}
    for kernel in kernels:
        row = rows.get(linked_name(kernel.name))
        kernel.calls = 0 if row is None else row.calls
        if row is not None:
            kernel.seconds = row.seconds / row.calls
            kernel.flops = None if row.flops is None else row.flops / row.calls
            kernel.bytes = None if row.bytes is None else row.bytes / row.calls
