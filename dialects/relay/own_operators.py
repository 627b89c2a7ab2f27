"""Makes entries of the operator table from descriptions: operators of one's own.

All that is not said follows from the compute: the type relation from the shapes of its results, the meaning by interpreting it. A
compute is TE or TIR functions, of which the first is taken that the arguments fit, or a Python function that makes tensors.

    functions of scalars        applied to each element, with broadcasting
    TE functions of tensors     become part of the kernel
    TIR functions               are called: a kernel of their own
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, LocationAttr, ModuleOp, TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from ...support.diagnostics import MirError, error_at
from ...support.text import counted, did_you_mean
from ..array import numpy_dtype
from ..tir.types import dtype_to_type, type_to_dtype
from .infer.tir_calls import function_type, tir_parameters
from .operator import Attrs, AttrSpec, Compute, Operator, OpPattern, Relation
from .operators.common import relations
from .operators.common.te_computes import broadcast_dims, broadcast_index, type_of_tensor
from .text import type_text
from .types import UNKNOWN, tensor_leaves

if TYPE_CHECKING:
    from ..te.builder import Tensor
    from ..te.ops import FuncOp

KINDS: Mapping[str, OpPattern] = {
    "elementwise": OpPattern.ELEMWISE,
    "broadcast": OpPattern.BROADCAST,
    "injective": OpPattern.INJECTIVE,
    "reduction": OpPattern.COMM_REDUCE,
    "contraction": OpPattern.OUT_ELEMWISE_FUSABLE,
    "opaque": OpPattern.OPAQUE,
}
"""The ways in which an operator may fuse, by their names."""

RELATIONS: Mapping[str, Callable[[Relation], None]] = {
    "identity": relations.identity,
    "broadcast": relations.broadcast,
    "compare": relations.compare,
}
"""The type relations that can be named."""

TENSOR = "Tensor"
"""The written type of any tensor."""


@dataclass(frozen=True)
class Description:
    """Describes an operator: name, arguments with types, attributes, and what computes it."""

    name: str
    arguments: tuple[str, ...]
    types: tuple[str, ...] = ()
    """Of the arguments, as they are written; none for tensors of any type."""
    result: str = TENSOR
    attributes: tuple[AttrSpec, ...] = ()
    relation: str | Callable[[Relation], None] = ""
    kind: str = ""
    functions: tuple[Operation, ...] = ()
    compute: Compute | None = None
    numpy: Callable[..., Any] | None = None
    onnx: str = ""
    doc: str = ""
    location: LocationAttr | None = field(default=None, compare=False)

    def refuse(self, message: str, *notes: str) -> MirError:
        """Returns the error of the description, at its place."""
        return error_at(self.location, f"operator {self.name}: {message}", *notes)


def make_operator(described: Description, gradient: Operation | None = None) -> Operator:
    """Returns the entry of a description, with its gradient. Raises MirError for what is wrong in it."""
    d = described
    relation = _relation(d)
    if d.kind and d.kind not in KINDS:
        raise d.refuse(f"there is no fusion kind '{d.kind}'{did_you_mean(d.kind, KINDS)}", f"it is {_one_of(KINDS)}")
    compute, called = d.compute, ()
    pattern = OpPattern.OPAQUE
    callees: list[Callee] = []
    numpy: Any = d.numpy
    if d.functions:
        callees = [Callee.of(d, function) for function in d.functions]
        of_tir = [callee for callee in callees if callee.te is None]
        if of_tir and len(of_tir) < len(callees):
            raise d.refuse(
                "its functions are of TE and of TIR",
                "TE functions become part of kernels, TIR functions are called: take one kind",
            )
        if of_tir:
            if d.kind not in ("", "opaque"):
                raise d.refuse(
                    f"a TIR function is called, so the fusion kind '{d.kind}' is not possible", "leave it out"
                )
            called = tuple(callees)
            numpy = numpy or partial(_call_tir, d.name, callees)
        else:
            compute = partial(_compute_by_functions, d.name, callees)
            if all(callee.is_of_scalars for callee in callees):
                pattern = OpPattern.ELEMWISE if len(d.arguments) == 1 else OpPattern.BROADCAST
    elif compute is None and numpy is None:
        raise d.refuse("it computes nothing", "name the TE or TIR function that computes it: compute @f")
    computed: Callable[[Relation], None] | None = None
    if called:
        computed = partial(_relation_of_functions, called)
    elif compute is not None:
        computed = partial(_relation_of_compute, compute, callees)
    if computed is not None:
        relation = computed if relation is None else partial(_checked, relation, computed)
    if relation is None:
        raise d.refuse("the type of its result is not said", f"name a type relation: {_one_of(RELATIONS)}")
    if numpy is None:
        assert compute is not None
        numpy = _Meaning(compute)
    return Operator(
        d.name,
        d.arguments,
        relation,
        KINDS[d.kind] if d.kind else pattern,
        numpy,
        compute,
        attributes=d.attributes,
        doc=d.doc,
        functions=called,
        gradient_rule=gradient,
        is_own=True,
        onnx=d.onnx or d.name,
    )


def _one_of(names: Mapping[str, object]) -> str:
    return ", ".join(names)


# Types ---------------------------------------------------------------------------------------------------------------

_TYPE = re.compile(r"Tensor\[\(([^)]*)\),\s*(\w+)\]")


@dataclass(frozen=True)
class _Written:
    """A written type: dimensions that are numbers, names of sizes, or `?`; and a dtype, or a name for one."""

    dims: tuple[str, ...]
    dtype: str

    @staticmethod
    def of(d: Description, text: str) -> _Written | None:
        """Returns a type; None for that of any tensor. Raises MirError for what is none."""
        if text == TENSOR:
            return None
        found = _TYPE.fullmatch(text)
        if found is None:
            raise d.refuse(f"'{text}' is not a type of tensors", "it is Tensor, or such as Tensor[(n, 4), float32]")
        return _Written(tuple(dim.strip() for dim in found[1].split(",") if dim.strip()), found[2])

    def bind(self, rel: Relation, index: int, sizes: dict[str, int], dtypes: dict[str, str]) -> None:
        """Compares an argument's type, and learns the meanings of names."""
        type = relations.rank_must_be(rel, index, len(self.dims))
        dtype = type_to_dtype(type.element_type)
        known = dtypes.setdefault(self.dtype, self.dtype if _is_dtype(self.dtype) else dtype)
        if known != dtype:
            raise self._misfit(rel, index, f"elements of {known}, not {dtype}")
        for axis, (dim, size) in enumerate(zip(self.dims, type.get_shape(), strict=True)):
            if dim == "?":
                continue
            wanted = int(dim) if dim.isdigit() else sizes.get(dim, size)
            if not relations.same_dim(wanted, size):
                named = "" if dim.isdigit() else f"{dim} = "
                raise self._misfit(rel, index, f"{named}{wanted} in dimension {axis}, not {size}")
            sizes[dim] = relations.known_dim(wanted, size)

    def _misfit(self, rel: Relation, index: int, what: str) -> Exception:
        name = rel.operator.arguments[index].lstrip("*")
        return rel.fail(f"{rel.operator.name}: argument '{name}' must have {what}", argument=index)

    def type(self, sizes: Mapping[str, int], dtypes: Mapping[str, str]) -> TensorType[Attribute]:
        """Returns the type with the meanings of names."""
        shape = [DYNAMIC_INDEX if dim == "?" else int(dim) if dim.isdigit() else sizes[dim] for dim in self.dims]
        return relations.tensor_type(shape, dtypes.get(self.dtype, self.dtype))


