"""`mirstack.from_onnx`, `from_torch` and `from_jax`: models of other frameworks as modules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, cast

from ..support.arguments import files_of
from ..support.short_tracebacks import short_traceback
from ..support.xdsl_patches import apply

apply()

if TYPE_CHECKING:
    from ..frontends.onnx.inputs import Shapes
    from ..support.arguments import Files
    from .ir.module import IRModule


@short_traceback
def from_onnx(
    model: str | PathLike[str] | Any,
    shapes: Shapes | None = None,
    custom: Files = (),
) -> IRModule:
    """Imports an ONNX model, a file's path or a `ModelProto`; its graph is the function `main`.

        mod = mirstack.from_onnx("resnet18.onnx", shapes={"x": (1, 3, 224, 224)})

    Parameters are the inputs that are not initializers, under their names; several outputs are a tuple. `shapes` fixes dimensions that
    the model leaves open; None leaves one as it is. Of a sequence it holds the shapes of the elements (`"s": [(2,), (3,)]`, which are
    parameters `s.0` and `s.1`), of an optional without a value None. `custom` is a `.mir` file, or several, of TE and TIR functions: a node
    calls the one that is named as its operator (`Op` or `domain_Op`), with its inputs and, by name, its attributes. Needs the package onnx (`pip install 'mirstack[onnx]'`). Raises
    MirError for a file that cannot be read, and with all nodes that cannot be imported.
    """
    from ..frontends.onnx.importer import import_model
    from ..frontends.onnx.onnx_file import OnnxFile, custom_module
    from ..lowering.driver.source import SourceText
    from ..support.deep_stack import in_deep_stack
    from .ir.module import IRModule

    files = files_of(custom)
    if isinstance(model, str | PathLike):
        return IRModule.of_op(OnnxFile.of(cast("str", model), shapes, files).parse())
    if not hasattr(model, "opset_import"):
        raise TypeError(f"from_onnx takes the path of a file or an onnx.ModelProto, not {type(model).__name__}")
    functions = custom_module([SourceText.of_file(each) for each in files])
    return IRModule.of_op(in_deep_stack(lambda: import_model(model, "model.onnx", shapes, custom=functions)))


@short_traceback
def from_torch(
    model: Any,
    example_inputs: Sequence[Any] | None = None,
    dynamic_shapes: Any = None,
    *,
    example_kwargs: Mapping[str, Any] | None = None,
) -> IRModule:
    """Imports a PyTorch module, or a `torch.export.ExportedProgram`; its forward is the function `main`.

        mod = mirstack.from_torch(model.eval(), (torch.randn(2, 3, 224, 224),), dynamic_shapes=({0: torch.export.Dim("batch")},))

    A module is exported with `example_inputs` and `example_kwargs`, which it takes; dimensions named in `dynamic_shapes` (see
    `torch.export.export`) stay open. Parameters of `main` are the inputs in order, nested ones flattened; several outputs are a tuple.
    Weights share torch's memory: they must not be written to later. Needs the package torch (`pip install 'mirstack[torch]'`).
    Raises MirError with all operators that cannot be imported.
    """
    from ..frontends.torch.importer import import_program
    from ..frontends.torch.tensors import exported
    from ..support.deep_stack import in_deep_stack
    from .ir.module import IRModule

    program, name = exported(model, example_inputs, example_kwargs, dynamic_shapes)
    return IRModule.of_op(in_deep_stack(lambda: import_program(program, name)))


@short_traceback
def from_jax(function: Any, *args: Any, **kwargs: Any) -> IRModule:
    """Imports a function of JAX, or a `jax.export.Exported`, as the function `main`.

        batch, = jax.export.symbolic_shape("batch")
        mod = mirstack.from_jax(predict, params, jax.ShapeDtypeStruct((batch, 784), "float32"))

    `args` and `kwargs` are what the function takes: arrays, `jax.ShapeDtypeStruct` (symbolic sizes stay open, equal names are equal
    sizes), or dictionaries, lists and other containers of them. Parameters of `main` are their leaves, named by their places
    (`params.conv1.w`); results are the leaves of the result. Arrays that the function uses without taking them are constants, which
    share JAX' memory, except inside of `jax.jit`. Needs the package jax (`pip install 'mirstack[jax]'`). Raises MirError with all
    operators that cannot be imported.
    """
    from ..frontends.jax.exported import exported
    from ..frontends.jax.importer import import_function
    from ..support.deep_stack import in_deep_stack
    from .ir.module import IRModule

    found = exported(function, args, kwargs)
    return IRModule.of_op(in_deep_stack(lambda: import_function(found)))
