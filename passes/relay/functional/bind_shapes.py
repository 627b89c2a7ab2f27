"""Fixes open dimensions of parameters: `--shape x=1,3,224,224`, `shapes=` of `mirstack.compile`.

    def @main(%x: Tensor[(?, 8), float32]) { @f(%x) }    x=3,8    def @main(%x: Tensor[(3, 8), float32]) { @f(%x) }
    def @f(%y: Tensor[(?, 8), float32]) { nn.relu(%y) }    ->     def @f(%y: Tensor[(3, 8), float32]) { nn.relu(%y) }

The types of all other values follow by inference. An `if` with a branch that the shapes do not fit becomes the other one. Relax's BindSymbolicVars does the same for its named sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, TensorType, TupleType
from xdsl.ir import Attribute, Operation, SSAValue

from ....dialects.relay import ir
from ....dialects.relay.infer import infer_types
from ....dialects.relay.infer.open_checks import is_open
from ....dialects.relay.text import global_text, local_text, type_text
from ....dialects.relay.types import tuple_of
from ....support.diagnostics import MirError, error_at
from ....support.edit import set_type
from ....support.text import counted, did_you_mean
from ....support.walk import walk_ops
from .unfit_branches import infer_fitting

Shapes = Mapping[str, Sequence[int]]
"""The shapes of parameters by name (a tuple's field is `t.0`); DYNAMIC_INDEX leaves a dimension open."""


def bind_shapes(module: ModuleOp, entry: Operation, shapes: Shapes) -> None:
    """Sets the shapes of an entry's parameters, and infers all types that follow from them.

    A function that is only called, each time with the same types, gets these types, too.

    Raises:
        MirError: for a name that no parameter has, a wrong rank, a fixed dimension that the shape contradicts, an entry of TE or
            TIR, and where the program does not fit the shapes.
    """
    if not shapes:
        return
    if not isinstance(entry, ir.FuncOp):
        raise error_at(entry, "shapes are given, but the entry is not a Relay function: only Relay has dimensions '?'")
    left = dict(shapes)
    names = [path for name, param in _params(entry) for path, _ in _tensors(name, param.type)]
    for name, param in _params(entry):
        set_type(param, _bound(param, name, param.type, left))
    for name in left:
        raise error_at(
            entry,
            f"a shape is given for '{name}', which is not a parameter{did_you_mean(name, names)}",
            f"{global_text(entry.sym_name.data)} takes {', '.join(names) or 'nothing'}",
        )
    infer_fitting(module)
    _Callees(module, entry).bind()


def _params(function: ir.FuncOp) -> Iterator[tuple[str, SSAValue]]:
    yield from zip((name.data for name in function.param_names.data), function.params, strict=True)


def _tensors(path: str, type: Attribute) -> Iterator[tuple[str, Attribute]]:
    """Yields the tensors of a parameter, depth first, by the names that `shapes` uses."""
    if isinstance(type, TupleType):
        for index, field in enumerate(type.types.data):
            yield from _tensors(f"{path}.{index}", field)
    else:
        yield path, type


def _bound(param: SSAValue, path: str, type: Attribute, shapes: dict[str, Sequence[int]]) -> Attribute:
    """Returns a parameter's type with the shapes that are given, which are removed from `shapes`."""
    if isinstance(type, TupleType):
        return tuple_of([_bound(param, f"{path}.{k}", field, shapes) for k, field in enumerate(type.types.data)])
    shape = shapes.pop(path, None)
    if shape is None:
        return type
    name, given = local_text(path), f"({', '.join('?' if size == DYNAMIC_INDEX else str(size) for size in shape)})"
    if not isinstance(type, TensorType):
        raise error_at(param, f"a shape is given for {name}, which is not a tensor but {type_text(type)}")
    dims = type.get_shape()
    if len(shape) != len(dims):
        raise error_at(
            param,
            f"the shape {given} of {name} has {counted(len(shape), 'dimension')}, but {name} has {len(dims)}",
            f"{name} is {type_text(type)}",
        )
    for axis, (size, dim) in enumerate(zip(shape, dims, strict=True)):
        if size != dim and DYNAMIC_INDEX not in (size, dim):
            raise error_at(
                param,
                f"the shape {given} contradicts dimension {axis} of {name}, which is {dim}, not {size}",
                f"{name} is {type_text(type)}: only dimensions '?' take any size",
            )
    fixed = [dim if size == DYNAMIC_INDEX else size for size, dim in zip(shape, dims, strict=True)]
    return TensorType(type.element_type, fixed)


ROUNDS = 32
"""How deep calls may be nested for the innermost function to get fixed shapes; below it dimensions stay open."""


class _Callees:
    """Sets the types of functions' open parameters to those of the arguments, where all calls agree."""

    def __init__(self, module: ModuleOp, entry: Operation):
        self._module = module
        self._calls: dict[ir.FuncOp, list[ir.CallGlobalOp]] = {
            op: []
            for op in module.ops
            if isinstance(op, ir.FuncOp)
            and op is not entry
            and not op.type_params.data
            and any(is_open(p.type) for p in op.params)
        }
        by_name = {function.sym_name.data: function for function in self._calls}
        for op in walk_ops(module) if by_name else ():
            if isinstance(op, ir.GlobalRefOp | ir.CallGlobalOp):
                attr = op.symbol if isinstance(op, ir.GlobalRefOp) else op.callee
                function = by_name.get(attr.root_reference.data)
                if function is None:
                    continue
                if isinstance(op, ir.CallGlobalOp):
                    self._calls[function].append(op)
                else:
                    # Calls of a value are not known.
                    del by_name[function.sym_name.data], self._calls[function]

        self._declared = {function: [param.type for param in function.params] for function in self._calls}
        self._bound: dict[ir.FuncOp, list[Attribute]] = {}

    def bind(self) -> None:
        """Sets the types, callers before callees."""
        tried = dict(self._declared)
        for _ in range(ROUNDS):
            found: dict[ir.FuncOp, list[Attribute]] = {}
            for function, declared in self._declared.items():
                # Calls inside of the function itself pass what follows from the others.
                calls = [op for op in self._calls[function] if not function.is_ancestor(op)]
                types = self._passed(function, calls)
                if types is not None and types not in (declared, tried[function]):
                    found[function] = types
            if not found:
                return
            tried |= found
            if not self._set(found):
                for function, types in found.items():
                    self._set({function: types})

    def _passed(self, function: ir.FuncOp, calls: Sequence[ir.CallGlobalOp]) -> list[Attribute] | None:
        """Returns the declared types with the sizes that calls pass; None where these differ."""
        declared = self._declared[function]
        passed = [[_with_sizes(a, b.type) for a, b in zip(declared, op.arguments, strict=True)] for op in calls]
        return passed[0] if passed and all(types == passed[0] for types in passed) else None

    def _set(self, found: Mapping[ir.FuncOp, list[Attribute]]) -> bool:
        """Sets the types of parameters where all calls pass them; returns False for type errors."""
        self._bound.update(found)
        for function, types in found.items():
            _set_types(function, types)
        try:
            infer_types(self._module, fresh=True)
        except MirError:
            wrong, fits = list(found), False
        else:
            wrong, fits = self._contradicted(), True
        # Such as a loop whose state grows. What calls pass may be open again without its types.
        while wrong:
            for function in wrong:
                del self._bound[function]
                _set_types(function, self._declared[function])
            infer_types(self._module, fresh=True)
            wrong = self._contradicted()
        return fits

    def _contradicted(self) -> list[ir.FuncOp]:
        """Returns the functions of which some call passes other types than were set."""
        return [f for f, types in self._bound.items() if self._passed(f, self._calls[f]) != types]


def _with_sizes(declared: Attribute, passed: Attribute) -> Attribute:
    """Returns a parameter's type with the known sizes of an argument: `(?, 8)` and `(3, ?)` → `(3, 8)`."""
    match declared, passed:
        case TensorType(), TensorType():
            dims = zip(declared.get_shape(), passed.get_shape(), strict=True)
            return TensorType(declared.element_type, [y if x == DYNAMIC_INDEX else x for x, y in dims])
        case TupleType(), TupleType():
            return tuple_of([_with_sizes(x, y) for x, y in zip(declared.types.data, passed.types.data, strict=True)])
        case _:
            return declared


def _set_types(function: ir.FuncOp, types: Sequence[Attribute]) -> None:
    for param, type in zip(function.params, types, strict=True):
        set_type(param, type)
