"""A Primitive function as a TE function: each operator's TE compute, one after the other.

A dimension `?` of an input is a size variable of the TE function; the results' sizes follow from the computes. What has to
be computed and checked before the kernel runs is a second TE function, its shape function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import DYNAMIC_INDEX, DictionaryAttr, TensorType, TupleType
from xdsl.ir import Attribute, Operation, SSAValue

from ....dialects.relay import ir as relay
from ....dialects.relay.infer.open_checks import is_open, open_checks
from ....dialects.relay.operator import Compute, OperatorOp, OpPattern
from ....dialects.relay.operators.common.open_dims import Place, Sign, calculate
from ....dialects.relay.operators.common.te_computes import elementwise
from ....dialects.relay.operators.common.te_narrow_casts import (
    STORAGE,
    WIDE,
    narrow_bits,
    storage_dtype,
    te_narrow_cast,
)
from ....dialects.relay.types import tensor_leaves, tuple_of
from ....dialects.te import builder as te
from ....dialects.te import ops as te_ops
from ....dialects.te.apply import NumberTensor
from ....dialects.te.builder import Tensor
from ....dialects.tir.node import Const, Expr, ExprLike
from ....dialects.tir.size_relations import SIZES
from ....dialects.tir.types import dtype_to_type, type_to_dtype
from ....passes.autoschedule.rule_names import RULE
from ....passes.tir.buffers.param_strides import Strides, set_param_strides
from ....support.diagnostics import MirError, error_at
from ...tir.signature import SHAPE
from ..functions.flat_values import leaves_of
from ..memory.storage_views import RESHAPES
from .read_ranges import check_reads
from .shape_function import ShapeFunction, Sizes, Variant, shape_function

_ON_EXPRESSIONS: Mapping[Sign, Callable[[ExprLike, ExprLike], Expr]] = {
    # In 64 bits: products of sizes may leave 32.
    "+": lambda a, b: _wide(a) + _wide(b),
    "*": lambda a, b: _wide(a) * _wide(b),
    "//": te.floordiv,
    "%": te.floormod,
}


def _wide(size: ExprLike) -> Expr:
    return te.convert(size).astype("int64")


def te_kernel(function: relay.FnOp, name: str, strides: Strides = (), alike: Sequence[int] = ()) -> list[te_ops.FuncOp]:
    """Returns the TE function `name` of a Primitive function, then its variant and shape function.

    The first `te.func` has the inputs' leaves, then the outputs' leaves as parameters; `strides` are those of its parameters, in
    elements. `alike` has a number for each `?` of the inputs, the same one for sizes that are equal at every call. A variant for large sizes and a shape function may follow. Raises MirError for an operator without a tensor expression.
    """
    kernel = _Kernel(function, alike=alike)
    operators = [op.OPERATOR.name for op in function.body.block.ops if isinstance(op, OperatorOp)]
    shown = operators[0] if len(operators) == 1 else name
    with te.location_scope(function.location):
        result = [kernel.function(name)]
        set_param_strides(result[0], strides)
        numbers = kernel.sizes.numbers(kernel.results)
        computed = kernel.sizes.as_data(numbers)
        shape = None if computed is not None else shape_function(f"{name}_shape", kernel.inputs, numbers)
        variant: Variant | None = None
        # A written rule is for the loops that it was written for, at all sizes.
        if kernel.large is not None and RULE not in function.attrs.data:
            variant = Variant(f"{name}_large", kernel.large.symbol, kernel.large.least)
            result.append(_Kernel(function, large=True, alike=alike).function(variant.name))
    if shape is not None:
        result.append(shape)
    for each in result:
        each.location = function.location
        if (rules := function.attrs.data.get(RULE)) is not None and each is not shape:
            each.attrs = DictionaryAttr({**each.attrs.data, RULE: rules})
    is_view = _is_view(function)
    if kernel.sizes.are_open or numbers or is_view:
        shape_name = None if shape is None else shape.sym_name.data
        checks = tuple(c for c, *_ in kernel.sizes.checks)
        described = ShapeFunction(shape_name, shown, checks, computed or (), variant, is_view)
        result[0].attrs = DictionaryAttr({**result[0].attrs.data, SHAPE: described.to_attr()})
    return result


def _is_view(function: relay.FnOp) -> bool:
    """Returns whether a kernel only reshapes its first argument, to a shape with a `?`."""
    ops = [op for op in function.body.block.ops if not isinstance(op, relay.ReturnOp)]
    given: SSAValue = function.params[0] if function.params else function.result
    for op in ops:
        if not isinstance(op, OperatorOp) or op.OPERATOR.name not in RESHAPES or op.args[0] is not given:
            return False
        given = op.result
    return bool(ops) and is_open(function.params[0].type) and is_open(given.type)


def te_results(function: relay.FuncOp | relay.FnOp, inputs: Sequence[Tensor]) -> list[Tensor]:
    """Returns the TE tensors that a function of operators computes from the tensors `inputs`.

    The function's types are known, and the inputs have its parameters' types. Raises MirError for an operator without a tensor
    expression.
    """
    return _Kernel(function, given=inputs).results


def _before_products(ops: Sequence[Operation]) -> list[OperatorOp]:
    """Returns the operators that depend on no product or convolution, where there is one.

    multiply(nn.dense(%x, %w), exp(%s))      →      exp

    Schedules compute what follows a product within the product's loops, before which all else that it reads must be computed.
    """
    after: set[Operation] = set()
    for op in ops:
        is_product = isinstance(op, OperatorOp) and op.OPERATOR.pattern == OpPattern.OUT_ELEMWISE_FUSABLE
        if is_product or any(operand.owner in after for operand in op.operands):
            after.add(op)
    return [op for op in ops if isinstance(op, OperatorOp) and op not in after] if after else []


@dataclass(frozen=True)
class _Large:
    """That a kernel's operator has a compute for large sizes: for `least` or more of the size `symbol`."""

    size: te.Var
    least: int

    @property
    def symbol(self) -> str:
        """The size's name."""
        return self.size.name


