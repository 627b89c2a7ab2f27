"""Builds a Relay function op by op: typed as it is built, with shape arithmetic evaluated on the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType, TupleType
from xdsl.ir import Attribute, Block, Region, SSAValue

from ...dialects.array import ArrayValueAttr
from ...dialects.relay import ir
from ...dialects.relay.emit import Emitter
from ...dialects.relay.infer.result import infer_result
from ...dialects.relay.operator import OperatorOp
from ...dialects.relay.operators.shape.reshape import NewShapeError, new_shape
from ...dialects.relay.types import tuple_of
from ...dialects.tir.types import dtype_to_type, type_to_dtype
from ...passes.relay.common.evaluation import evaluate_operator
from ...passes.relay.common.rewriting import erase_unused
from ...support.diagnostics import MirError
from ...support.edit import erase_op, insert_op_before
from .open_sizes import WORLDS, Extent, OpenSize, Sizes, extent, in_world, product

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

MOST_ELEMENTS = 4096
"""Larger tensors are not evaluated while the function is built."""

_KEPT = frozenset({"qnn.dequantize"})
"""Operators that are not evaluated for constants: weights stay in bytes."""

_COMPARISONS = frozenset({"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"})


class GraphBuilder(Emitter):
    """Creates the body of a function, or a branch in it.

    Each op is typed as it is created. An operator on small constants is evaluated at once, and one on sizes is followed
    (`open_sizes.py`), so that `array` and `elements` know what a shape is; ops that nothing uses are erased at the end.

        b = GraphBuilder()
        x = b.parameter("x", "float32", ["batch", 3])
        y = b.call("nn.relu", x)
        b.reshape(y, b.call("concatenate", …))           // a static reshape wherever the sizes are known
        module = b.finish_function("main", y)
    """

    def __init__(self, outer: GraphBuilder | None = None):
        self.block = Block()
        # Ops are inserted before this one, in whose place the terminator is put.
        end = ir.TupleOp([])
        self.block.add_op(end)
        super().__init__(end)
        self.names: list[str] = []
        self.functions: list[ir.FuncOp] = [] if outer is None else outer.functions
        """Further functions of the module, which the body calls."""
        self.sizes: Sizes = Sizes() if outer is None else outer.sizes
        self._extents: dict[SSAValue, tuple[Extent, ...]] = {} if outer is None else outer._extents
        self._worlds: dict[SSAValue, list[Array]] = {} if outer is None else outer._worlds
        if outer is not None:
            self.location = outer.location

    # Values --------------------------------------------------------------------------------------------------------

    def parameter(self, name: str, dtype: str, shape: Sequence[Extent | str | None]) -> SSAValue:
        """Creates a parameter; equal names are equal sizes, and None is any size."""
        known = tuple(self._extent_of(size) for size in shape)
        type = TensorType(dtype_to_type(dtype), [DYNAMIC_INDEX if isinstance(e, OpenSize) else e for e in known])
        value = self.block.insert_arg(type, len(self.block.args))
        value.name_hint = None
        self.names.append(name)
        self._extents[value] = known
        return value

    def size_parameter(self, name: str, size: OpenSize) -> SSAValue:
        """Creates a parameter that is a dimension: a tensor of rank 0."""
        value = self.parameter(name, "int64", [])
        self._worlds[value] = [np.asarray(number, np.int64) for number in size.worlds]
        return value

    def _extent_of(self, size: Extent | str | None) -> Extent:
        if isinstance(size, int | OpenSize):
            return size
        return self.sizes.fresh() if size is None else self.sizes.named(size)

    def typed_parameter(self, name: str, type: Attribute) -> SSAValue:
        """Creates a parameter of any type."""
        self.names.append(name)
        return self.block.insert_arg(type, len(self.block.args))

    def array_constant(self, array: Array, origin: tuple[str, str] | None = None) -> SSAValue:
        """Creates a constant of the array's own dtype, without a copy; it must not be written to later.

        `origin` is the side file that has the array, and its name there.
        """
        attribute = ArrayValueAttr.of(array, origin)
        return self.insert(ir.ConstantOp(attribute, TensorType(dtype_to_type(array.dtype.name), array.shape)))

    def integers(self, values: Sequence[int] | Sequence[Sequence[int]] | int, dtype: str = "int64") -> SSAValue:
        """Creates a constant of integers."""
        return self.constant(values, dtype)

    def add(self, op: OperatorOp) -> SSAValue:
        """Types and inserts a new operator, or the constant that it computes from small constants."""
        if not isinstance(op.result.type, TensorType | TupleType):
            self.infer(op)
        folded = self._folded(op)
        if folded is None:
            return self.insert(op)
        op.erase()  # It must not count as a use of its arguments.
        return folded

    def tuple_parts(self, value: SSAValue) -> list[SSAValue]:
        """Returns the fields of a tuple."""
        type = value.type
        assert isinstance(type, TupleType)
        return [self.field(value, index) for index in range(len(type.types.data))]

    # Types ---------------------------------------------------------------------------------------------------------

    def dtype(self, value: SSAValue) -> str:
        """Returns a tensor's dtype, "float32"."""
        return type_to_dtype(cast("TensorType[Attribute]", value.type).element_type)

    def rank(self, value: SSAValue) -> int:
        """Returns a tensor's number of dimensions."""
        return len(self.type_shape(value))

    def type_shape(self, value: SSAValue) -> tuple[int, ...]:
        """Returns the shape that a tensor's type has, `DYNAMIC_INDEX` for an open dimension."""
        return tuple(cast("TensorType[Attribute]", value.type).get_shape())

    def static_shape(self, value: SSAValue) -> tuple[int, ...] | None:
        """Returns the shape; None if a dimension is known only at run time."""
        shape = self.type_shape(value)
        return None if DYNAMIC_INDEX in shape else shape

    def extents(self, value: SSAValue) -> tuple[Extent, ...]:
        """Returns a tensor's dimensions: numbers, and the same `OpenSize` for equal open ones."""
        found = self._extents.get(value)
        if found is None:
            shape = self.type_shape(value)
            if DYNAMIC_INDEX not in shape:
                return shape
            found = self._extents[value] = self._derived(value, shape)
        return found

    def set_extents(self, value: SSAValue, extents: Sequence[Extent]) -> SSAValue:
        """Notes a tensor's dimensions as its source knows them; returns it with the numbers in its type."""
        static = self.reshape_attributes(value, extents) if self.static_shape(value) is None else None
        pairs = zip(self.type_shape(value), extents, strict=True)
        if static is not None and any(a == DYNAMIC_INDEX and isinstance(b, int) for a, b in pairs):
            value = self.call("reshape", value, newshape=static[0], allowzero=static[1])
        self._extents[value] = tuple(extents)
        return value

    def _derived(self, value: SSAValue, shape: Sequence[int]) -> tuple[Extent, ...]:
        """Evaluates the type of an operator's result in each world."""
        owner, shapes = value.owner, list[Sequence[int] | None]()
        if isinstance(owner, ir.LetOp):
            return self.extents(owner.value)
        index: int | None = None
        if isinstance(owner, ir.TupleGetItemOp):
            index, owner = owner.index.value.data, owner.tuple_value.owner
        if isinstance(owner, OperatorOp):
            for world in range(WORLDS):
                found = self._type_in(owner, world)
                if index is not None and isinstance(found, TupleType):
                    found = found.types.data[index]
                sizes = found.get_shape() if isinstance(found, TensorType) else (DYNAMIC_INDEX,)
                shapes.append(None if min(sizes, default=0) < 0 else sizes)
        if not shapes or shapes[0] is None or shapes[1] is None:
            return tuple(self.sizes.fresh() if size == DYNAMIC_INDEX else size for size in shape)
        # An operator may be undefined on small sizes only, as a window that is larger than the image.
        first = shapes[0]
        sizes = zip(*[first if each is None else each for each in shapes], strict=True)
        return tuple(
            extent(tuple(found)) if size == DYNAMIC_INDEX else size for size, found in zip(shape, sizes, strict=True)
        )

    def _type_in(self, op: OperatorOp, world: int) -> Attribute | None:
        block = Block(arg_types=[self._argument_type(arg, world) for arg in op.args])
        probe = type(op)(block.args, op.given())
        try:
            infer_result(probe, any_size=True)
        except MirError:
            return None
        return probe.result.type

    def _argument_type(self, value: SSAValue, world: int) -> Attribute:
        if isinstance(value.type, TupleType) and isinstance(value.owner, ir.TupleOp):
            return tuple_of([self._argument_type(field, world) for field in value.owner.fields])
        if not isinstance(value.type, TensorType) or DYNAMIC_INDEX not in value.type.get_shape():
            return value.type
        shape = [in_world(size, world) for size in self.extents(value)]
        return TensorType(value.type.element_type, shape)

    # Values that are known -----------------------------------------------------------------------------------------

    def array(self, value: SSAValue | None) -> Array | None:
        """Returns a constant's elements; None for what is not a constant."""
        if value is None or not isinstance(value.owner, ir.ConstantOp):
            return None
        return cast("Array", value.owner.value.array)

    def elements(self, value: SSAValue) -> list[Extent] | None:
        """Returns the elements of a small tensor of integers; None where they are not known.

        Of `concatenate((shape_of(%x), [12, 64]))` with %x: Tensor[(?, 8), float32] these are [?, 8, 12, 64].
        """
        array = self.array(value)
        if array is not None:
            return [int(each) for each in array.reshape(-1)]
        worlds = self._worlds.get(value)
        if worlds is None:
            return None
        flat = np.stack([world.reshape(-1) for world in worlds], axis=1)
        return [extent(tuple(int(each) for each in row)) for row in flat]

    def _folded(self, op: OperatorOp) -> SSAValue | None:
        """Evaluates an operator where its arguments are known; returns the constant, if it is one."""
        operator = op.OPERATOR
        if (
            operator.stateful
            or operator.name in _KEPT
            or not isinstance(op.result.type, TensorType)
            or _count(op.result.type) > MOST_ELEMENTS
        ):
            return None
        if operator.name in ("shape_of", "ndarray_size"):
            return self._size_of(op)
        arguments = [self._in_worlds(argument) for argument in op.args]
        if any(argument is None for argument in arguments):
            return None
        known = cast("list[list[Any]]", arguments)
        if all(len(argument) == 1 for argument in known):
            value = evaluate_operator(op, [argument[0] for argument in known])
            return None if value is None else self.array_constant(value)
        if operator.name in _COMPARISONS and not any(len(each) == 1 and np.all(np.less(each[0], 0)) for each in known):
            return None
        results = [evaluate_operator(op, [each[world % len(each)] for each in known]) for world in range(WORLDS)]
        return self._note(op, results)

    def _note(self, op: OperatorOp, results: Sequence[Any]) -> SSAValue | None:
        if any(not isinstance(each, np.ndarray) or each.shape != results[0].shape for each in results):
            return None
        first = cast("Array", results[0])
        if all(np.array_equal(first, each) for each in results[1:]):
            return self.array_constant(first)
        self._worlds[op.result] = [cast("Array", each) for each in results]
        return None

    def _size_of(self, op: OperatorOp) -> SSAValue | None:
        source = op.args[0]
        if not isinstance(source.type, TensorType):
            return None
        meaning = cast("Callable[..., Any]", op.OPERATOR.numpy)
        shapes = [[in_world(size, world) for size in self.extents(source)] for world in range(WORLDS)]
        if any(min(each, default=0) < 0 for each in shapes):
            return None
        # Only the shape counts: there are no elements, whose bytes numpy could not count.
        tensors = [SimpleNamespace(shape=tuple(each), size=prod(each)) for each in shapes]
        try:
            return self._note(op, [np.asarray(meaning(op.attrs(), each)) for each in tensors])
        except OverflowError:
            return None  # A size in a world is beyond the dtype's numbers.

    def _in_worlds(self, value: SSAValue) -> list[Any] | None:
        """Returns a known value: once if it is a constant, otherwise in each world."""
        owner = value.owner
        if isinstance(owner, ir.TupleOp):
            fields = [self._in_worlds(field) for field in owner.fields]
            if any(field is None for field in fields):
                return None
            known = cast("list[list[Any]]", fields)
            worlds = max((len(each) for each in known), default=1)
            return [tuple(each[world % len(each)] for each in known) for world in range(worlds)]
        array = self.array(value)
        if array is not None:
            return [array] if array.size <= MOST_ELEMENTS else None
        return self._worlds.get(value)

    # Shapes that may be computed -----------------------------------------------------------------------------------

    def shape_tensor(self, value: SSAValue, dtype: str = "int64") -> SSAValue:
        """Returns a tensor's shape as a tensor; a constant where it is fixed."""
        return self.call("shape_of", value, dtype=dtype)

    def sized(self, value: SSAValue, extents: Sequence[Extent]) -> SSAValue:
        """Notes the dimensions of a value whose type does not say them; returns the value.

        Of the result of `dyn.reshape` to (seq, 12, 64) the type has only the rank.
        """
        shape = self.type_shape(value)
        if DYNAMIC_INDEX in shape and len(shape) == len(extents):
            self._extents[value] = tuple(
                known if size == DYNAMIC_INDEX else size for size, known in zip(shape, extents, strict=True)
            )
        return value

    def size(self, value: SSAValue, axis: int, dtype: str = "int64") -> SSAValue:
        """Returns a dimension as a tensor of rank 0; a constant where it is fixed."""
        size = self.extents(value)[axis]
        if isinstance(size, int):
            return self.constant(size, dtype)
        return self.call("take", self.shape_tensor(value, dtype), self.integers(axis % self.rank(value)), axis=0)

    def sizes_tensor(self, sizes: Sequence[int | SSAValue]) -> SSAValue:
        """Returns a tensor of numbers and tensors of rank 0 (int64), as a shape has them."""
        if all(isinstance(size, int) for size in sizes):
            return self.integers(cast("Sequence[int]", sizes))
        parts = [self.integers([size]) if isinstance(size, int) else self.reshape(size, [1]) for size in sizes]
        return self.call("concatenate", self.tuple(parts), axis=0)

    def reshape(self, value: SSAValue, shape: SSAValue | Sequence[Extent], allowzero: bool = True) -> SSAValue:
        """Reshapes to a shape that may be computed; -1 is what is left, 0 is a dimension of size 0.

        Without `allowzero`, 0 is the dimension at the same place. A dimension that is computed is named by Relay's 0 (copied), -1,
        -3 (a product of two) and -4 (a part) where they say the same; otherwise the shape is an argument of `dyn.reshape`.
        """
        wanted: list[Extent] | None = list(shape) if not isinstance(shape, SSAValue) else self.elements(shape)
        own = self.extents(value)
        if wanted is not None:
            if not allowzero:
                wanted = [own[at] if size == 0 and at < len(own) else size for at, size in enumerate(wanted)]
                allowzero = 0 in wanted or not isinstance(shape, SSAValue)
            static = self.reshape_attributes(value, wanted)
            if static is not None:
                if tuple(static[0]) == self.static_shape(value):
                    return value
                return self.call("reshape", value, newshape=static[0], allowzero=static[1])
            if self._all_left(own, wanted) is None:
                wanted = None
        if not isinstance(shape, SSAValue):
            shape = self.integers([size if isinstance(size, int) else -1 for size in shape])
        result = self.call("dyn.reshape", value, shape, allowzero=allowzero)
        return result if wanted is None else self.sized(result, self._all_left(own, wanted) or wanted)

    def _all_left(self, own: Sequence[Extent], wanted: Sequence[Extent]) -> list[Extent] | None:
        """Returns a shape whose -1 is replaced by what is left; None where that does not divide."""
        if -1 not in wanted:
            return list(wanted)
        found: list[int] = []
        for world in range(WORLDS):
            part = prod(in_world(size, world) for size in wanted if size != -1)
            whole = prod(in_world(size, world) for size in own)
            if not part or whole % part:
                return None
            found.append(whole // part)
        return [extent(tuple(found)) if size == -1 else size for size in wanted]

    def reshape_attributes(self, value: SSAValue, wanted: Sequence[Extent]) -> tuple[list[int], bool] | None:
        """Returns Relay's attributes `newshape` and `allowzero` for a shape; None where they cannot say it."""
        own = self.extents(value)
        if all(isinstance(size, int) for size in wanted):
            sizes = cast("list[int]", list(wanted))
            if -1 in sizes and all(isinstance(size, int) for size in own) and 0 not in sizes:
                rest = prod(size for size in sizes if size != -1)
                sizes[sizes.index(-1)] = prod(cast("Sequence[int]", own)) // rest
            return sizes, 0 in sizes
        if 0 in wanted:
            return None
        full = self._all_left(own, wanted)
        if full is None:
            copied = _copied(own, wanted)
            return (copied, False) if copied.count(-1) <= 1 else None
        for newshape in (_copied(own, wanted), _regrouped(own, wanted)):
            if _says(newshape, own, full):
                return newshape, False
        return None

    def broadcast_to(self, value: SSAValue, shape: SSAValue | Sequence[int]) -> SSAValue:
        """Broadcasts to a shape that may be computed."""
        wanted: list[Extent] | None = list(shape) if not isinstance(shape, SSAValue) else self.elements(shape)
        if wanted is not None and all(isinstance(size, int) for size in wanted):
            if tuple(wanted) == self.extents(value):
                return value
            return self.call("broadcast_to", value, shape=cast("list[int]", wanted))
        if wanted is not None and tuple(wanted) == self.extents(value):
            return value
        assert isinstance(shape, SSAValue)
        result = self.call("dyn.broadcast_to", value, shape)
        return result if wanted is None else self.sized(result, wanted)

    # Ends ----------------------------------------------------------------------------------------------------------

    def finish(self, result: SSAValue) -> Block:
        """Ends the body with its result; ops in it that nothing uses are erased."""
        insert_op_before(ir.ReturnOp(result), self.before)
        erase_op(self.before)
        for op in reversed(list(self.block.ops)):
            if not isinstance(op, ir.ReturnOp):
                erase_unused(op, self.block)
        return self.block

    def finish_function(
        self, name: str, result: SSAValue, attributes: Mapping[str, Attribute] | None = None
    ) -> ir.FuncOp:
        """Ends the body and returns it as a function."""
        types = [value.type for value in self.block.args]
        body = Region(self.finish(result))
        return ir.FuncOp(name, self.names, types, ret_type=result.type, attrs=attributes, body=body)


def _copied(own: Sequence[Extent], wanted: Sequence[Extent]) -> list[int]:
    """Returns Relay's `newshape`: open dimensions are copied from the same place, or left over."""
    return [
        size if isinstance(size, int) else 0 if at < len(own) and own[at] == size else -1
        for at, size in enumerate(wanted)
    ]


def _regrouped(own: Sequence[Extent], wanted: Sequence[Extent]) -> list[int]:
    """Returns Relay's `newshape`: open dimensions are copied, merged in pairs, split in two, or left over."""
    found: list[int] = []
    source = at = 0
    while at < len(wanted):
        size = wanted[at]
        if source < len(own) and own[source] == size:
            found.append(0)
        elif source + 1 < len(own) and product(own[source], own[source + 1]) == size:
            found.append(-3)
            source += 1
        elif source < len(own) and at + 1 < len(wanted) and product(size, wanted[at + 1]) == own[source]:
            found += [-4, *(part if isinstance(part, int) else -1 for part in wanted[at : at + 2])]
            at += 1
        else:
            found.append(size if isinstance(size, int) else -1)
        source += 1
        at += 1
    return found


def _says(newshape: Sequence[int], own: Sequence[Extent], wanted: Sequence[Extent]) -> bool:
    """Returns whether Relay's `newshape` is this shape in every world."""
    for world in range(WORLDS):
        try:
            found = new_shape([in_world(size, world) for size in own], newshape)
        except NewShapeError:
            return False
        if found != [in_world(size, world) for size in wanted]:
            return False
    return True


def _count(type: TensorType[Attribute]) -> int:
    shape = type.get_shape()
    return MOST_ELEMENTS + 1 if DYNAMIC_INDEX in shape else prod(shape)
