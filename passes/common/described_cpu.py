"""Finds the processor that a pass names: one of LLVM's, or one that the program describes."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import Operation

from ...support.target import DESCRIPTION


def described_cpu(ops: Iterable[Operation], cpu: str) -> str:
    """Returns a processor as options have it: its description, if an op has one, or its name.

    "my-cpu"    →    "my-cpu=haswell:lanes=8"
    """
    for op in ops if cpu else ():
        if op.name == DESCRIPTION:
            from ...dialects.target import DescribeTargetOp

            if isinstance(op, DescribeTargetOp) and op.sym_name.data == cpu:
                return op.description.text
    return cpu
