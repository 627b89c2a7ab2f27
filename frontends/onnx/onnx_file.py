"""Defines an ONNX file as a program that is compiled, or found in the cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ...dialects.side_file import SideFile
from ...lowering.driver.program import DYNAMIC
from ...lowering.driver.source import ProgramSource, SourceText
from ...support.diagnostics import Diagnostic, MirError
from ...support.extensions import loaded
from ...support.xdsl_patches import apply

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from ...lowering.driver.cache.file_digests import FileDigests, NamedArray
    from .inputs import Shapes

SUFFIX = ".onnx"


@dataclass(frozen=True)
class OnnxFile(ProgramSource):
    """An ONNX file, with the shapes that its inputs are fixed to.

    It is imported only if the cache does not have what it compiles to.
    The cache knows it by its bytes and those of its external data: the weights' digests, and a digest of the rest.
    """

    name: str
    shapes: Shapes = field(default_factory=dict[str, "None"])
    custom: tuple[SourceText, ...] = ()
    """Texts of TE and TIR functions for operators of one's own."""

    @staticmethod
    def of(
        path: str | PathLike[str], shapes: Shapes | None = None, custom: Sequence[str | PathLike[str]] = ()
    ) -> OnnxFile:
        """Returns the file of a path, with files of operators of one's own.

        A size of `shapes` that is `DYNAMIC` or None stays as the model has it.
        """
        known = {
            name: None if shape is None else [None if size == DYNAMIC else size for size in shape]
            for name, shape in dict(shapes or {}).items()
        }
        return OnnxFile(str(fspath(path)), cast("Shapes", known), tuple(map(SourceText.of_file, custom)))

    @cached_property
    def weights(self) -> SideFile:
        """The file's initializers. Raises MirError for a file that cannot be read or is not an ONNX model."""
        try:
            return SideFile(Path(self.name), SUFFIX)
        except OSError as error:
            raise MirError(Diagnostic(f"{self.name} cannot be read: {error.strerror or error}")) from None
        except ValueError as error:
            reason = str(error).removeprefix("the file is not an ONNX model: ")
            raise MirError(Diagnostic(f"{self.name} is not an ONNX model: {reason}")) from None

    def key(self, digests: FileDigests) -> tuple[str, Sequence[NamedArray]] | None:
        """Returns digests of what is not weights, and the weights; None where they cannot be read."""
        if loaded("operator"):
            # Nodes may become operators of Python code, which has no identity.
            return None
        weights = self.weights
        texts = [each.key(digests) for each in self.custom]
        if None in texts:
            return None
        try:
            arrays = digests.of_arrays(weights)
            rest = digests.of_file("all but the weights", self.name, weights.rest_digest).hex()
            names = list(weights.names())
            return repr(["onnx", self.name, rest, names, self.shapes, [each and each[0] for each in texts]]), arrays
        except (OSError, ValueError):
            return None

    def parse(self) -> ModuleOp:
        """Imports the model. Raises MirError with all nodes that cannot be imported."""
        apply()
        from ...support.deep_stack import in_deep_stack
        from ...support.verify import verify
        from .importer import import_model
        from .model import read_model

        model = read_model(self.name, self.weights)

        custom = custom_module(self.custom)

        def imported() -> ModuleOp:
            module = import_model(model, self.name, self.shapes, self.weights, custom)
            verify(module)
            return module

        return in_deep_stack(imported)


def custom_module(sources: Sequence[SourceText]) -> ModuleOp | None:
    """Returns the functions of several texts as one module; None for no text."""
    modules = [each.parse() for each in sources]
    for other in modules[1:]:
        for op in list(other.ops):
            op.detach()
            modules[0].body.block.add_op(op)
    return modules[0] if modules else None
