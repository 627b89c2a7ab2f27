"""mirstack as a backend of ONNX: `prepare` compiles a model, `run` runs it; ONNX' own tests run on it.

    import mirstack.onnx.backend as backend
    outputs = backend.prepare(onnx.load("model.onnx")).run([x])

Source: https://onnx.ai/onnx/api/backend.html
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

try:
    import onnx
    from onnx.backend.base import Backend, BackendRep, namedtupledict
except ImportError:
    from ...support.diagnostics import Diagnostic, MirError

    raise MirError(Diagnostic("the ONNX backend needs the package onnx: pip install 'mirstack[onnx]'")) from None

from ..compile import compile
from ..executable import Executable
from ..importers import from_onnx


class Prepared(BackendRep):
    """A model that is ready to run.

    A model whose inputs are tensors of known rank is compiled at once; one with sequences or optionals is compiled for each number and
    shapes of elements that it is called with.
    """

    def __init__(self, model: Any, options: Mapping[str, Any]):
        known = {each.name for each in model.graph.initializer}
        self._model, self._options = model, options
        self._inputs = [each for each in model.graph.input if each.name not in known]
        self._compiled: dict[str, Executable] = {}
        if all(_is_plain(each.type) for each in self._inputs):
            self._compiled["{}"] = self._compile({})

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Runs the model on arrays, in order or by name; returns a named tuple of its outputs."""
        if isinstance(inputs, Mapping):
            given = [inputs.get(each.name) for each in self._inputs]
        else:
            given = list(inputs) if isinstance(inputs, Sequence) else [inputs]
        shapes: dict[str, Any] = {}
        arrays: list[Any] = []
        for info, value in zip(self._inputs, given, strict=True):
            parts = cast("list[Any]", value) if isinstance(value, list) else [] if value is None else [value]
            items = [np.asarray(each) for each in parts]
            if not _is_plain(info.type):
                of_items = [each.shape for each in items]
                shapes[info.name] = None if value is None else of_items if isinstance(value, list) else of_items[0]
            arrays += items
        executable = self._compiled.get(repr(shapes))
        if executable is None:
            executable = self._compiled[repr(shapes)] = self._compile(shapes)
        return self._grouped(executable, executable(*arrays))

    def _compile(self, shapes: Mapping[str, Any]) -> Executable:
        return compile(from_onnx(self._model, shapes), **self._options)

    def _grouped(self, executable: Executable, results: Any) -> tuple[Any, ...]:
        """Returns a result for each output: of a sequence a list, of an optional without a value None."""
        flat = results if isinstance(results, tuple) else (results,)
        found = dict(zip(executable.result_names, flat, strict=True))
        outputs: list[Any] = []
        for info in self._model.graph.output:
            items = [value for name, value in found.items() if name.rpartition(".")[0] == info.name]
            is_sequence = items or "sequence_type" in (
                info.type.WhichOneof("value"), info.type.optional_type.elem_type.WhichOneof("value"),
            )  # fmt: skip
            outputs.append(found.get(info.name, items if is_sequence else None))
        return namedtupledict("Outputs", [each.name for each in self._model.graph.output])(*outputs)


def _is_plain(type: Any) -> bool:
    """Returns whether a type is that of tensors of known rank."""
    return type.WhichOneof("value") == "tensor_type" and type.tensor_type.HasField("shape")


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
        return Prepared(model, kwargs)

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
