"""ONNX Runtime, with all graph optimizations; inputs and outputs are bound once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

from ..engine import Call
from ..graph import Array
from ..material import Material
from ..setting import Setting
from . import onnx_file


def prepare(material: Material) -> Path:
    return onnx_file.exported(material)


def load(prepared: Path, setting: Setting) -> Any:
    options = ort.SessionOptions()
    options.intra_op_num_threads = setting.threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return ort.InferenceSession(str(prepared), options, providers=["CPUExecutionProvider"])


def bind(program: Any, inputs: Sequence[Array]) -> Call:
    binding = program.io_binding()
    kept = [ort.OrtValue.ortvalue_from_numpy(array) for array in inputs]
    for given, value in zip(program.get_inputs(), kept, strict=True):
        binding.bind_ortvalue_input(given.name, value)
    for result in program.get_outputs():
        value = ort.OrtValue.ortvalue_from_shape_and_type(result.shape, _dtype(result.type), "cpu")
        kept.append(value)
        binding.bind_ortvalue_output(result.name, value)
    return Call(lambda: program.run_with_iobinding(binding), lambda _: [v.numpy() for v in kept[len(inputs) :]])


def _dtype(name: str) -> Any:
    dtypes = {"float": np.float32, "int32": np.int32, "uint8": np.uint8, "bool": np.bool_}
    return dtypes[name.removeprefix("tensor(").removesuffix(")")]
