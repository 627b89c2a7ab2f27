"""Evaluates the sizes in an operator's `extents` for one call, in the interpreter.

`dyn.reshape(x, s)` of x: float32[2, 3] and s: int64[2] with the elements (2, -3): "'data' has 6 elements, but the new shape has -6".
Native code computes the same expressions in a shape function.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from numpy.typing import NDArray
from xdsl.dialects.builtin import DYNAMIC_INDEX

from ....support.diagnostics import error_at
from ....support.memory import why_no_memory
from ...array import numpy_dtype
from ...extents import MOST_EXTENT
from ...te import builder as te
from ...te.builder import Expr
from ...te.interpreter import interpret_te_func
from ...te.tensor import Read, Reduce, parts_of
from ...tir.types import type_to_dtype
from ..operator import OperatorOp
from ..operators.common.result_sizes import Requirement, fits, size_tensor, with_sizes
from ..operators.common.te_computes import constant
from ..types import tensor_leaves


class CallExtents:
    """The requirements and the open dimensions of one use of an operator, as a function of its arguments."""

    def __init__(self, op: OperatorOp):
        assert op.OPERATOR.extents is not None
        self._op = op
        inputs: list[te.Tensor] = []
        for type in (leaf for value in op.args for leaf in tensor_leaves(value.type)):
            dims = [te.size_var() if extent == DYNAMIC_INDEX else extent for extent in type.get_shape()]
            inputs.append(te.placeholder(dims, type_to_dtype(type.element_type), f"x{len(inputs)}"))
        found = op.OPERATOR.extents(op.attrs(), inputs, op.result.type)
        self._requirements: list[Requirement] = []
        self._dims: list[tuple[int, int]] = []
        """(tensor of the result, axis) of each size that is computed."""
        sides: list[Expr] = []
        told = True
        for needed in found.requirements:
            pair = [te.convert(needed.left), te.convert(needed.right)]
            told = told and _is_told_by(inputs, pair)
            if told and not _holds(needed, pair):
                self._requirements.append(needed)
                sides += pair
        for number, (shape, leaf) in enumerate(zip(found.shapes, tensor_leaves(op.result.type), strict=True)):
            for axis, (dim, declared) in enumerate(zip(map(te.convert, shape), leaf.get_shape(), strict=True)):
                # Native code reports requirements on counted sizes first.
                if told and declared == DYNAMIC_INDEX and _is_told_by(inputs, [dim]):
                    self._dims.append((number, axis))
                    sides.append(dim)
        self._function = None
        if sides:
            numbers = [size_tensor(side, f"size{k}") for k, side in enumerate(sides)]
            self._function = te.func("sizes", [*inputs, *numbers])

    def check(self, arrays: Sequence[NDArray[Any]]) -> None:
        """Raises MirError, with native code's message, where sizes do not fit or a result is impossible.

        Args:
            arrays: the tensors of the arguments, those of tuples one by one.
        """
        if self._function is None:
            return
        name = self._op.OPERATOR.name
        found = interpret_te_func(self._function, {f"x{k}": array for k, array in enumerate(arrays)})
        sizes = [int(found[f"size{k}"]) for k in range(len(found))]
        for k, needed in enumerate(self._requirements):
            pair = sizes[2 * k : 2 * k + 2]
            if not fits(needed.rule, *pair):
                raise error_at(self._op, f"{name}: {with_sizes(needed.message, pair)}")
        leaves = tensor_leaves(self._op.result.type)
        shapes = [list(leaf.get_shape()) for leaf in leaves]
        for (number, axis), size in zip(self._dims, sizes[2 * len(self._requirements) :], strict=True):
            if not 0 <= size <= MOST_EXTENT:
                raise error_at(self._op, f"dimension {axis} of the result of {name} would be {size}")
            shapes[number][axis] = size
        known = [
            (shape, leaf.element_type) for shape, leaf in zip(shapes, leaves, strict=True) if DYNAMIC_INDEX not in shape
        ]
        total = sum(prod(shape) * numpy_dtype(type_to_dtype(element)).itemsize for shape, element in known)
        if (reason := why_no_memory(total)) is not None:
            raise error_at(self._op, f"out of memory: the result of {name} {reason}")


def _holds(needed: Requirement, sides: Sequence[Expr]) -> bool:
    """Returns whether a requirement on known sizes holds; the type relation has checked expressions."""
    if any(isinstance(part, Read | te.Var) for part in parts_of(sides)):
        return False
    left, right = (constant(side) for side in sides)
    return left is None or right is None or fits(needed.rule, left, right)


def _is_told_by(inputs: Sequence[te.Tensor], sides: Sequence[Expr]) -> bool:
    """Returns whether sizes follow from shapes and single elements of the inputs.

    Sizes that need a count over elements are left to the operator's numpy meaning.
    """
    known = {id(part) for tensor in inputs for part in (tensor, *tensor.dims)}
    return all(
        id(part.tensor) in known
        if isinstance(part, Read)
        else not isinstance(part, Reduce) and (not isinstance(part, te.Var) or id(part) in known)
        for part in parts_of(sides)
    )
