"""mirstack: a `.mir` text and its side file, called with numpy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mirstack
import numpy as np
from mirstack.lowering.driver.loading.executable import flatten
from mirstack.passes.relay.quantize.fake_quantization_to_integer import FakeQuantizationToInteger
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ..engine import Call
from ..graph import Array
from ..material import Material
from ..setting import Setting

# What a user's program imports at its start; the other engines' imports are not counted, either.
mirstack.preload()


def prepare(material: Material) -> Path | ModuleOp:
    if material.workload.family != "quantized":
        return material.source
    module = mirstack.load(material.source)
    # What other engines do when they load such a program is a pass that one calls, as in TVM.
    FakeQuantizationToInteger(hard_fail=True).apply(Context(), module)
    return module


def load(prepared: Path | ModuleOp, setting: Setting) -> Any:
    return mirstack.compile(prepared, threads=setting.threads, cpu=setting.target)


def bind(program: Any, inputs: Sequence[Array]) -> Call:
    return Call(lambda: program(*inputs), lambda result: [np.asarray(array) for array in flatten(result)])
