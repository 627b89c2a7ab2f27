"""Standard dialects' text to native functions over numpy arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from compiled_ir import compile_ir
from mirstack.dialects.llvm_ext import LLVMExt
from mirstack.dialects.vector_ext import VectorExt
from mirstack.lowering.llvm.convert.lower_std_to_llvm import lower_std_to_llvm
from mirstack.lowering.llvm.jit.call import messages_of
from mirstack.lowering.llvm.jit.load import CompiledModule
from mirstack.lowering.llvm.text.translation import translate
from mirstack.support.verify import check_dominance
from xdsl.context import Context
from xdsl.dialects import get_all_dialects
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

MLIR_TYPES: dict[str, Any] = {
    **{"i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "index": np.int64},
    **{"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64},
}


def context() -> Context:
    """Knows xDSL's dialects and ours."""
    ctx = Context()
    for name, factory in get_all_dialects().items():
        ctx.register_dialect(name, factory)
    ctx.register_dialect("llvm_ext", lambda: LLVMExt)
    ctx.register_dialect("vector_ext", lambda: VectorExt)
    return ctx


def parse_mlir(text: str) -> ModuleOp:
    """The module, verified."""
    module = Parser(context(), text, "test.mlir").parse_module()
    module.verify()
    return module


@dataclass
class Built:
    """A module on its way: converted, as IR text, loaded."""

    module: ModuleOp
    ir: str
    code: CompiledModule

    @property
    def messages(self) -> dict[int, str]:
        """Status codes to texts."""
        return messages_of(self.module)

    def call(self, name: str, *arguments: Any, restype: Any = ctypes.c_int32) -> Any:
        """Calls a function with arrays (by address) and numbers (floats as f32, integers as i64)."""
        native: list[Any] = []
        for argument in arguments:
            if isinstance(argument, np.ndarray):
                native.append(ctypes.c_void_p(argument.__array_interface__["data"][0]))
            elif isinstance(argument, float):
                native.append(ctypes.c_float(argument))
            else:
                native.append(ctypes.c_int64(argument))
        function = ctypes.CFUNCTYPE(restype, *(type(value) for value in native))(self.code.address(name))
        return function(*native)


@pytest.fixture(scope="session")
def parse() -> Callable[[str], ModuleOp]:
    """Text to a module that is not verified and may hold ops that nobody knows."""

    def run(text: str) -> ModuleOp:
        ctx = context()
        ctx.allow_unregistered = True
        return Parser(ctx, text, "test.mlir").parse_module()

    return run


PROCESSORS = ("x86-64", "haswell", "skylake-avx512", "neoverse-n1")


@pytest.fixture(scope="session")
def lower() -> Callable[[str], ModuleOp]:
    """Text to the llvm dialect, verified and printing as text that parses to the same; what other processors get is verified, too."""

    def run(text: str) -> ModuleOp:
        module = parse_mlir(text)
        for cpu in PROCESSORS:
            other = module.clone()
            lower_std_to_llvm(other, cpu)
            other.verify()
        lower_std_to_llvm(module)
        module.verify()
        check_dominance(module)
        printed = str(module)
        assert str(parse_mlir(printed)) == printed
        return module

    return run


@pytest.fixture(scope="session")
def build(lower: Callable[[str], ModuleOp]) -> Callable[[str], Built]:
    """Text to loaded code."""

    def run(text: str) -> Built:
        module = lower(text)
        ir = translate(module)
        return Built(module, ir, compile_ir(ir, opt_level=2))

    return run


def elementwise_text(name: str, body: Sequence[str], inputs: Sequence[str], output: str, lanes: int = 0) -> str:
    """A function that runs `body` (from %a, %b, … to %r) over arrays; on vectors of `lanes` lanes if there are any."""
    names = "abcd"[: len(inputs)]

    def memref(type_: str) -> str:
        return f"memref<?x{type_}>"

    def value(type_: str) -> str:
        return f"vector<{lanes}x{type_}>" if lanes else type_

    lines = [
        f"func.func @{name}("
        + ", ".join(f"%p{n}: {memref(t)}" for n, t in zip(names, inputs, strict=True))
        + f", %out: {memref(output)}, %n: index) attributes {{mirstack.noalias}} {{",
        "  %zero = arith.constant 0 : index",
        f"  %step = arith.constant {lanes or 1} : index",
        "  scf.for %i = %zero to %n step %step {",
    ]
    for n, type_ in zip(names, inputs, strict=True):
        if lanes:
            lines.append(f"    %{n} = vector.load %p{n}[%i] : {memref(type_)}, {value(type_)}")
        else:
            lines.append(f"    %{n} = memref.load %p{n}[%i] : {memref(type_)}")
    lines += [f"    {line}" for line in body]
    if lanes:
        lines.append(f"    vector.store %r, %out[%i] : {memref(output)}, {value(output)}")
    else:
        lines.append(f"    memref.store %r, %out[%i] : {memref(output)}")
    return "\n".join([*lines, "  }", "  func.return", "}"]) + "\n"


@pytest.fixture(scope="session")
def elementwise() -> Callable[..., str]:
    """`elementwise_text`."""
    return elementwise_text


@pytest.fixture(scope="session")
def numpy_types() -> dict[str, Any]:
    """MLIR's scalar types to numpy's."""
    return MLIR_TYPES