def _is_dtype(name: str) -> bool:
    try:
        dtype_to_type(name)
    except MirError:
        return False
    return True


def _relation(d: Description) -> Callable[[Relation], None] | None:
    """Returns the type relation that is named or written; None for neither."""
    named: Callable[[Relation], None] | None = None
    if callable(d.relation):
        named = d.relation
    elif d.relation:
        if d.relation not in RELATIONS:
            raise d.refuse(
                f"there is no type relation '{d.relation}'{did_you_mean(d.relation, RELATIONS)}",
                f"it is {_one_of(RELATIONS)}",
            )
        named = RELATIONS[d.relation]
        wanted = 1 if d.relation == "identity" else 2
        if len(d.arguments) != wanted:
            raise d.refuse(
                f"the type relation '{d.relation}' is one of {counted(wanted, 'argument')}, not {len(d.arguments)}",
                "leave it out: the type then follows from what is computed",
            )
    types = [_Written.of(d, text) for text in d.types]
    result = _Written.of(d, d.result)
    if result is None and not any(types):
        return named
    if named is not None:
        raise d.refuse("its types are written and named", "leave out the type relation, or the shapes")
    if result is None:
        raise d.refuse(
            "the type of its result is not written, though those of arguments are",
            "write it: -> Tensor[(n, 4), float32]",
        )
    known = {name for each in types if each is not None for name in (*each.dims, each.dtype)}
    for dim in result.dims:
        if dim not in known and not dim.isdigit() and dim != "?":
            raise d.refuse(f"the size '{dim}' of the result is that of no argument")
    if result.dtype not in known and not _is_dtype(result.dtype):
        raise d.refuse(f"the result's dtype '{result.dtype}' is that of no argument, and none of its own")

    def relation(rel: Relation) -> None:
        sizes: dict[str, int] = {}
        dtypes: dict[str, str] = {}
        for index, written in enumerate(types):
            if written is not None:
                written.bind(rel, index, sizes, dtypes)
        rel.set_result(result.type(sizes, dtypes))

    return relation


