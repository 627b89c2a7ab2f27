"""Tensor intrinsics: pairs of prim_funcs, what a piece of a program must be and what takes its place.

The description says in loops and blocks what the intrinsic computes; the implementation computes the same, by calls of the
machine's instructions, say. Both have the same buffers as parameters. A module declares a pair by

    @T.prim_func
    def dot_desc(A: T.Buffer((4,), "int8"), …):
        T.func_attr({"tensor_intrin": "dot", "role": "desc"})
        …
    @T.prim_func
    def dot_impl(A: T.Buffer((4,), "int8"), …):
        T.func_attr({"tensor_intrin": "dot", "role": "impl"})
        …

or, below the two functions, by an item `TensorIntrin.register("dot", dot_desc, dot_impl)`; and a Python program by a call of the
same text. Those of loaded files are known in every module.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation, SSAValue

from ....dialects import tir
from ....support.extensions import loaded
from ....support.external_names import note_name
from ..analysis.structure import body_of
from .errors import refuse

NAME, ROLE = "tensor_intrin", "role"
"""The attributes of a function that is half of an intrinsic."""


@dataclass(frozen=True, eq=False)
class TensorIntrin:
    """An intrinsic that tensorize knows by its name."""

    name: str
    desc: tir.PrimFuncOp
    impl: tir.PrimFuncOp

    _REGISTRY: ClassVar[dict[str, TensorIntrin]] = {}

    @staticmethod
    def register(name: str, desc: object, impl: object, override: bool = False) -> TensorIntrin:
        """Makes an intrinsic known to all schedules. The functions are PrimFuncs, or ops `tir.prim_func`.

        Raises ScheduleError when the two do not go together, and when the name is taken (without `override`).
        """
        found = TensorIntrin(name, _function(name, desc), _function(name, impl))
        require_pair(found)
        if name in TensorIntrin._REGISTRY and not override:
            raise refuse(
                None, f"there is a tensor intrinsic '{name}' already", "register with override=True to replace it"
            )
        TensorIntrin._REGISTRY[name] = found
        note_name(name, "")
        return found

    @staticmethod
    def get(name: str, allow_missing: bool = False) -> TensorIntrin | None:
        """Returns the registered intrinsic of a name. Raises ScheduleError when there is none, unless allowed."""
        found = TensorIntrin._REGISTRY.get(name)
        if found is None and not allow_missing:
            raise _unknown(None, name, list(TensorIntrin._REGISTRY))
        return found

    @staticmethod
    def names() -> list[str]:
        """Returns the names of all registered intrinsics."""
        return list(TensorIntrin._REGISTRY)


def _function(name: str, value: object) -> tir.PrimFuncOp:
    op = getattr(value, "op", value)
    if not isinstance(op, tir.PrimFuncOp):
        raise refuse(
            None,
            f"tensor intrinsic '{name}': a {type(value).__name__} is not a prim_func",
            "give two functions written with @T.prim_func",
        )
    return op.clone()


def is_half(function: tir.PrimFuncOp) -> bool:
    """Returns whether a function is half of a tensor intrinsic, and so not part of the program."""
    return NAME in function.attrs.data


_ELSEWHERE: ContextVar[Sequence[Operation]] = ContextVar("intrinsics", default=())


def elsewhere() -> Sequence[Operation]:
    """Returns the ops that are known besides those of a module."""
    return _ELSEWHERE.get()


@contextmanager
def declaring(ops: Iterable[Operation]) -> Generator[None]:
    """While inside, modules have the intrinsics and schedule rules of these ops besides their own."""
    token = _ELSEWHERE.set((*ops, *_ELSEWHERE.get()))
    try:
        yield
    finally:
        _ELSEWHERE.reset(token)


def find_intrinsic(module: ModuleOp, name: str, where: Operation) -> TensorIntrin:
    """Returns the intrinsic that the module declares, otherwise the registered one; raises without one."""
    known: dict[str, None] = {}
    loaded_ops = [each.value for each in loaded("tir.prim_func")]
    for ops in (module.body.block.ops, _ELSEWHERE.get(), loaded_ops):
        found = _declared(ops, name, known)
        if found is not None:
            return found
    from .dot_intrinsics import dot_intrinsic

    if (registered := TensorIntrin.get(name, allow_missing=True)) is not None:
        return registered
    made = dot_intrinsic(name)
    if made is None:
        raise _unknown(where, name, [*known, *TensorIntrin.names()])
    return TensorIntrin(name, *made)


def _declared(ops: Iterable[object], name: str, known: dict[str, None]) -> TensorIntrin | None:
    """Returns the intrinsic that ops declare, if any; adds the names of all that they declare to `known`."""
    halves: dict[str, tir.PrimFuncOp] = {}
    for op in ops:
        if not isinstance(op, tir.PrimFuncOp):
            continue
        named, role = op.attrs.data.get(NAME), op.attrs.data.get(ROLE)
        if not isinstance(named, StringAttr):
            continue
        known[named.data] = None
        if named.data != name:
            continue
        if not isinstance(role, StringAttr) or role.data not in ("desc", "impl"):
            raise refuse(
                op,
                f"function '{op.sym_name.data}' of tensor intrinsic '{name}' has no role",
                f'its T.func_attr must hold "{ROLE}": "desc" or "impl"',
            )
        if role.data in halves:
            raise refuse(op, f"tensor intrinsic '{name}' has two functions with the role '{role.data}'")
        halves[role.data] = op
    if not halves:
        return None
    for role in ("desc", "impl"):
        if role not in halves:
            present = next(iter(halves.values()))
            raise refuse(present, f"tensor intrinsic '{name}' has no function with the role '{role}'")
    found = TensorIntrin(name, halves["desc"], halves["impl"])
    require_pair(found)
    return found


def _unknown(where: Operation | None, name: str, known: Sequence[str]) -> Exception:
    listed = ", ".join(f"'{n}'" for n in known) or "none"
    return refuse(
        where,
        f"there is no tensor intrinsic '{name}'",
        f'there are {listed}; declare one by two prim_funcs with T.func_attr({{"{NAME}": …, "{ROLE}": "desc"}}) and "impl", or TensorIntrin.register("{name}", desc, impl)',
    )


def parameter_buffers(function: tir.PrimFuncOp, name: str) -> list[SSAValue]:
    """Returns the parameters of half an intrinsic as buffers, in order; raises where one is not a buffer."""
    found: list[SSAValue] = []
    for label, param in zip(function.param_names.data, function.params, strict=True):
        if isinstance(param.type, tir.BufferType):
            found.append(param)
            continue
        users = [use.operation for use in param.uses]
        if not isinstance(param.type, tir.HandleType) or len(users) != 1 or not isinstance(users[0], tir.MatchBufferOp):
            raise refuse(
                function,
                f"tensor intrinsic '{name}': parameter '{label.data}' of '{function.sym_name.data}' is not a buffer",
                "take a T.Buffer, or a T.handle that one T.match_buffer uses",
            )
        found.append(users[0].result)
    for buffer in found:
        assert isinstance(buffer.type, tir.BufferType)
        if buffer.type.static_shape is None:
            raise refuse(
                function,
                f"tensor intrinsic '{name}': buffer '{tir.buffer_name(buffer)}' of '{function.sym_name.data}' has a symbolic shape",
            )
    return found


def require_pair(intrinsic: TensorIntrin) -> None:
    """Raises unless description and implementation take the same buffers."""
    desc, impl = (parameter_buffers(f, intrinsic.name) for f in (intrinsic.desc, intrinsic.impl))
    if len(desc) != len(impl):
        raise refuse(
            intrinsic.impl,
            f"tensor intrinsic '{intrinsic.name}': the description takes {len(desc)} buffers, the implementation {len(impl)}",
        )
    for a, b in zip(desc, impl, strict=True):
        if a.type != b.type:
            raise refuse(
                intrinsic.impl,
                f"tensor intrinsic '{intrinsic.name}': '{tir.buffer_name(a)}' of the description and '{tir.buffer_name(b)}' of the implementation differ in shape, dtype or scope",
            )


def statements(function: tir.PrimFuncOp) -> tuple[list[Operation], tir.BlockOp | None]:
    """Returns the statements of half an intrinsic, and the axis-free block around them, if any: its root."""
    ops = [op for op in body_of(function).ops if not isinstance(op, tir.MatchBufferOp | tir.VarOp)]
    effects = [op for op in ops if not op.results or op.regions]
    if len(effects) == 1 and isinstance(effects[0], tir.BlockOp) and not effects[0].iter_vars:
        root = effects[0]
        return list(body_of(root).ops), root
    return ops, None
