"""Knows files of models by their endings: `.onnx` and `.pt2`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..lowering.driver.source import ProgramSource

MODEL_FORMATS = ("onnx", "pt2")
"""Endings of files of models, which are not text."""


def model_file(
    path: str | PathLike[str],
    shapes: Mapping[str, Sequence[int]] | None = None,
    custom: Sequence[str | PathLike[str]] = (),
    model_format: str | None = None,
) -> ProgramSource | None:
    """Returns the program in a model's file; None for any other file.

    The format is the given one, or that of the ending.

    Raises TypeError for files of operators of one's own, `custom`, with a model that is not an ONNX file.
    """
    ending = fspath(path).lower().rpartition(".")[2] if model_format is None else model_format
    if ending == "onnx":
        from .onnx.onnx_file import OnnxFile

        return OnnxFile.of(path, shapes, custom)
    if custom:
        raise TypeError("custom holds operators of an ONNX file; other programs have their functions in themselves")
    if ending == "pt2":
        from .torch.exported_file import ExportedFile

        return ExportedFile.of(path, shapes)
    return None
