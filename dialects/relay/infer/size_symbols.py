"""Finds dimensions `?` of a function that are equal whatever the sizes of its inputs are.

    %1 = nn.relu(%x)          %x (a, 64)  →  %1 (a, 64)
    %2 = nn.max_pool1d(…)     (n, c, w)   →  (n, c, (w - 1) // 2 + 1)
    add(%x, %1)               both are (a, 64): nothing is left to check

Each `?` of a parameter is a symbol. A type relation runs on dimensions that remember where they come from (`open_dims.py`), and what it computes
of them is a formula of symbols. Two sizes are equal if their formulas are the same; a dimension that a relation does not tell is a new symbol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType, TupleType

from ....support.diagnostics import MirError
from ....support.walk import walk_ops
from .. import ir
from ..operator import OperatorOp
from ..operators.common.open_dims import ON_NUMBERS, Comparison, Formula, OpenDim, Place, Sign, Size, calculate
from ..types import tensor_leaves
from .open_checks import is_open, related
from .relation import Postponed

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Operation, SSAValue

Shapes = tuple[tuple[Size, ...], ...]
"""The dimensions of the tensors of a value, tuples flattened."""


class SizeSymbols:
    """The dimensions of all values of a function, as formulas of symbols."""

    def __init__(self, function: Operation, given: Mapping[SSAValue, Shapes] | None = None):
        """Takes the dimensions that are known of some values, such as parameters whose sizes are equal."""
        self._shapes: dict[SSAValue, Shapes] = dict(given or {})
        self._count = 0
        blocks = (block for op in walk_ops(function) for region in op.regions for block in region.blocks)
        if any(is_open(arg.type) for block in blocks for arg in block.args):
            for op in walk_ops(function):
                for result in op.results:
                    if is_open(result.type):
                        self._shapes[result] = self._result(op, result.type, self.shapes)

    def shapes(self, value: SSAValue) -> Shapes:
        """Returns the dimensions of a value's tensors."""
        found = self._shapes.get(value)
        if found is None:
            found = _fixed(value.type)
            if found is None:
                found = self._shapes[value] = self._fresh(value.type)
        return found

    def fit(self, op: OperatorOp) -> bool:
        """Returns whether an operator's arguments always fit, so that no call checks their sizes."""
        try:
            checks, _ = related(op, self.shapes)
        except (MirError, Postponed):
            return False
        return all(needed.left == needed.right for needed in checks)

    def alike(self, values: Iterable[SSAValue]) -> tuple[int, ...]:
        """Returns a number for each `?` of these values in order; equal sizes have the same one."""
        numbers: dict[Size, int] = {}
        return tuple(
            numbers.setdefault(size, len(numbers))
            for value in values
            if is_open(value.type)
            for leaf, shape in zip(tensor_leaves(value.type), self.shapes(value), strict=True)
            for declared, size in zip(leaf.get_shape(), shape, strict=True)
            if declared == DYNAMIC_INDEX
        )

    def _fresh(self, type: Attribute) -> Shapes:
        """Returns the shapes of a type, each `?` a symbol that occurs nowhere else."""
        shapes: list[tuple[Size, ...]] = []
        for leaf in _leaves(type):
            self._count += 1
            shape = enumerate(leaf.get_shape())
            shapes.append(tuple(Place(self._count, axis) if d == DYNAMIC_INDEX else d for axis, d in shape))
        return tuple(shapes)

    def _result(self, op: Operation, type: Attribute, shapes: Callable[[SSAValue], Shapes]) -> Shapes:
        """Returns the shapes of an op's result."""
        match op:
            case ir.LetOp():
                return shapes(op.value)
            case ir.TupleOp():
                return tuple(shape for field in op.fields for shape in shapes(field))
            case ir.TupleGetItemOp() if isinstance(op.tuple_value.type, TupleType):
                index, fields = op.index.value.data, op.tuple_value.type.types.data
                start = sum(len(_leaves(field)) for field in fields[:index])
                return shapes(op.tuple_value)[start : start + len(_leaves(type))]
            case OperatorOp():
                return self._of_operator(op, type, shapes)
            case ir.CallOp() if isinstance(function := op.callee.owner, ir.FnOp) and _holds_operators(function):
                return self._of_kernel(op, function)
            case _:
                return self._fresh(type)

    def _of_kernel(self, op: ir.CallOp, function: ir.FnOp) -> Shapes:
        """Returns the shapes that a function of operators computes for the arguments of a call."""
        block = function.body.block
        known: dict[SSAValue, Shapes] = {}
        known.update((param, self.shapes(value)) for param, value in zip(block.args, op.arguments, strict=True))

        def shapes(value: SSAValue) -> Shapes:
            return known[value] if value in known else self.shapes(value)

        for inner in block.ops:
            if isinstance(inner, ir.ReturnOp):
                return shapes(inner.value)
            for result in inner.results:
                if is_open(result.type):
                    known[result] = self._result(inner, result.type, shapes)
        return self._fresh(op.result.type)

    def _of_operator(self, op: OperatorOp, type: Attribute, shapes: Callable[[SSAValue], Shapes]) -> Shapes:
        """Returns the shapes that the type relation computes; a new symbol for what it does not tell."""
        fresh = self._fresh(type)
        try:
            checks, result = related(op, shapes)
        except (MirError, Postponed):
            return fresh
        leaves = _leaves(result)
        if [len(leaf.get_shape()) for leaf in leaves] != [len(shape) for shape in fresh]:
            return fresh
        # Of two sizes that broadcast the relation returns either.
        unsure = {
            side
            for each in checks
            if each.rule in ("stretch", "expand") and each.left != each.right
            for side in _sides(each)
        }
        return tuple(
            tuple(_told(dim, new, unsure) for dim, new in zip(leaf.get_shape(), shape, strict=True))
            for leaf, shape in zip(leaves, fresh, strict=True)
        )


