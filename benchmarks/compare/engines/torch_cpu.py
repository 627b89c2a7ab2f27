"""torch on the CPU, eager, in inference mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ..engine import Call
from ..graph import Array
from ..material import Material
from ..setting import Setting
from ..to_torch import module_of
from ..to_torch_quantized import Program, program_of


def prepare(material: Material) -> Any:
    if material.workload.family == "quantized":
        return program_of(material.graph)
    return module_of(material.graph)


def load(prepared: Any, setting: Setting) -> Any:
    torch.set_num_threads(setting.threads)
    return prepared


def bind(program: Any, inputs: Sequence[Array]) -> Call:
    is_quantized = isinstance(program, Program)
    tensors = program.inputs(inputs) if is_quantized else [torch.from_numpy(array) for array in inputs]

    def run() -> Any:
        with torch.inference_mode():
            return program(*tensors)

    if is_quantized:
        return Call(run, lambda result: [result.int_repr().numpy()])
    return Call(run, lambda results: [result.numpy() for result in results])