class _Kernel:
    """The tensors of a Primitive function, by its operators' computes.

    With `large` they are those for large sizes. The inputs are placeholders, or the tensors `given`, depth first where parameters are
    tuples.
    """

    def __init__(
        self,
        function: relay.FuncOp | relay.FnOp,
        large: bool = False,
        given: Sequence[Tensor] | None = None,
        alike: Sequence[int] = (),
    ):
        self.use_large = large
        # The dimensions of results are then expressions of those of the tensors given.
        self._is_given = given is not None
        self._alike, self._size_of = iter(alike), dict[int, Expr]()
        self.large: _Large | None = None
        self.values: dict[SSAValue, Sequence[Tensor]] = {}
        self.inputs: list[Tensor] = []
        self.results: list[Tensor] = []
        self.sizes = Sizes({n.data for n in function.param_names.data})
        for param, name in zip(function.params, function.param_names.data, strict=True):
            leaves_of(param.type, param)  # what native code cannot hold is refused here, at the parameter
            leaves = tensor_leaves(param.type)
            names = [name.data + (f"_{k}" if len(leaves) > 1 else "") for k in range(len(leaves))]
            if given is None:
                tensors = [
                    te.placeholder(self._shape(leaf), _held(leaf), leaf_name)
                    for leaf, leaf_name in zip(leaves, names, strict=True)
                ]
            else:
                tensors = list(given[len(self.inputs) : len(self.inputs) + len(leaves)])
            self.inputs += tensors
            self.values[param] = tensors
        for op in function.body.block.ops:
            with te.location_scope(op.location):
                self._visit(op)
        self.before_products = [
            tensor
            for op in _before_products(list(function.body.block.ops))
            for tensor in self.values[op.result]
            if not isinstance(tensor, NumberTensor)
        ]

    @property
    def params(self) -> list[Tensor]:
        """The parameters of the TE function."""
        return [*self.inputs, *self.results]

    def function(self, name: str) -> te_ops.FuncOp:
        """Returns the TE function, with the relations of its sizes as an attribute."""
        first = [*self.inputs, *self.before_products] if self.before_products else []
        function = te.func(name, self.params, definitions=[tensor.op for tensor in first])
        large = self.large if self.use_large else None
        known = self.sizes.known([] if large is None else [("within", te.const(large.least), large.size)])
        if known.data:
            function.attrs = DictionaryAttr({**function.attrs.data, SIZES: known})
        return function

    def _shape(self, type: TensorType[Attribute]) -> tuple[int | Expr, ...]:
        return tuple(self._input_size() if extent == DYNAMIC_INDEX else extent for extent in type.get_shape())

    def _input_size(self) -> Expr:
        """Returns the size of the next `?` of the inputs: the same one for equal sizes."""
        number = next(self._alike, None)
        if number is None:
            return self.sizes.input_size()
        if number not in self._size_of:
            self._size_of[number] = self.sizes.input_size()
        return self._size_of[number]

    def _visit(self, op: Operation) -> None:
        values = self.values
        match op:
            case OperatorOp():
                values[op.result] = self._operator(op)
            case relay.ConstantOp():
                values[op.result] = [_scalar(op)]
            case relay.TupleOp():
                values[op.result] = [tensor for field in op.fields for tensor in values[field]]
            case relay.TupleGetItemOp():
                values[op.result] = _projection(op, values)
            case relay.LetOp():
                values[op.result] = values[op.value]
            case _:
                assert isinstance(op, relay.ReturnOp)
                for tensor in values[op.value]:
                    known = isinstance(tensor, NumberTensor) or any(tensor is other for other in self.params)
                    self.results.append(te.compute(tensor.shape, tensor, name="identity") if known else tensor)
                if not self._is_given:
                    self.sizes.name_results(self.results)

    def _computed(self, op: OperatorOp, compute: Compute, arguments: Sequence[Tensor]) -> Sequence[Tensor]:
        """Returns the operator's tensor expression; an error about integers names the operator, not TE."""
        try:
            return compute(op.attrs(), arguments, op.result.type)
        except MirError as error:
            dtypes = dict.fromkeys(tensor.dtype for tensor in arguments)
            if any("float" in dtype for dtype in dtypes) or not all(map(_is_static, arguments)):
                raise
            reason = error.diagnostics[0].message
            raise error_at(
                op,
                f"{op.OPERATOR.name} of {', '.join(dtypes)} has no tensor expression, so it cannot be compiled: {reason}",
                'compute it in floats, such as cast(%x, dtype="float32"), or run it with `--target interp`',
            ) from error

    def _on_bytes(self, op: OperatorOp, compute: Compute, arguments: Sequence[Tensor]) -> Sequence[Tensor]:
        """Returns the operator's tensor expression on bytes that hold elements of narrow dtypes.

        What moves elements moves bytes; what computes element by element does so in a wider dtype. Raises MirError for others.
        """
        name, results = op.OPERATOR.name, tensor_leaves(op.result.type)
        given = [type_to_dtype(leaf.element_type) for argument in op.args for leaf in tensor_leaves(argument.type)]
        wanted = [type_to_dtype(leaf.element_type) for leaf in results]
        if name in ("cast", "cast_like"):
            return [te_narrow_cast(arguments[0], given[0], wanted[0])]
        if name == "reinterpret":
            return [elementwise(lambda e: e.astype(storage_dtype(wanted[0])), arguments[0], "T_reinterpret")]
        if name in MOVES:
            return compute(op.attrs(), arguments, _with_dtypes(op.result.type, STORAGE))
        if op.OPERATOR.pattern > OpPattern.BROADCAST:
            narrow = next(dtype for dtype in (*given, *wanted) if dtype in STORAGE)
            raise error_at(
                op,
                f"{name} does not compute with {narrow} in native code",
                'compute it in a wider dtype, such as cast(%x, dtype="float32"), or run it with `--target interp`',
            )
        wide = [
            te_narrow_cast(x, dtype, WIDE[dtype]) if dtype in STORAGE else x
            for x, dtype in zip(arguments, given, strict=True)
        ]
        computed = compute(op.attrs(), wide, _with_dtypes(op.result.type, WIDE))
        return [
            te_narrow_cast(x, x.dtype, dtype) if dtype in STORAGE else x
            for x, dtype in zip(computed, wanted, strict=True)
        ]

    def _operator(self, op: OperatorOp) -> Sequence[Tensor]:
        operator, attrs = op.OPERATOR, op.attrs()
        compute = operator.compute
        if compute is None:
            raise error_at(
                op,
                f"{operator.name} has no tensor expression, so it cannot be compiled",
                "call-operator-functions, before fuse-ops, calls the TIR function that computes it"
                if operator.functions
                else "run it with `--target interp`",
            )
        arguments = [tensor for argument in op.args for tensor in self.values[argument]]
        if operator.large is not None and self.sizes.is_input(size := operator.large.size(arguments)):
            assert isinstance(size, te.Var)
            self.large = _Large(size, operator.large.least)
            if self.use_large:
                compute = operator.large.compute

        def size_of(place: Place) -> Expr:
            return arguments[place.leaf].dims[place.axis]

        for check in open_checks(op):
            needed = check.needed
            left, right = (calculate(side, size_of, _ON_EXPRESSIONS) for side in (needed.left, needed.right))
            self.sizes.check(needed.rule, left, right, check.message)
        empty = _empty(op.result.type)
        results = empty or (self._on_bytes if _is_narrow(op) else self._computed)(op, compute, arguments)
        if operator.extents is not None and not (empty and all(map(_is_static, arguments))):
            self.sizes.define(operator.name, results, operator.extents(attrs, arguments, op.result.type))
        for tensor in results:
            self.sizes.check_broadcast(operator.name, tensor)
        if self.sizes.are_open:
            check_reads(operator.name, _names(op, self.values), results, self.sizes)
        return results


