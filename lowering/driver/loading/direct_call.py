"""Calls Relay programs by a builtin function, without Python code in between (`runtime/call.ll`).

To look at an array from Python takes longer than a small kernel does. The builtin reads numpy's structures, calls the program
with the interpreter's lock released, and declines arguments that it cannot use as they are; the executable then does the call itself.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from ...runtime import POOL
from ..program import DYNAMIC
from .call_memory import LARGE_BYTES, Context, DynamicOutput, Output

if TYPE_CHECKING:
    from ...llvm.jit.load import CompiledModule

METH_FASTCALL = 0x0080
"""Python's C interface: a builtin that takes the address and the number of its arguments."""

PYTHON = (
    "PyTuple_GetItem", "PyTuple_New", "PyTuple_SetItem", "PyLong_AsVoidPtr", "PyLong_FromVoidPtr",
    "PyLong_FromLongLong", "PyObject_Vectorcall", "PyEval_SaveThread", "PyEval_RestoreThread",
    "PyThread_get_thread_ident", "Py_IncRef", "Py_DecRef", "PyCFunction_NewEx",
)  # fmt: skip
"""What is called of Python; all but the last by `call.ll`."""


class _Array(ctypes.Structure):
    """A numpy array's object (numpy's C API, "PyArrayObject"), as `call.ll` reads it."""

    _fields_ = (
        ("references", ctypes.c_int64), ("type", ctypes.c_void_p), ("data", ctypes.c_void_p), ("rank", ctypes.c_int),
        ("extents", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.c_void_p), ("base", ctypes.c_void_p),
        ("dtype", ctypes.c_void_p), ("flags", ctypes.c_int),
    )  # fmt: skip


class _Input(ctypes.Structure):
    _fields_ = (("dtype", ctypes.c_void_p), ("rank", ctypes.c_int64), ("extents", ctypes.c_void_p))


class _Output(ctypes.Structure):
    _fields_ = (
        ("maker", ctypes.c_void_p),
        ("arguments", ctypes.c_void_p),
        ("count", ctypes.c_int64),
        ("form", ctypes.c_void_p),
    )


class _Form(ctypes.Structure):
    """The shape of an output that is known after the call."""

    _fields_ = (
        ("rank", ctypes.c_int64), ("extents", ctypes.c_void_p), ("element", ctypes.c_int64), ("large", ctypes.c_int64),
        ("copies", ctypes.c_void_p),
    )  # fmt: skip


class _Plan(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_void_p), ("contexts", ctypes.c_void_p), ("input_count", ctypes.c_int64),
        ("inputs", ctypes.c_void_p), ("output_count", ctypes.c_int64), ("outputs", ctypes.c_void_p),
        ("single", ctypes.c_int64), ("threads", ctypes.c_int64), ("pool", ctypes.c_void_p),
        ("array_type", ctypes.c_void_p), ("declined", ctypes.c_void_p), ("finish", ctypes.c_void_p),
    )  # fmt: skip


class _Method(ctypes.Structure):
    """PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p), ("code", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p),
    )  # fmt: skip


class _Functions:
    """The functions of `call.ll`; made once, as Python's function objects point to `method` for ever."""

    def __init__(self, module: CompiledModule):
        self.module = module
        self.method = _Method(b"call", module.address("mirstack_call"), METH_FASTCALL, None)
        # These keep the interpreter's lock, which is what keeps the chain of contexts whole.
        self.take = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(module.address("mirstack_take_context"))
        give = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
        self.give = give(module.address("mirstack_give_context"))
        make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
        self.make = make(_address("PyCFunction_NewEx"))


def _address(name: str) -> int:
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0


@lru_cache(maxsize=1)
def _functions() -> _Functions | None:
    """Returns the compiled functions; None where Python or numpy has another layout than `call.ll` reads."""
    if not (_reads_objects() and all(hasattr(ctypes.pythonapi, name) for name in PYTHON)):
        return None
    from ...llvm.jit.load import compile_shipped

    text = files("mirstack.lowering.runtime").joinpath("call.ll").read_text()
    symbols = {name: _address(name) for name in PYTHON}
    # Optimizing would take 20 ms and gain some 50 ns a call.
    return _Functions(compile_shipped(text, symbols=symbols))