def _arguments(rel: Relation) -> list[TensorType[Attribute]]:
    """Returns the types of all tensors that a use is given, those in tuples one by one."""
    found: list[TensorType[Attribute]] = []
    for index, name in enumerate(rel.operator.arguments):
        found += rel.tensors(index) if name.startswith("*") else [rel.tensor(index)]
    return found


def _relation_of_functions(callees: Sequence[Callee], rel: Relation) -> None:
    types = _arguments(rel)
    try:
        result = _fitting(rel.operator.name, callees, types)[1]
    except MirError as error:
        raise _in_use(rel, error) from None
    rel.set_result(result)


def _in_use(rel: Relation, error: MirError) -> Exception:
    """Returns an error of what computes an operator as one of a use."""
    first = error.diagnostics[0]
    return rel.fail(f"{rel.operator.name}: {first.message}", *(note.message for note in first.notes))


def _relation_of_compute(compute: Compute, callees: Sequence[Callee], rel: Relation) -> None:
    """Types a use by what is computed, by one of `callees` if there are some."""
    from ..te import builder as te

    types = _arguments(rel)
    if callees:
        try:
            _fitting(rel.operator.name, callees, types)[0].compare(types)
        except MirError as error:
            raise _in_use(rel, error) from None
    inputs = [_placeholder(te, type, name) for type, name in zip(types, _names(len(types)), strict=True)]
    try:
        results = list(compute(rel.attrs, inputs, UNKNOWN))
    except MirError as error:
        raise _in_use(rel, error) from None
    found = [type_of_tensor(tensor) for tensor in results]
    rel.set_result(found[0] if len(found) == 1 else relations.tuple_type(found))


class _Result:
    """A use whose result is kept instead of set."""

    def __init__(self, rel: Relation):
        self.rel = rel
        self.type: Attribute | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rel, name)

    def set_result(self, type: Attribute) -> None:
        """Keeps the type of the result."""
        self.type = type


