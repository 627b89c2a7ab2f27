"""mirstack as a backend of ONNX: `prepare` compiles a model, `run` runs it; ONNX' own tests run on it.

    import mirstack.onnx.backend as backend
    outputs = backend.prepare(onnx.load("model.onnx")).run([x])

Source: https://onnx.ai/onnx/api/backend.html
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from ...support.diagnostics import Diagnostic, MirError

try:
    import onnx
    from onnx.backend.base import Backend, BackendRep, namedtupledict
except ImportError:
    raise MirError(Diagnostic("the ONNX backend needs the package onnx: pip install 'mirstack[onnx]'")) from None

from ...support.public_names import public_names
from ..compile import compile
from ..executable import Executable
from ..importers import from_onnx


class Prepared(BackendRep):
    """A model that is ready to run.

    A model whose inputs are tensors of known rank is compiled at once; one with sequences or optionals is compiled for each number and
    shapes of elements that it is called with. Where the values of inputs decide the structure of the model, such as the number of
    iterations of a loop over sequences, it is compiled for each of their values.
    """

    def __init__(self, model: Any, options: Mapping[str, Any]):
        known = {each.name for each in model.graph.initializer}
        self._model, self._options = model, options
        self._inputs = [each for each in model.graph.input if each.name not in known]
        self._compiled: dict[str, Executable] = {}
        self._decisive: set[str] = set()
        """The inputs that are compiled in."""
        if all(_is_plain(each.type) for each in self._inputs):
            try:
                self._compiled["{}"] = self._compile({}, {})
            except MirError:
                if not self._decides_by_values():
                    raise

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(each.name for each in self._inputs)})"

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Runs the model on arrays, in order or by name; returns a named tuple of its outputs."""
        if isinstance(inputs, Mapping):
            given = [inputs.get(each.name) for each in self._inputs]
        else:
            given = list(inputs) if isinstance(inputs, Sequence) else [inputs]
        try:
            executable, arrays = self._executable(given)
        except MirError:
            if not self._decides_by_values():
                raise
            executable, arrays = self._executable(given)
        return self._grouped(executable, executable(*arrays))

    def _decides_by_values(self) -> bool:
        """Marks the inputs whose values may decide the structure, which are then compiled in.

        Returns whether there are such inputs that were not compiled in before.
        """
        before, self._decisive = self._decisive, {each.name for each in self._inputs if _is_small(each.type)}
        return self._decisive > before

    def _executable(self, given: Sequence[Any]) -> tuple[Executable, list[Any]]:
        """Returns the program for inputs, and the arrays to call it with."""
        shapes: dict[str, Any] = {}
        values: dict[str, Any] = {}
        arrays: list[Any] = []
        for info, value in zip(self._inputs, given, strict=True):
            if info.name in self._decisive:
                values[info.name] = np.asarray(value)
                continue
            parts = cast("list[Any]", value) if isinstance(value, list) else [] if value is None else [value]
            items = [np.asarray(each) for each in parts]
            if not _is_plain(info.type):
                of_items = [each.shape for each in items]
                shapes[info.name] = None if value is None else of_items if isinstance(value, list) else of_items[0]
            arrays += items
        key = repr((shapes, {name: each.tolist() for name, each in values.items()}) if values else shapes)
        executable = self._compiled.get(key)
        if executable is None:
            executable = self._compiled[key] = self._compile(shapes, values)
        return executable, arrays

    def _compile(self, shapes: Mapping[str, Any], values: Mapping[str, Any]) -> Executable:
        model = self._model
        if values:
            model = onnx.ModelProto()
            model.CopyFrom(self._model)
            model.graph.initializer.extend(onnx.numpy_helper.from_array(each, name) for name, each in values.items())
        return compile(from_onnx(model, shapes), **self._options)

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


def _is_small(type: Any) -> bool:
    """Returns whether a type is that of a number, or of a vector of integers: what decides structure."""
    if not _is_plain(type):
        return False
    rank, element = len(type.tensor_type.shape.dim), type.tensor_type.elem_type
    proto = onnx.TensorProto
    if element in (proto.BOOL, proto.INT32, proto.INT64):
        return rank <= 1
    return rank == 0 and element in (proto.FLOAT, proto.DOUBLE, proto.FLOAT16)


def _is_plain(type: Any) -> bool:
    """Returns whether a type is that of tensors of known rank."""
    return type.WhichOneof("value") == "tensor_type" and type.tensor_type.HasField("shape")


class MirstackBackend(Backend):
    """Compiles ONNX models for this machine's processor."""

    @classmethod
    def is_compatible(cls, model: Any, device: str = "CPU", **kwargs: Any) -> bool:
        """Returns whether every node of a model can be imported."""
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


__dir__ = public_names(__name__)
