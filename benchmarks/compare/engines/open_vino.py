"""OpenVINO on the CPU, for latency, in float32: its default is bfloat16 where the processor has it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov

from ..engine import Call
from ..graph import Array
from ..material import Material
from ..setting import Setting
from . import onnx_file


def prepare(material: Material) -> Path:
    return onnx_file.exported(material)


def load(prepared: Path, setting: Setting) -> Any:
    core = ov.Core()
    options = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",
        "INFERENCE_NUM_THREADS": setting.threads,
        "NUM_STREAMS": 1,
    }
    return core.compile_model(core.read_model(str(prepared)), "CPU", options)


def bind(program: Any, inputs: Sequence[Array]) -> Call:
    request = program.create_infer_request()
    for k, array in enumerate(inputs):
        request.set_input_tensor(k, ov.Tensor(array, shared_memory=True))
    outputs = range(len(program.outputs))

    def run() -> Sequence[Array]:
        request.infer()
        return inputs  # Kept with the call: the tensors that share their memory do not keep it.

    return Call(run, lambda _: [np.array(request.get_output_tensor(k).data) for k in outputs])