def _checked(relation: Callable[[Relation], None], computed: Callable[[Relation], None], rel: Relation) -> None:
    """Types a use by a relation, and compares it with what is computed."""
    said, made = _Result(rel), _Result(rel)
    relation(cast("Relation", said))
    computed(cast("Relation", made))
    if said.type is None or made.type is None:
        return
    if not _may_be_equal(said.type, made.type):
        raise rel.fail(
            f"{rel.operator.name}: its compute gives {type_text(made.type)}, but by its type it is {type_text(said.type)}",
            "correct the operator's type, or leave it out: it then follows from the compute",
        )
    # Memory is made for what is computed.
    rel.set_result(made.type)


def _may_be_equal(a: Attribute, b: Attribute) -> bool:
    """Returns whether two types are equal where both are known."""
    left, right = tensor_leaves(a), tensor_leaves(b)
    return len(left) == len(right) and all(
        x.element_type == y.element_type
        and len(x.get_shape()) == len(y.get_shape())
        and all(map(relations.same_dim, x.get_shape(), y.get_shape()))
        for x, y in zip(left, right, strict=True)
    )


def _names(count: int) -> list[str]:
    return [f"p{number}" for number in range(count)]


def _placeholder(te: Any, type: TensorType[Attribute], name: str) -> Tensor:
    shape = [te.size_var(f"{name}_{k}") if d == DYNAMIC_INDEX else d for k, d in enumerate(type.get_shape())]
    return te.placeholder(shape, type_to_dtype(type.element_type), name)


# Functions -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Callee:
    """A function that computes an operator of its arguments, and of attributes by name."""

    name: str
    function: Operation
    te: FuncOp | None
    """None for a TIR function."""
    inputs: int
    """How many tensors are arguments."""
    attributes: tuple[tuple[str, TensorType[Attribute]], ...]
    """The tensors that are attributes, in order after the arguments."""
    scalars: tuple[tuple[str, SSAValue], ...]
    """The scalars that are attributes."""
    is_of_scalars: bool

    @staticmethod
    def of(d: Description, function: Operation) -> Callee:
        """Returns a function with its parameters' roles. Raises MirError where they fit no operator."""
        name = f"@{cast('Any', function.properties['sym_name']).data}"
        specs = {spec.name: spec for spec in d.attributes}
        if any(argument.startswith("*") for argument in d.arguments):
            raise d.refuse(
                f"{name} takes no tuple, which an argument is",
                "its compute is written in Python: mirstack.register_operator",
            )
        parameters = tir_parameters(function, name, function)
        of_te, of_scalars = None, False
        scalars: list[tuple[str, SSAValue]] = []
        if function.name == "te.func":
            from ..te.apply import is_of_scalars
            from ..te.ops import FuncOp
            from ..tir.expr import VarOp

            assert isinstance(function, FuncOp)
            of_te, of_scalars = function, is_of_scalars(function)
            inputs = [p for p in parameters if not p.is_output]
            sizes = {dim for p in inputs for dim in p.shape if isinstance(dim, SSAValue)}
            for value, label in zip(function.params, function.param_names(), strict=True):
                if isinstance(value.owner, VarOp) and value not in sizes:
                    if label not in specs:
                        raise d.refuse(
                            f"{name} takes the scalar '{label}', which is no attribute of the operator",
                            f"its attributes are {', '.join(specs) or 'none'}",
                        )
                    scalars.append((label, value))
        else:
            count = len(d.arguments)
            more = [p for p in parameters[count:] if p.name in specs]
            inputs = [*parameters[:count], *more]
            if len(parameters) <= len(inputs):
                inputs = parameters[:-1]
        if len(inputs) < len(d.arguments):
            raise d.refuse(
                f"{name} takes {counted(len(inputs), 'tensor')}, but the operator has {counted(len(d.arguments), 'argument')}",
                "inputs come first; one parameter or more must be left for the outputs",
            )
        extra = inputs[len(d.arguments) :]
        for parameter in extra:
            if parameter.name not in specs:
                raise d.refuse(
                    f"{name} takes {counted(len(inputs), 'tensor')}, but the operator has {counted(len(d.arguments), 'argument')}",
                    f"'{parameter.name}' is no attribute of the operator either, which are {', '.join(specs) or 'none'}",
                )
        attributes = tuple(
            (p.name, TensorType(p.element, [d if isinstance(d, int) else DYNAMIC_INDEX for d in p.shape]))
            for p in extra
        )
        return Callee(name, function, of_te, len(d.arguments), attributes, tuple(scalars), of_scalars)

    def type(self, types: Sequence[TensorType[Attribute]]) -> Attribute:
        """Returns the type of the result for arguments of these types. Raises MirError where they do not fit."""
        if self.is_of_scalars:
            return self._type_of_elements(types)
        return function_type(self.function, self.name, self.function, [*types, *(type for _, type in self.attributes)])

    def compare(self, types: Sequence[TensorType[Attribute]]) -> None:
        """Compares sizes of arguments with those of parameters, so that `?` are compared at run time."""
        if self.is_of_scalars:
            return
        sizes: dict[SSAValue, int] = {}
        inputs = [p for p in tir_parameters(self.function, self.name, self.function) if not p.is_output]
        for parameter, type in zip(inputs, types, strict=False):
            for dim, size in zip(parameter.shape, type.get_shape(), strict=True):
                if dim is None:
                    continue
                wanted = dim if isinstance(dim, int) else sizes.get(dim, size)
                relations.same_dim(wanted, size)
                if isinstance(dim, SSAValue):
                    sizes[dim] = relations.known_dim(wanted, size)

    def _type_of_elements(self, types: Sequence[TensorType[Attribute]]) -> Attribute:
        parameters = tir_parameters(self.function, self.name, self.function)
        shape: relations.Shape = ()
        for parameter, type in zip(parameters, types, strict=False):
            if type.element_type != parameter.element:
                raise error_at(
                    self.function,
                    f"argument '{parameter.name}' of {self.name} must be of {type_to_dtype(parameter.element)}, not {type_text(type)}",
                )
            joined = relations.broadcast_shapes(shape, type.get_shape())
            if isinstance(joined, int):
                raise error_at(
                    self.function,
                    f"argument '{parameter.name}', {type_text(type)}, does not broadcast with those before",
                )
            shape = joined
        results = [relations.tensor_type(shape, p.element) for p in parameters if p.is_output]
        return results[0] if len(results) == 1 else relations.tuple_type(results)


