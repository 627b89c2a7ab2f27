"""TVM's Relax, untuned: the default pipeline on the ONNX model, for this processor."""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import tvm
from llvmlite import binding
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

from ..engine import Call
from ..graph import Array
from ..material import Material
from ..setting import Setting
from . import onnx_file


def prepare(material: Material) -> Path:
    return onnx_file.translated(material)


def load(prepared: Path, setting: Setting) -> Any:
    os.environ["TVM_NUM_THREADS"] = str(setting.threads)
    with _silent():
        module = from_onnx(onnx.load(str(prepared)), keep_params_in_input=False)
    target = tvm.target.Target({"kind": "llvm", "mcpu": setting.target or binding.get_host_cpu_name()})
    with target:
        return relax.VirtualMachine(tvm.compile(module, target), tvm.cpu())


@contextmanager
def _silent() -> Generator[None]:
    """Without the library's warnings, which it writes past Python; its errors are exceptions."""
    kept = os.dup(2)
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def bind(program: Any, inputs: Sequence[Array]) -> Call:
    tensors = [tvm.runtime.tensor(array) for array in inputs]
    main = program["main"]

    def read(result: Any) -> list[Array]:
        results = result if not hasattr(result, "numpy") else [result]
        return [np.asarray(each.numpy()) for each in results]

    return Call(lambda: main(*tensors), read)
