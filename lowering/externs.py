"""Checks external functions of native code: C's mathematics, the runtime, names that are allowed.

    T.call_extern("float32", "sinf", x)      allowed
    T.call_extern("int32", "system", p)      refused, unless `allow_extern` has "system"
    T.call_extern("void", "free", p)         refused likewise, although lowering itself calls it

Every external function is declared in the `llvm` dialect, whatever level it was written at, so one check suffices, before LLVM gets
the text (`llvm/text/translation.py`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ..dialects.c_mathematics import OF_INTEGERS, OF_NUMBERS, signature, why_not_called
from ..support.arguments import items
from ..support.diagnostics import MirError, error_at
from ..support.walk import walk_ops

if TYPE_CHECKING:
    # Commands read names before there is a program, and need none of it where the program is kept already.
    from xdsl.dialects import llvm

# Mathematics through pointers: they write to, or read from, an address that the caller passes.
_ADDRESSES = frozenset(
    name + ending for name in ("frexp", "modf", "remquo", "nan", "sincos") for ending in ("", "f", "l")
)

MATH = OF_NUMBERS | _ADDRESSES
"""All of C's mathematics on floats."""

RUNTIME = frozenset(
    ["mirstack_parallel_for", "mirstack_profile_now", "mirstack_profile_record", "aligned_alloc", "free"]
)
"""What lowering itself calls: the loop on several threads (`runtime/runtime.ll`), the log of profiles, memory. A program's own call of one is refused."""

ALLOWED = OF_NUMBERS | OF_INTEGERS
"""What every program may call."""

WRITTEN = "mirstack.extern"
"""The attribute (unit) of an `llvm.func` of `RUNTIME` that the program's text declares, above the `llvm` dialect."""

INLINE_ASM = "llvm.inline_asm"
"""The name that allows machine code in a module's text."""

_INTRINSIC = re.compile(r"llvm\.[A-Za-z0-9_.]++")


def names_of(names: Iterable[str]) -> tuple[str, ...]:
    """Returns the `allow_extern` of `Options`, sorted. Raises TypeError for one text instead of names."""
    return tuple(sorted(set(items(names, "allow_extern", "names of C functions", str))))


def check_extern(module: ModuleOp, op: llvm.FuncOp | llvm.GlobalOp, allowed: Collection[str]) -> None:
    """Raises MirError where a declaration names a function or variable that the module may not reach.

    The message is placed at the first op that uses it; for one of `RUNTIME`, which lowering may use too, at the declaration.
    """
    name = op.sym_name.data
    from xdsl.dialects import llvm

    if isinstance(op, llvm.FuncOp) and signature(name) is not None:
        _check_signature(op)
        return
    if name in ALLOWED or name in allowed or _INTRINSIC.fullmatch(name):
        return
    place: Operation = op
    if name not in RUNTIME:
        place = _first_use(module, name) or op
    elif WRITTEN not in op.attributes:
        return
    kind = "C function" if op.name == "llvm.func" else "variable of the process"
    raise error_at(place, f"the {kind} '{name}' may not be used here", *_notes(name))


def _check_signature(op: llvm.FuncOp) -> None:
    """Raises MirError where a function of C's mathematics is declared with other types than C's."""
    kind = op.function_type
    result, *parameters = (_DTYPES.get(str(type), str(type)) for type in (kind.output, *kind.inputs.data))
    reason = why_not_called(op.sym_name.data, result, parameters)
    if reason is not None:
        raise error_at(op, reason)


_DTYPES = {"f32": "float32", "f64": "float64", "i32": "int32", "i64": "int64"}


def check_inline_asm(op: llvm.InlineAsmOp, allowed: Collection[str]) -> None:
    """Raises MirError for machine code in a module's text that is not allowed."""
    if INLINE_ASM not in allowed:
        raise error_at(op, "machine code in a program's text may not be used here", *_notes(INLINE_ASM))


def check_intrinsic(op: Operation, name: str) -> None:
    """Raises MirError for a name that is not an LLVM intrinsic, and would be called as a C function."""
    if _INTRINSIC.fullmatch(name) is None:
        raise error_at(op, f"'{name}' is not the name of an intrinsic of LLVM", "they begin with llvm., as llvm.fabs")


def refused(where: Operation, name: str) -> MirError:
    """Returns the error for a name that no C function can have."""
    return error_at(where, f"'{name}' is not the name of a C function", "it is an identifier, such as sinf")


def _notes(name: str) -> tuple[str, ...]:
    return (
        "a program may call C's mathematics on numbers (sinf, pow, …), and what the one who runs it allows",
        f"if you trust the program: --allow-extern {name} (mir-run, mir-opt), or compile(…, allow_extern=[{name!r}])",
    )


def _first_use(module: ModuleOp, name: str) -> Operation | None:
    from xdsl.dialects import llvm

    for op in walk_ops(module):
        match op:
            case llvm.CallOp(callee=callee) if callee is not None and callee.root_reference.data == name:
                return op
            case llvm.AddressOfOp() if op.global_name.root_reference.data == name:
                return op
            case _:
                pass
    return None
