"""Which function of a module runs, and what it takes."""

from __future__ import annotations

from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, StringAttr, TensorType, TupleType
from xdsl.ir import Attribute, Operation

from ..support.diagnostics import error_at
from .executable import Kind, Param

LEVELS: dict[str, Kind] = {"relay.func": "relay", "te.func": "te", "tir.prim_func": "tir"}


def functions_of(module: ModuleOp) -> dict[str, Operation]:
    """The module's functions of all levels by name, those of nested modules (`@I.ir_module` classes) too."""
    found: dict[str, Operation] = {}
    for op in module.ops:
        if isinstance(op, ModuleOp):
            found |= functions_of(op)
        elif op.name in LEVELS:
            found[name_of(op)] = op
    return found


def find_entry(module: ModuleOp, name: str | None = None) -> Operation:
    """The function called `name`; without a name the only one, else `main`. Raises MirError when there is none."""
    functions = functions_of(module)
    if name is None and len(functions) == 1:
        return next(iter(functions.values()))
    entry = functions.get("main" if name is None else name)
    if entry is None:
        there = f"it has {', '.join(functions)}" if functions else "it has no functions at all"
        missing = "several functions and no main" if name is None and functions else f"no function '{name or 'main'}'"
        raise error_at(None, f"the module has {missing}", f"{there}; choose one as the entry")
    return entry


def name_of(function: Operation) -> str:
    """The symbol of a function."""
    name = function.properties["sym_name"]
    assert isinstance(name, StringAttr)
    return name.data


def entry_kind(entry: Operation) -> Kind:
    """The level that the entry is written in."""
    return LEVELS[entry.name]


def relay_params(entry: Operation) -> list[Param]:
    """The parameters of a Relay function. Raises MirError for one that is no tensor: an entry takes only arrays."""
    from ..dialects.relay.ir import FuncOp
    from ..dialects.tir.types import type_to_dtype

    assert isinstance(entry, FuncOp)
    params: list[Param] = []
    for name, value in zip(entry.param_names.data, entry.params, strict=True):
        type = value.type
        if not isinstance(type, TensorType):
            raise error_at(
                value,
                f"parameter %{name.data} of @{entry.sym_name.data} is no tensor, so that it cannot be called from outside",
                "give every parameter of the entry a tensor type",
            )
        shape = tuple("?" if extent == DYNAMIC_INDEX else extent for extent in type.get_shape())
        params.append(Param(name.data, shape, type_to_dtype(type.element_type)))
    return params


def result_tensors(type: Attribute, entry: Operation | None = None) -> list[TensorType[Attribute]]:
    """The tensors of a Relay entry's result, depth first. Raises MirError for a result that holds anything else."""
    match type:
        case TensorType():
            return [type]
        case TupleType():
            return [leaf for field in type.types.data for leaf in result_tensors(field, entry)]
        case _:
            from ..dialects.relay.text import is_known, type_text

            if not is_known(type):
                raise error_at(
                    entry,
                    "the type of what the entry returns is not known",
                    "write it: def @main(…) -> Tensor[(2, 3), float32]; a function that only calls itself never returns",
                )
            raise error_at(
                entry,
                f"the entry returns {type_text(type)}, which Python cannot take",
                "return a tensor or a tuple of tensors",
            )


def rebuild(type: Attribute, leaves: list[object]) -> object:
    """The nested tuple of a Relay type from its leaves, which are taken from the front of the list."""
    if isinstance(type, TupleType):
        return tuple(rebuild(field, leaves) for field in type.types.data)
    return leaves.pop(0)