MOVES = frozenset({
    "adv_index", "broadcast_to", "broadcast_to_like", "collapse_sum_like", "concatenate", "copy", "device_copy", "dyn.broadcast_to",
    "dyn.expand_dims", "dyn.full", "dyn.reshape", "dyn.squeeze", "dyn.strided_slice", "dyn.tile", "dyn.nn.pad", "expand_dims", "full",
    "full_like", "gather", "gather_nd", "layout_transform", "meshgrid", "ndarray_size", "nn.batch_flatten", "nn.depth_to_space",
    "nn.mirror_pad", "nn.pad", "nn.space_to_depth", "repeat", "reshape", "reshape_like", "reverse", "reverse_sequence", "shape_of",
    "slice_like", "split", "squeeze", "stack", "strided_slice", "take", "tile", "transpose", "where",
})  # fmt: skip
"""Operators that only move elements of their data, whatever they are."""


def _held(type: TensorType[Attribute]) -> str:
    """Returns the dtype in which kernels hold a tensor's elements."""
    return storage_dtype(type_to_dtype(type.element_type))


def _is_narrow(op: OperatorOp) -> bool:
    """Returns whether an argument or a result has elements of a narrow dtype."""
    types = [*(argument.type for argument in op.args), op.result.type]
    return any(type_to_dtype(leaf.element_type) in STORAGE for type in types for leaf in tensor_leaves(type))


