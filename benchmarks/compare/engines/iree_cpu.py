"""IREE's llvm-cpu for this processor, from the StableHLO that jax exports."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import iree.compiler as compiler
import iree.runtime as runtime
import jax
import numpy as np
from jax import export

from ..engine import Call
from ..graph import Array
from ..material import Material
from ..setting import Setting
from ..to_jax import function_of


def prepare(material: Material) -> Path:
    path = material.file(".stablehlo")
    if not material.is_fresh(path):
        graph = material.graph
        shapes = [jax.ShapeDtypeStruct(value.shape, value.dtype) for value in graph.inputs]
        exported = export.export(jax.jit(function_of(graph)))(*shapes)
        path.write_bytes(exported.mlir_module_serialized)
    return path


def load(prepared: Path, setting: Setting) -> Any:
    code = compiler.compile_str(
        prepared.read_bytes(),
        input_type="stablehlo",
        target_backends=["llvm-cpu"],
        extra_args=[f"--iree-llvmcpu-target-cpu={setting.target or 'host'}", "--iree-opt-level=O3"],
    )
    runtime.flags.parse_flags(f"--task_topology_group_count={setting.threads}")
    driver = "local-sync" if setting.threads == 1 else "local-task"
    config = runtime.Config(driver)
    module = runtime.VmModule.copy_buffer(config.vm_instance, code)
    return runtime.load_vm_module(module, config), config


def bind(program: Any, inputs: Sequence[Array]) -> Call:
    module, config = program
    arrays = [runtime.asdevicearray(config.device, array) for array in inputs]
    main = module["main"]

    def read(result: Any) -> list[Array]:
        results = result if isinstance(result, list | tuple) else [result]
        return [np.asarray(each.to_host()) for each in results]

    return Call(lambda: main(*arrays), read)
