"""Makes code of others a part of the compiler: `mirstack.register_operator`, `load_extension`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, cast

from ..dialects.relay.gradient import Gradient
from ..dialects.relay.gradient import gradient as register_gradient
from ..dialects.relay.operator import REQUIRED, Attrs, AttrSpec, Compute, Relation, attr, define_outside
from ..dialects.relay.operators import NAMESPACES
from ..dialects.relay.own_operators import Description, make_operator
from ..dialects.te.tensor import Tensor
from ..dialects.tir.node import Expr
from ..passes.extensions.load import load_extension as _load_extension
from ..support import extensions
from ..support.arguments import check, items
from ..support.diagnostics import Diagnostic, MirValueError
from ..support.external_names import note_name
from .ir.prim_func import PrimFunc
from .relay.expr import Call

__all__ = ["load_extension", "register_operator"]


def load_extension(path: str | PathLike[str]) -> None:
    """Loads a `.mir` or a Python file: what it defines is known in every program from now on.

    Raises MirError for a file that cannot be read, what is wrong in it, and names that are taken.
    """
    check(path, "path", "the path of a .mir or .py file", str, PathLike)
    _load_extension(path)


def register_operator(
    name: str,
    arguments: Sequence[str] = ("data",),
    *,
    attributes: Mapping[str, Any] | None = None,
    compute: Callable[..., Any] | PrimFunc | Sequence[PrimFunc] | None = None,
    element: Callable[..., Any] | None = None,
    numpy: Callable[..., Any] | None = None,
    type: str | Callable[[Relation], None] | None = None,
    kind: str | None = None,
    gradient: Gradient | None = None,
    onnx: str | None = None,
    doc: str = "",
) -> Callable[..., Call]:
    """Registers an operator of Relay; returns its function, which is `relay.NAME` from now on.

    Args:
        name: with a namespace of its own, "my.gelu".
        arguments: their names; one that begins with `*` is a tuple of tensors.
        attributes: the defaults by name; a kind ("int", "floats", …) in place of a default makes one required: `{"units": int}`.
        compute: a function of the tensors, with the attributes as keywords, that returns one or several; or TIR functions that take the
            tensors, then attributes by name, then the results.
        element: instead, a function of one element of each tensor, which broadcast: `lambda x, slope: x * te.sigmoid(x * slope)`.
        numpy: the meaning, a function of arrays with the attributes as keywords; without it `compute` is interpreted.
        type: a type relation: "identity", "broadcast", "compare", or a function of the use; without it the type is that of what is
            computed.
        kind: how it fuses: "elementwise", "broadcast", "injective", "reduction", "contraction" or "opaque".
        gradient: a function from a use (`mirstack.dialects.relay.gradient.Backward`) to the gradients of its arguments.
        onnx: the operator of ONNX that it converts, "domain.Type"; that of its own name by default.
        doc: what it is.

    Raises MirError where the name is taken, and for what contradicts itself.
    """
    check(name, "name", "the name of an operator, such as 'my.gelu'", str)
    namespace, dot, _ = name.partition(".")
    if not dot or namespace in NAMESPACES:
        own = f"names in '{namespace}.'" if dot else "names without a namespace"
        raise MirValueError(
            Diagnostic(f"operator {name}: {own} are mirstack's").with_note(
                "choose a namespace of your own, such as my.gelu"
            )
        )
    if (compute is not None) + (element is not None) > 1:
        raise MirValueError(
            Diagnostic(f"operator {name}: it has a compute, and a function of elements: give one of them")
        )
    specs = tuple(_spec(name, key, value) for key, value in dict(attributes or {}).items())
    functions = _prim_funcs(compute)
    computed: Compute | None = None
    if element is not None:
        computed = _of_elements(name, element)
        kind = kind or ("elementwise" if len(arguments) == 1 else "broadcast")
    elif compute is not None and not functions:
        computed = _of_tensors(cast("Callable[..., Any]", compute))
    described = Description(
        name,
        tuple(items(arguments, "arguments", "names of arguments", str)),
        attributes=specs,
        relation=type or "",
        kind=kind or "",
        functions=tuple(function.op for function in functions),
        compute=computed,
        numpy=None if numpy is None else _of_arrays(numpy),
        onnx=onnx or "",
        doc=doc,
    )
    operator = define_outside(make_operator(described))
    caller = sys._getframe(1).f_globals.get("__name__", "")  # pyright: ignore[reportPrivateUsage]
    note_name(name, caller)
    origin = f"Python module {caller}"
    extensions.register("operator", name, operator, origin=origin, text=name)
    if gradient is not None:
        register_gradient(name)(gradient)
    from .relay.op.make import make_function

    return make_function(operator)


def _spec(operator: str, name: str, value: Any) -> AttrSpec:
    """Returns an attribute of a default, or of a kind without one."""
    if isinstance(value, type):
        kind = {int: "int", float: "float", bool: "bool", str: "str"}.get(value)
        if kind is None:
            raise MirValueError(
                Diagnostic(f"operator {operator}: attributes of the kind {value.__name__} cannot be required")
            )
        return attr(name, REQUIRED, cast("Any", kind))
    return attr(name, tuple(cast("list[Any]", value)) if isinstance(value, list) else value)


def _prim_funcs(compute: object) -> list[PrimFunc]:
    parts = list(cast("Sequence[object]", compute)) if isinstance(compute, list | tuple) else [compute]
    return [part for part in parts if isinstance(part, PrimFunc)]


def _given(attrs: Attrs) -> dict[str, Any]:
    return dict(attrs)


def _of_tensors(compute: Callable[..., Any]) -> Compute:
    def computed(attrs: Attrs, xs: Sequence[Tensor], out: Any) -> Sequence[Tensor]:
        result = compute(*xs, **_given(attrs))
        return list(cast("Sequence[Tensor]", result)) if isinstance(result, list | tuple) else [result]

    return computed


def _of_elements(name: str, element: Callable[..., Any]) -> Compute:
    from ..dialects.relay.operators.common.te_computes import broadcast_dims, broadcast_index
    from ..dialects.te import builder as te

    def computed(attrs: Attrs, xs: Sequence[Tensor], out: Any) -> Sequence[Tensor]:
        dims = broadcast_dims([x.shape for x in xs])

        def body(*indices: Expr) -> Any:
            return element(*(broadcast_index(x, indices, dims) for x in xs), **_given(attrs))

        return [te.compute(dims, body, name=f"T_{name.rpartition('.')[2]}")]

    return computed


def _of_arrays(numpy: Callable[..., Any]) -> Callable[..., Any]:
    def meaning(attrs: Attrs, *arrays: Any) -> Any:
        return numpy(*arrays, **_given(attrs))

    return meaning
