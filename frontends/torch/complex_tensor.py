"""Represents complex tensors by pairs of real ones, and registers what converts operators on them.

    y = aten._fft_r2c(x)      aten.abs(y)       →       %0 = dft(%x, zeros)      sqrt(%0.0 * %0.0 + %0.1 * %0.1)

No type of Relay is complex: such tensors are values between nodes, never inputs or results of a program.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from xdsl.ir import SSAValue

from ..common.rule_table import RuleTable

PART_DTYPES = {"torch.complex64": "float32", "torch.complex128": "float64"}
"""The dtypes of real and imaginary parts."""


@dataclass(frozen=True)
class ComplexTensor:
    """Real and imaginary part, of one shape and dtype."""

    real: SSAValue
    imaginary: SSAValue


ComplexConverter: TypeAlias = "Callable[..., Any]"
"""Takes the node, then the arguments in the order of the schema; complex tensors are `ComplexTensor`s."""

COMPLEX: RuleTable[ComplexConverter] = RuleTable(
    __package__ or "", __file__, "torch.complex.", modules=("complex_numbers", "fourier"), files=()
)

complex_operator = COMPLEX.operator

BY_PARTS = frozenset((
    "_unsafe_view", "alias", "as_strided", "cat", "clone", "contiguous", "cumsum", "detach", "diagonal", "expand", "flip", "gather",
    "index", "index_select", "lift_fresh_copy", "mean", "neg", "permute", "repeat", "reshape", "resolve_conj", "roll", "select",
    "select_scatter", "slice", "slice_scatter", "split", "split_with_sizes", "squeeze", "stack", "sum", "t", "transpose", "tril",
    "triu", "unbind", "unsqueeze", "view",
))  # fmt: skip
"""Operators that are linear: real and imaginary parts of the result are those of the operands'."""

BILINEAR = frozenset(("bmm", "mm", "mul"))
"""Products: linear in each of two operands."""