def _fitting(name: str, callees: Sequence[Callee], types: Sequence[TensorType[Attribute]]) -> tuple[Callee, Attribute]:
    """Returns the first function that takes arguments of these types, with the type of its result."""
    errors: list[MirError] = []
    for callee in callees:
        try:
            return callee, callee.type(types)
        except MirError as error:
            errors.append(error)
    if len(errors) == 1:
        raise errors[0]
    raise error_at(
        None,
        f"no function takes {', '.join(map(type_text, types))}",
        *(error.diagnostics[0].message for error in errors),
    )


def _compute_by_functions(
    name: str, callees: Sequence[Callee], attrs: Attrs, xs: Sequence[Tensor], out: Attribute
) -> Sequence[Tensor]:
    """Computes an operator by TE functions."""
    from ..te.apply import apply_function, apply_to_elements
    from ..te.ops import PlaceholderOp

    callee, _ = _fitting(name, callees, [type_of_tensor(x) for x in xs])
    function = callee.te
    assert function is not None
    inputs = [value for value in function.params if isinstance(value.owner, PlaceholderOp)]
    scalars = {value: attrs[label] for label, value in callee.scalars}
    given = dict(zip(inputs, xs, strict=False))
    constants: dict[SSAValue, Tensor] = {}
    for value, (label, type) in zip(inputs[callee.inputs :], callee.attributes, strict=True):
        constants[value] = _constant(name, label, attrs[label], type)
    if not callee.is_of_scalars:
        return apply_function(function, {**given, **constants}, scalars)
    dims = broadcast_dims([x.shape for x in xs])
    elements = {value: partial(_element, x, dims) for value, x in given.items()}
    elements |= {value: (lambda indices, x=x: x()) for value, x in constants.items()}
    return apply_to_elements(function, elements, scalars, dims, f"T_{name.rpartition('.')[2]}")


