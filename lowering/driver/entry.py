"""Finds the function of a module that runs, and its parameters."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, TensorType, TupleType
from xdsl.ir import Attribute, Operation

from ...support.diagnostics import error_at, location_of, source_position
from ...support.text import did_you_mean

if TYPE_CHECKING:
    from .loading.executable import Kind
    from .program import Tree

LEVELS: dict[str, Kind] = {"relay.func": "relay", "te.func": "te", "tir.prim_func": "tir", "func.func": "func"}


def functions_of(module: ModuleOp, *, lower: bool = False) -> dict[str, Operation]:
    """Returns the functions of Relay, TE and TIR by name, with those of nested modules (`@I.ir_module`).

    With `lower` also each `func.func` that has a body.
    """
    found: dict[str, Operation] = {}
    for op in module.ops:
        if isinstance(op, ModuleOp):
            found |= functions_of(op, lower=lower)
        elif op.name in LEVELS and (op.name != "func.func" or (lower and op.regions[0].blocks)):
            found[name_of(op)] = op
    return found


def places_of(entry: Operation) -> dict[str, str]:
    """Returns the places (`file:line:column`) of the buffer parameters of a TE or TIR function by name."""
    from ...dialects import te, tir

    found: dict[str, str] = {}
    if isinstance(entry, te.FuncOp):
        declared = list(zip(entry.param_names(), map(location_of, entry.params), strict=True))
    elif isinstance(entry, tir.PrimFuncOp):
        names = {param: name.data for param, name in zip(entry.params, entry.param_names, strict=True)}
        matches = [op for op in entry.body.block.ops if isinstance(op, tir.MatchBufferOp) and op.source in names]
        declared = [(names[op.source], op.location) for op in reversed(matches) if op.source is not None]
    else:
        declared = []
    for name, location in declared:
        place = source_position(location) or source_position(entry.location)
        if place is not None:
            found[name] = ":".join(map(str, place))
    return found


def default_entry(functions: Collection[str]) -> str:
    """Returns the name of the only function, otherwise `main`."""
    return next(iter(functions)) if len(functions) == 1 else "main"


def find_entry(module: ModuleOp, name: str | None = None) -> Operation:
    """Returns the function `name`; without a name the only function, or `main` of several.

    Besides functions of Relay, TE and TIR a `func.func` is an entry only by its name. Raises MirError when there is none.
    """
    functions = (functions_of(module) if name is None else None) or functions_of(module, lower=True)
    entry = functions.get(default_entry(functions) if name is None else name)
    if entry is None:
        if not functions:
            raise error_at(
                None,
                "the module has no functions",
                "nothing of it can be run: write `def @main(…) { … }`, or a @T.prim_func",
            )
        missing = "several functions and no main" if name is None else f"no function '{name}'"
        raise error_at(
            None,
            f"the module has {missing}{did_you_mean(name or '', functions)}",
            f"it has {', '.join(functions)}; choose one: --entry NAME (mir-run), entry='NAME' (mirstack.compile)",
        )
    return entry


def name_of(function: Operation) -> str:
    """Returns the symbol of a function."""
    name = function.properties["sym_name"]
    assert isinstance(name, StringAttr)
    return name.data


def entry_kind(entry: Operation) -> Kind:
    """Returns the level that the entry is written in."""
    return LEVELS[entry.name]


def relay_params(entry: Operation) -> tuple[tuple[str, Tree], ...]:
    """Returns the parameters of a Relay function.

    Raises MirError for a parameter that holds anything but tensors: an entry takes only arrays.
    """
    from ...dialects.relay.ir import FuncOp
    from .program import tree_of

    assert isinstance(entry, FuncOp)
    params: list[tuple[str, Tree]] = []
    for name, value in zip(entry.param_names.data, entry.params, strict=True):
        tree = tree_of(value.type)
        if tree is None:
            path = next(path for path, type in _leaves(name.data, value.type) if not isinstance(type, TensorType))
            raise error_at(
                value,
                f"parameter %{path} of @{entry.sym_name.data} is not a tensor, so that it cannot be called from outside",
                "an entry takes tensors and tuples of tensors",
            )
        params.append((name.data, tree))
    return tuple(params)


def result_names(entry: Operation) -> tuple[str, ...]:
    """Returns the names of a Relay function's results; none where they do not name each tensor of it once."""
    from ...dialects.relay.ir import RESULT_NAMES, FuncOp

    if not isinstance(entry, FuncOp):
        return ()
    given = entry.attrs.data.get(RESULT_NAMES)
    texts = given.data if isinstance(given, ArrayAttr) else ()
    names = tuple(each.data for each in texts if isinstance(each, StringAttr))
    leaves = list(_leaves("", entry.ret_type))
    return names if len(leaves) == len(names) == len(texts) == len(set(names)) else ()


def _leaves(path: str, type: Attribute) -> Iterator[tuple[str, Attribute]]:
    """Yields the leaves of a nested tuple type, depth first, each with its path."""
    if not isinstance(type, TupleType):
        yield path, type
        return
    for index, field in enumerate(type.types.data):
        yield from _leaves(f"{path}.{index}", field)


def relay_result(type: Attribute, entry: Operation | None = None) -> Tree:
    """Returns the result type of a Relay entry. Raises MirError for one with anything but tensors."""
    from .program import tree_of

    tree = tree_of(type)
    if tree is not None:
        return tree
    from ...dialects.relay.text import is_known, type_text

    wrong = next(leaf for _, leaf in _leaves("", type) if not isinstance(leaf, TensorType))
    if not is_known(wrong):
        raise error_at(
            entry,
            "the type of what the entry returns is not known",
            "write it: def @main(…) -> Tensor[(2, 3), float32]; a function that only calls itself never returns",
        )
    raise error_at(
        entry,
        f"the entry returns {type_text(wrong)}, which Python cannot take",
        "return a tensor or a tuple of tensors",
    )
