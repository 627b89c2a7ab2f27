"""mirstack as a backend of ONNX: `prepare` compiles a model, `run` runs it; ONNX' own tests run on it.

    import mirstack.onnx.backend as backend
    outputs = backend.prepare(onnx.load("model.onnx")).run([x])

Source: https://onnx.ai/onnx/api/backend.html
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

try:
    import onnx
    from onnx.backend.base import Backend, BackendRep, namedtupledict
except ImportError:
    from ...support.diagnostics import Diagnostic, MirError

    raise MirError(Diagnostic("the ONNX backend needs the package onnx: pip install 'mirstack[onnx]'")) from None

from ..compile import compile
from ..importers import from_onnx


class Prepared(BackendRep):
    """A compiled model."""

    def __init__(self, executable: Any, inputs: Sequence[str], outputs: Sequence[str]):
        self._executable, self._inputs, self._outputs = executable, inputs, outputs

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Runs the model on arrays, in order or by name; returns a named tuple of its outputs."""
        if isinstance(inputs, Mapping):
            given = [inputs[name] for name in self._inputs]
        elif isinstance(inputs, Sequence):
            given = list(inputs)
        else:
            given = [inputs]
        results = self._executable(*(np.asarray(each) for each in given))
        found = results if isinstance(results, tuple) else (results,)
        return namedtupledict("Outputs", list(self._outputs))(*found)


class MirstackBackend(Backend):
    """Compiles ONNX models for this machine's processor."""

    @classmethod
    def is_compatible(cls, model: Any, device: str = "CPU", **kwargs: Any) -> bool:
        """Returns whether every node of a model can be imported."""
        from ...support.diagnostics import MirError

        try:
            from_onnx(model)
        except MirError:
            return False
        return cls.supports_device(device)

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> Prepared:
        """Compiles a model. Further arguments are those of `mirstack.compile`. Raises MirError."""
        executable = compile(from_onnx(model), **kwargs)
        known = {each.name for each in model.graph.initializer}
        inputs = [each.name for each in model.graph.input if each.name not in known]
        return Prepared(executable, inputs, [each.name for each in model.graph.output])

    @classmethod
    def run_model(cls, model: Any, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        """Compiles a model and runs it once."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls, node: Any, inputs: Any, device: str = "CPU", outputs_info: Any = None, **kwargs: Any
    ) -> tuple[Any, ...]:
        """Compiles a graph of one node for these inputs and runs it."""
        opset = kwargs.pop("opset_version", onnx.defs.onnx_opset_version())
        arrays = [np.asarray(each) for each in inputs]
        names = [each for each in node.input if each]
        given = [
            onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in zip(names, arrays, strict=True)
        ]
        results = [onnx.helper.make_empty_tensor_value_info(each) for each in node.output if each]
        graph = onnx.helper.make_graph([node], "node", given, results)
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid(node.domain, opset)])
        return cls.run_model(model, arrays, device, **kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Returns whether models run on a device: "CPU"."""
        return device.split(":")[0] == "CPU"


is_compatible = MirstackBackend.is_compatible
prepare = MirstackBackend.prepare
run_model = MirstackBackend.run_model
run_node = MirstackBackend.run_node
supports_device = MirstackBackend.supports_device