def _with_dtypes(type: Attribute, dtypes: Mapping[str, str]) -> Attribute:
    """Returns a type with the element types that `dtypes` names replaced."""
    if isinstance(type, TupleType):
        return tuple_of([_with_dtypes(field, dtypes) for field in type.types.data])
    if not isinstance(type, TensorType):
        return type
    dtype = type_to_dtype(type.element_type)
    return TensorType(dtype_to_type(dtypes.get(dtype, dtype)), type.get_shape())


def _empty(type: Attribute) -> Sequence[Tensor]:
    """Returns tensors for a result type without elements; none for any other type."""
    leaves = tensor_leaves(type)
    if not all(0 in leaf.get_shape() and DYNAMIC_INDEX not in leaf.get_shape() for leaf in leaves):
        return ()
    return [_zeros(leaf.get_shape(), _held(leaf)) for leaf in leaves]


def _zeros(shape: Sequence[int], dtype: str) -> Tensor:
    def zero(*_: object) -> Expr:
        return te.const(0, dtype)

    return te.compute(shape, zero, name="T_empty")


def _names(op: OperatorOp, values: dict[SSAValue, Sequence[Tensor]]) -> dict[Tensor, str]:
    """Returns the operator's names of its input tensors."""
    names: dict[Tensor, str] = {}
    for argument, name in zip(op.args, op.OPERATOR.arguments, strict=True):
        tensors = values[argument]
        for field, tensor in enumerate(tensors):
            shown = f"{name.lstrip('*')}[{field}]" if isinstance(argument.type, TupleType) else name
            names.setdefault(tensor, shown)
    return names


def _is_static(tensor: Tensor) -> bool:
    return all(isinstance(dim, Const) for dim in tensor.dims)


def _scalar(op: relay.ConstantOp) -> Tensor:
    value = op.value.array.item()
    type = op.result.type
    assert isinstance(type, TensorType)
    dtype = type_to_dtype(type.element_type)
    return NumberTensor(te.const(narrow_bits(value, dtype) if dtype in STORAGE else value, storage_dtype(dtype)))


def _projection(op: relay.TupleGetItemOp, values: dict[SSAValue, Sequence[Tensor]]) -> Sequence[Tensor]:
    type = op.tuple_value.type
    assert isinstance(type, TupleType)
    index = op.index.value.data
    at = sum(len(tensor_leaves(field)) for field in type.types.data[:index])
    return values[op.tuple_value][at : at + len(tensor_leaves(type.types.data[index]))]
