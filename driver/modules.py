"""From a source text to a module, whichever of the formats it is in."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ..frontends.model_file import MODEL_FORMATS, model_file
from ..support.diagnostics import MirError, Sources
from ..support.verify import verify
from ..universe import every_dialect
from .errors import UsageError
from .mlir_frontend import parse_mlir
from .sources import Chunk, Source, check_file, extension, read_source

if TYPE_CHECKING:
    from ..lowering.driver.source import ProgramSource

Shapes = Mapping[str, Sequence[int]]

FORMATS = ("mir", "mlir")
"""The formats of text."""


def register_dialects(context: Context) -> None:
    """Registers every dialect; each is imported when its first op or type is read."""
    register_loaded(context)


def register_loaded(context: Context) -> None:
    """Registers the dialects that the context does not have yet: those that extensions have added."""
    known = set(context.registered_dialect_names)
    for name, factory in every_dialect().items():
        if name not in known:
            context.register_dialect(name, factory)


def format_of(path: str | None, told: str | None) -> str:
    """Returns the given format, or the extension's, `.mir` of standard input. Raises `UsageError`."""
    if told:
        return told
    found = extension(path)
    if found in (*FORMATS, *MODEL_FORMATS):
        return found
    if path in (None, "-"):
        return "mir"
    if os.path.isdir(path):
        raise UsageError(f"{path}: is a directory, not a file")
    raise UsageError(
        f"{path}: not a .mir, .mlir, .onnx or .pt2 file: tell its format with -f mir, -f mlir, -f onnx or -f pt2"
    )


def parse_chunk(
    source: Source, chunk: Chunk, text_format: str, context: Context, implicit_module: bool = True
) -> ModuleOp:
    """Parses the module in a part of a source. Raises `MirError` with all errors of syntax."""
    try:
        if text_format == "mir":
            from ..parser import parse_mir

            return parse_mir(chunk.text, source.name, first_line=chunk.first_line, directory=str(source.directory))
        return parse_mlir(context, chunk.text, source.name, chunk.first_line, implicit_module)
    except MirError as error:
        other = _looks_like(chunk.text)
        if other in (None, text_format):
            raise
        note = f"this looks like .{other} text: -f {other} reads it as such"
        raise MirError((error.diagnostics[0].with_note(note), *error.diagnostics[1:])) from None


_FIRST_WORDS = {
    "mir": re.compile(r"def @|@T\.prim_func|@te\.func|@I\.ir_module|@tvm\.script|#\[version|class \w+:|rules? "),
    "mlir": re.compile(
        r"(?:builtin\.)?module\b|(?:func|llvm)\.func |\"[a-z_]+\.[\w.]+\"\(|%\w+(?::\d+)? = |[#!]\w+ = "
    ),
}
"""How a text in each format begins, after comments."""


def _looks_like(text: str) -> str | None:
    """Returns the format in which a text seems to be written; None where its first line does not tell."""
    for line in text.splitlines():
        words = line.lstrip()
        if words and not words.startswith(("//", "# ")):
            return next((name for name, first in _FIRST_WORDS.items() if first.match(words)), None)
    return None


def model_source(
    path: str | None, told: str, shapes: Mapping[str, Sequence[int]], custom: Sequence[str] = ()
) -> ProgramSource:
    """Returns the model in a file of one of `MODEL_FORMATS`, its inputs of these shapes.

    Raises `UsageError` where there is no such file.
    """
    if path in (None, "-"):
        raise UsageError(f"a model is read from a .{told} file, not from standard input")
    for each in (path, *custom):
        check_file(each)
    if custom and told != "onnx":
        raise UsageError(f"--custom: operators of one's own are those of an ONNX model, and {path} is a .{told} file")
    found = model_file(path, shapes, custom, told)
    assert found is not None
    return found


def program_source(
    path: str, told: str | None, shapes: Shapes, custom: Sequence[str] = (), *, parse: bool = False
) -> tuple[ProgramSource | ModuleOp, Shapes]:
    """Returns what is compiled of a file, and the shapes that are still to be bound.

    A model is read with its shapes. Text in `.mir` is not parsed unless `parse`: a program that the cache has need not be. Raises `UsageError` and `MirError`.
    """
    from ..lowering.driver.source import SourceText
    from ..support.source_text import source_text

    text_format = format_of(path, told)
    if text_format in MODEL_FORMATS:
        return model_source(path, text_format, shapes, custom), {}
    if parse or text_format != "mir":
        return read_module(path, told), shapes
    source = read_source(path)
    Sources.current().add(source.name, source.text)
    return SourceText(source_text(source.text), source.name, source.directory), shapes


def read_module(path: str, told_format: str | None = None) -> ModuleOp:
    """Reads and verifies a file's module; keeps its text. Raises `UsageError` and `MirError`."""
    source = read_source(path)
    text_format = format_of(path, told_format)
    Sources.current().add(source.name, source.text)
    context = Context()
    register_dialects(context)
    module = parse_chunk(source, Chunk(source.text), text_format, context)
    verify(module)
    from ..lowering.driver.source import check_functions

    check_functions(module)
    return module