def _reads_objects() -> bool:
    """Returns whether `_Array` matches numpy's arrays, by reading several kinds of them.

    Builds of Python whose objects begin with more than a reference count and the type (for debugging, without the global lock) are
    recognized by their size.
    """
    if sys.implementation.name != "cpython" or object.__basicsize__ != 16 or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    samples = (np.zeros(3), np.arange(12, dtype=np.int8)[5:], np.zeros((2, 3), np.float32).T, np.zeros((), np.bool_))
    for sample in samples:
        seen = _Array.from_address(id(sample))
        if (
            seen.type != id(np.ndarray)
            or seen.data != sample.__array_interface__["data"][0]
            or seen.rank != sample.ndim
            or tuple(seen.extents[: sample.ndim]) != sample.shape
            or seen.dtype != id(sample.dtype)
            or seen.flags != sample.flags.num
        ):
            return False
    return True


class DirectCall:
    """The builtin function of one program, `call`, and the contexts that it works with.

    It returns NotImplemented for a call that it declines: arguments that are not exactly of the program's types, a call that failed, and
    one for which no context is ready, until `give` adds one.
    """

    def __init__(
        self,
        code: int,
        finish: int | None,
        inputs: Sequence[tuple[tuple[int | str, ...], np.dtype[Any]]],
        outputs: Sequence[Output | DynamicOutput],
        *,
        single: bool,
        threads: int | None,
        keep_alive: object,
    ):
        functions = _functions()
        assert functions is not None, "made by `direct_call`"
        self._functions = functions
        self._contexts: dict[int, Context] = {}
        held: list[object] = [self._contexts, *inputs, keep_alive]

        def held_address(data: ctypes.Structure | ctypes.Array[Any]) -> int:
            held.append(data)
            return ctypes.addressof(data)

        def extents_of(shape: tuple[int | str, ...]) -> int:
            return held_address((ctypes.c_int64 * len(shape))(*(DYNAMIC if isinstance(e, str) else e for e in shape)))

        def made(output: Output | DynamicOutput) -> _Output:
            maker, arguments = output.maker()
            form = None
            if isinstance(output, DynamicOutput):
                copies = output.copy
                held.append(copies)
                rank, extents = len(output.shape), extents_of(output.shape)
                form = held_address(_Form(rank, extents, output.dtype.itemsize, LARGE_BYTES, id(copies)))
            held.append(maker)
            return _Output(
                id(maker), held_address((ctypes.py_object * len(arguments))(*arguments)), len(arguments), form
            )

        taken = [_Input(id(dtype), len(shape), extents_of(shape)) for shape, dtype in inputs]
        given = [made(output) for output in outputs]
        self._plan = _Plan(
            code,
            None,
            len(taken),
            held_address((_Input * len(taken))(*taken)),
            len(given),
            held_address((_Output * len(given))(*given)),
            single,
            threads or 0,
            ctypes.addressof(POOL),
            id(np.ndarray),
            id(NotImplemented),
            finish,
        )
        self._address = ctypes.addressof(self._plan)
        # The function holds all that it reads: a call that runs outlives the executable that is dropped meanwhile.
        self.call: Callable[..., Any] = functions.make(
            ctypes.addressof(functions.method), (self._address, self._plan, held, functions), None
        )

    def take(self) -> Context | None:
        """Returns a context that no call uses, if there is one."""
        link = self._functions.take(self._address)
        return None if link is None else self._contexts.pop(link)

    def give(self, context: Context) -> None:
        """Makes a context ready for the next call by the thread that used it last."""
        self._contexts[context.link_address] = context
        self._functions.give(self._address, context.link_address)


def direct_call(
    code: int,
    finish: int | None,
    inputs: Sequence[tuple[tuple[int | str, ...], np.dtype[Any]]],
    outputs: Sequence[Output | DynamicOutput],
    *,
    single: bool,
    threads: int | None,
    keep_alive: object,
) -> DirectCall | None:
    """Returns the direct call of the program at `code`; None where this Python or numpy does not allow it.

    `finish` is the address of what frees results of open shape. The result is the `single` output's array, or a tuple of
    all. The pool must be set to `threads`, if that is not None. `keep_alive` is memory that the program needs.
    """
    if _functions() is None:
        return None
    return DirectCall(code, finish, inputs, outputs, single=single, threads=threads, keep_alive=keep_alive)
