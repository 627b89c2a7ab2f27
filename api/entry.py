"""Which function of a module runs, and what it takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, StringAttr, TensorType, TupleType
from xdsl.ir import Attribute, Operation

from ..dialects.tir.types import type_to_dtype
from ..support.diagnostics import error_at
from ..support.words import counted
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
    """The tensors that a Relay function takes; the fields of a tuple `t` are `t.0`, `t.1.0`, …

    Raises MirError for a parameter that holds anything but tensors: an entry takes only arrays.
    """
    from ..dialects.relay.ir import FuncOp

    assert isinstance(entry, FuncOp)
    params: list[Param] = []
    for name, value in zip(entry.param_names.data, entry.params, strict=True):
        found = list(_tensors(name.data, value.type))
        for path, type in found:
            if not isinstance(type, TensorType):
                raise error_at(
                    value,
                    f"parameter %{path} of @{entry.sym_name.data} is no tensor, so that it cannot be called from outside",
                    "an entry takes tensors and tuples of tensors",
                )
            shape = tuple("?" if extent == DYNAMIC_INDEX else extent for extent in type.get_shape())
            params.append(Param(path, shape, type_to_dtype(type.element_type)))
    return params


def _tensors(path: str, type: Attribute) -> Iterator[tuple[str, Attribute]]:
    """What a type holds, depth first, each under its path."""
    if not isinstance(type, TupleType):
        yield path, type
        return
    for index, field in enumerate(type.types.data):
        yield from _tensors(f"{path}.{index}", field)


@dataclass(frozen=True)
class Arguments:
    """How a Relay entry is called: the names and types of its parameters, of which some are tuples."""

    function: str
    names: tuple[str, ...]
    types: tuple[Attribute, ...]

    @staticmethod
    def of(entry: Operation) -> Arguments:
        """The parameters of a Relay function."""
        from ..dialects.relay.ir import FuncOp

        assert isinstance(entry, FuncOp)
        names = tuple(name.data for name in entry.param_names.data)
        return Arguments(entry.sym_name.data, names, tuple(param.type for param in entry.params))

    @property
    def has_tuples(self) -> bool:
        """Whether a parameter is a tuple, so that `flat` does more than count."""
        return any(isinstance(type, TupleType) for type in self.types)

    def flat(self, args: Sequence[Any]) -> list[Any]:
        """The arguments of a call as one list of tensors. Raises TypeError where their number or that of a tuple's
        fields is another."""
        if len(args) != len(self.names):
            names = ", ".join(self.names)
            raise TypeError(f"{self.function} takes {counted(len(self.names), 'argument')} ({names}), not {len(args)}")
        return [
            leaf
            for name, type, value in zip(self.names, self.types, args, strict=True)
            for leaf in _flat(name, type, value)
        ]

    def nested(self, leaves: Sequence[Any]) -> list[Any]:
        """The arguments as the function takes them, from what `flat` gave."""
        rest = list(leaves)
        return [rebuild(type, rest) for type in self.types]


def _flat(path: str, type: Attribute, value: Any) -> Iterator[Any]:
    if not isinstance(type, TupleType):
        yield value
        return
    fields: Sequence[Any] = cast("Sequence[Any]", value) if isinstance(value, tuple | list) else ()
    if len(fields) != len(type.types.data) or not isinstance(value, tuple | list):
        kind = cast("object", value).__class__.__name__
        given = f"one of {len(fields)}" if isinstance(value, tuple | list) else kind
        raise TypeError(f"'{path}' must be a tuple of {len(type.types.data)}, not {given}")
    for index, (field, item) in enumerate(zip(type.types.data, fields, strict=True)):
        yield from _flat(f"{path}.{index}", field, item)


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