def _told(dim: int, new: Size, unsure: set[Size]) -> Size:
    """Returns the dimension of a result, `new` where it is not known."""
    if new != DYNAMIC_INDEX and isinstance(new, int):
        return new
    if not isinstance(dim, OpenDim):
        return new if dim == DYNAMIC_INDEX else dim
    return new if _mentions(dim.size, unsure) else canonical(dim.size)


def canonical(size: Size) -> Size:
    """Returns a formula with its constants together: (w + 1) // 2 + 1 is (w + 3) // 2."""
    return calculate(size, lambda place: place, {sign: _combiner(sign) for sign in ON_NUMBERS})


def _combiner(sign: Sign) -> Callable[[Size, Size], Size]:
    return lambda left, right: _combined(sign, left, right)


def _combined(sign: Sign, left: Size, right: Size) -> Size:
    if isinstance(left, int) and isinstance(right, int):
        return Formula(sign, left, right) if sign in ("//", "%") and right <= 0 else ON_NUMBERS[sign](left, right)
    if sign in ("+", "*") and isinstance(left, int):
        left, right = right, left
    match sign, left, right:
        case ("+", _, 0) | ("*" | "//", _, 1):
            return left
        case "+", Formula("+", inner, int() as first), int():
            return _combined("+", inner, first + right)
        case "+", Formula("//", inner, int() as by), int() if by > 0:
            return _combined("//", _combined("+", inner, right * by), by)
        case "//", Formula("//", inner, int() as by), int() if by > 0 and right > 0:
            return _combined("//", inner, by * right)
        case _:
            return Formula(sign, left, right)


def _mentions(size: Size, sides: set[Size]) -> bool:
    if size in sides:
        return True
    return isinstance(size, Formula) and (_mentions(size.left, sides) or _mentions(size.right, sides))


def _sides(needed: Comparison) -> tuple[Size, ...]:
    return tuple(side for side in (needed.left, needed.right) if not isinstance(side, int))


def _holds_operators(function: ir.FnOp) -> bool:
    return function.self_name is None and not any(op.regions for op in function.body.block.ops)


def _leaves(type: Attribute) -> list[TensorType[Attribute]]:
    try:
        return tensor_leaves(type)
    except MirError:
        return []


def _fixed(type: Attribute) -> Shapes | None:
    """Returns the shapes of a type without `?`."""
    leaves = [tuple(leaf.get_shape()) for leaf in _leaves(type)]
    return None if any(DYNAMIC_INDEX in shape for shape in leaves) else tuple(leaves)