def _element(x: Tensor, dims: Sequence[Any], indices: Sequence[Any]) -> Any:
    return broadcast_index(x, indices, dims)


def _constant(name: str, label: str, value: Any, type: TensorType[Attribute]) -> Tensor:
    """Returns an attribute as a function's tensor. Raises MirError where it is none of the type."""
    import numpy as np

    from ..te import builder as te
    from ..te.apply import NumberTensor

    dtype, shape = type_to_dtype(type.element_type), type.get_shape()
    try:
        array = np.asarray(value).astype(numpy_dtype(dtype))
    except (TypeError, ValueError):
        array = None
    if array is None or len(array.shape) != len(shape) or not all(map(relations.same_dim, array.shape, shape)):
        raise error_at(
            None, f"the attribute '{label}' of {name} must be {type_text(type)} for its function, not {value!r}"
        )
    numbers = [te.const(number, dtype) for number in array.reshape(-1).tolist()]
    if not shape:
        return NumberTensor(numbers[0])

    def element(*indices: Any) -> Any:
        place: Any = indices[0]
        for index, size in zip(indices[1:], array.shape[1:], strict=True):
            place = place * size + index
        chosen = numbers[-1]
        for number in range(len(numbers) - 2, -1, -1):
            chosen = te.Select(te.equal(place, number), numbers[number], chosen)
        return chosen

    return te.compute(array.shape, element, name=label)


def _call_tir(name: str, callees: Sequence[Callee], attrs: Attrs, *arrays: Any) -> Any:
    """Computes an operator by interpreting its TIR function."""
    from .call_tir import run_function

    callee, values = callee_of(name, callees, attrs, [_type_of_array(each) for each in arrays])
    module = ModuleOp([callee.function.clone()])
    function = module.body.block.first_op
    assert function is not None
    return run_function(function, callee.name, function, [*arrays, *values], module)


def _type_of_array(array: Any) -> TensorType[Attribute]:
    return TensorType(dtype_to_type(array.dtype.name), list(array.shape))


def callee_of(
    name: str, callees: Sequence[Callee], attrs: Attrs, types: Sequence[TensorType[Attribute]]
) -> tuple[Callee, list[Any]]:
    """Returns the function that takes such arguments, and the arrays of its attributes."""
    import numpy as np

    callee, _ = _fitting(name, callees, types)
    arrays: list[Any] = []
    for label, type in callee.attributes:
        array = np.asarray(attrs[label]).astype(numpy_dtype(type_to_dtype(type.element_type)))
        arrays.append(array)
    return callee, arrays


class _Meaning:
    """The meaning of an operator by interpreting its tensor expressions."""

    def __init__(self, compute: Compute):
        self.compute = compute
        self._last: tuple[object, FuncOp, list[str]] | None = None

    def __call__(self, attrs: Attrs, *values: Any) -> Any:
        from ..te import builder as te
        from ..te.interpreter import interpret_te_func

        arrays: list[Any] = []
        for value in values:
            arrays += cast("tuple[Any, ...]", value) if isinstance(value, tuple) else (value,)
        key = (repr(attrs), [(a.shape, a.dtype) for a in arrays])
        if self._last is None or self._last[0] != key:
            inputs = [_placeholder(te, _type_of_array(a), n) for a, n in zip(arrays, _names(len(arrays)), strict=True)]
            results = [te.compute(t.shape, t, name=f"r{k}") for k, t in enumerate(self.compute(attrs, inputs, UNKNOWN))]
            function = te.func("meaning", [*inputs, *results])
            self._last = key, function, function.param_names()
        _, function, names = self._last
        outputs = list(interpret_te_func(function, dict(zip(names, arrays, strict=False))).values())
        return outputs[0] if len(outputs) == 1 else tuple(outputs)
