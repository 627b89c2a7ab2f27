"""Binds parameters of a function of nodes: `PrimFunc.specialize`."""

from __future__ import annotations

from collections.abc import Mapping

from ...dialects.tir.node.buffer import Buffer, BufferField
from ...dialects.tir.node.expr import Const, Expr, Var, convert, fail
from ...dialects.tir.node.functor import Substitute
from ...support.deep_stack import in_deep_stack
from .restore import Restored


def specialize(name: str, function: Restored, param_map: Mapping[Var, object]) -> Restored:
    """Binds parameters of a function: an address to a buffer of known sizes, a scalar to a value.

        m, n = func.params[1:]
        func.specialize({m: 4, func.params[0]: tir.decl_buffer((4, 8), "float32")})

    Raises MirError for a key that is not a parameter, and a buffer that does not match.
    """
    values: dict[int, Expr] = {}
    bound: set[int] = set()
    for param, given in param_map.items():
        if not any(param is each for each in function.params):
            raise fail(f"'{param}' is not a parameter of '{name}'")
        old = function.buffer_map.get(param)
        if old is None:
            value = convert(given)
            if value.dtype != param.dtype and isinstance(value, Const):
                value = value.astype(param.dtype)
            if value.dtype != param.dtype:
                raise fail(f"parameter '{param.name}' is {param.dtype}, but bound to a value of dtype {value.dtype}")
            values[id(param)] = value
            bound.add(id(param))
        elif isinstance(given, Buffer):
            _match(old, given, values)
        else:
            raise fail(
                f"parameter '{param.name}' is the address of a buffer: bind it to a buffer, as tir.decl_buffer makes"
            )
    rewriter = Substitute(values)
    body = in_deep_stack(lambda: rewriter.visit(function.body))
    buffers = {param: rewriter.buffer(buffer) for param, buffer in function.buffer_map.items()}
    params = [param for param in function.params if id(param) not in bound]
    return Restored(params, buffers, body)


def _match(old: Buffer, new: Buffer, values: dict[int, Expr]) -> None:
    """Binds the variables in a buffer's shape, strides and offset to those of another."""
    if old.dtype != new.dtype or len(old.dims) != len(new.dims):
        raise fail(
            f"buffer '{old.name}' is of {len(old.dims)} dimensions and dtype {old.dtype}, but bound to one of {len(new.dims)} and {new.dtype}"
        )
    if old.strides and new.strides and len(old.strides) != len(new.strides):
        raise fail(f"buffer '{old.name}' has {len(old.strides)} strides, but is bound to one of {len(new.strides)}")
    pairs = [*zip(old.dims, new.dims, strict=True), (old.elem_offset, new.elem_offset)]
    if new.strides:
        pairs += zip(old.strides, new.strides, strict=False)
    for before, after in pairs:
        if isinstance(before, Var) and not isinstance(before, BufferField):
            known = values.setdefault(id(before), after)
            if isinstance(known, Const) and isinstance(after, Const) and known.value != after.value:
                raise fail(f"size '{before.name}' of buffer '{old.name}' is bound to {known} and to {after}")
        elif isinstance(before, Const) and isinstance(after, Const) and before.value != after.value:
            raise fail(f"buffer '{old.name}' has an extent of {before}, but is bound to one of {after}")
