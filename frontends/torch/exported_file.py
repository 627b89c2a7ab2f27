"""Defines a `.pt2` file, which torch.export writes, as a program to compile or find in the cache."""

from __future__ import annotations

import hashlib
import io
import json
import logging
import re
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ...lowering.driver.source import ProgramSource
from ...support.diagnostics import Diagnostic, MirError
from ...support.xdsl_patches import apply

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from ...lowering.driver.cache.file_digests import FileDigests, NamedArray
    from ...passes.relay.functional.bind_shapes import Shapes

SUFFIX = ".pt2"


@dataclass(frozen=True)
class ExportedFile(ProgramSource):
    """A `.pt2` file, with the shapes that its inputs are fixed to.

    It is read, and torch imported, only if the cache does not have what it compiles to.
    """

    name: str
    shapes: Shapes = field(default_factory=dict[str, "tuple[int, ...]"])

    @staticmethod
    def of(path: str | PathLike[str], shapes: Shapes | None = None) -> ExportedFile:
        """Returns the file of a path."""
        return ExportedFile(str(fspath(path)), dict(shapes or {}))

    def key(self, digests: FileDigests) -> tuple[str, Sequence[NamedArray]] | None:
        """Returns digests of the file and of what decomposes its operators; None where it cannot be read."""
        try:
            digest = digests.of_file("all", self.name, self._digest).hex()
            torch = version("torch")
        except (OSError, PackageNotFoundError):
            return None
        return repr(["pt2", self.name, digest, torch, sorted(self.shapes.items())]), ()

    def _digest(self) -> bytes:
        with open(self.name, "rb") as file:
            return hashlib.file_digest(file, "sha256").digest()

    def parse(self) -> ModuleOp:
        """Imports the program.

        Raises MirError for a file that is wrong, and with all operators that cannot be imported.
        """
        apply()
        from ...passes.relay.functional.bind_shapes import bind_shapes
        from ...support.deep_stack import in_deep_stack
        from ...support.verify import verify
        from .importer import import_program

        def imported() -> ModuleOp:
            # What torch says to its own callers is not about the file.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                module = import_program(read_program(self.name), self.name)
            verify(module)
            bind_shapes(module, next(iter(module.ops)), self.shapes)
            return module

        return in_deep_stack(imported)


def read_program(path: str) -> Any:
    """Returns the `torch.export.ExportedProgram` in a file.

    The file is checked first: nothing in it is unpickled or evaluated but tensors and sizes. Raises MirError for a file that cannot be
    read, is not such a program, is damaged, or contains Python objects.
    """
    from .tensors import require_torch

    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise MirError(Diagnostic(f"{path} cannot be read: {error.strerror or error}")) from None
    torch = require_torch()
    _check(path, data, torch)
    log = logging.getLogger("torch.export")
    level = log.level
    log.setLevel(logging.CRITICAL)  # The error says what torch would log with a traceback.
    try:
        return torch.export.load(io.BytesIO(data))
    except Exception as error:
        # Of whatever kind: torch checks a file's fields by assertions and look-ups.
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise _wrong(path, f"torch {torch.__version__} cannot read it: {reason}") from None
    finally:
        log.setLevel(level)


def _wrong(
    path: str, reason: str, note: str = "torch.export.save(program, 'model.pt2') writes such a file"
) -> MirError:
    return MirError(Diagnostic(f"{path} is not a program of torch.export: {reason}").with_note(note))


def _check(path: str, data: bytes, torch: Any) -> None:
    """Raises MirError where a file is damaged, or where reading it could run code."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
        damaged = archive.testzip()
    except Exception as error:
        # zipfile raises many kinds for damaged archives, zlib's and struct's among them.
        reason = "the file is empty" if not data else f"the zip archive is damaged: {error}"
        raise _wrong(path, "it is not a zip archive" if data and data[:2] != b"PK" else reason) from None
    if damaged is not None:
        raise _wrong(path, f"the zip archive is damaged: {damaged} does not have its checksum")
    names = [each.partition("/")[2] for each in archive.namelist()]
    models = [each for each in names if re.fullmatch(r"models/[^/]+\.json", each)]
    if len(models) != 1:
        kind = "code that AOTInductor compiled" if any(each.startswith("data/aotinductor/") for each in names) else ""
        found = f"it contains {len(models)} programs" if models else f"it contains {kind or 'no program'}"
        raise _wrong(path, found)
    members = {name: full for name, full in zip(names, archive.namelist(), strict=True)}
    for name, full in members.items():
        if name.endswith(("_weights_config.json", "_constants_config.json")):
            for tensor, about in _json(path, archive, full).get("config", {}).items():
                if not isinstance(about, Mapping) or cast("Mapping[str, Any]", about).get("use_pickle") is not False:
                    raise _wrong(
                        path,
                        f"'{tensor}' is a Python object, which could run code when it is read",
                        "only tensors are read: make them plain before the export, .contiguous().detach()",
                    )
        elif name.startswith("data/sample_inputs/"):
            try:
                torch.load(io.BytesIO(archive.read(full)), weights_only=True)
            except Exception:
                # Of whatever kind: where this fails, torch.export.load would unpickle anything.
                raise _wrong(path, "its sample inputs are not tensors and numbers alone") from None
    for text in _texts(_json(path, archive, members[models[0]])):
        reason = _unsafe(*text)
        if reason:
            raise _wrong(path, reason)


def _json(path: str, archive: zipfile.ZipFile, name: str) -> dict[str, Any]:
    try:
        found = json.loads(archive.read(name))
    except (ValueError, RecursionError) as error:
        raise _wrong(path, f"{name} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise _wrong(path, f"{name} is not an object of JSON")
    return cast("dict[str, Any]", found)


def _texts(tree: Any) -> Iterator[tuple[str, str]]:
    """Yields what torch evaluates or looks up: expressions of sizes and targets of calls, by their keys."""
    left = [tree]
    while left:
        value = left.pop()
        if isinstance(value, list):
            left += cast("list[Any]", value)
        elif isinstance(value, dict):
            for key, each in cast("dict[str, Any]", value).items():
                if key in ("expr_str", "target") and isinstance(each, str):
                    yield key, each
                else:
                    left.append(each)


_TARGET = re.compile(r"(torch\.(ops(\.\w+){2,3}|sym_\w+)|_operator\.[a-z_]+|math\.[a-z]+|#?\w+)")
"""Calls of operators, and of arithmetic of sizes."""

_SYMBOL = re.compile(r"Symbol\('\w+'")
_NUMBER = re.compile(r"\d+(\.\d*)?(e[-+]?\d+)?|'-?[\d.e+-]+'")
_NAME = re.compile(r"[A-Za-z_]\w*")
_ASSUMPTIONS = frozenset({"positive", "integer", "nonnegative", "real", "finite", "nonzero", "precision", "evaluate"})


def _unsafe(key: str, text: str) -> str | None:
    """Returns why a text is refused; None for a target that is an operator, and the expression of a size.

    SymPy evaluates expressions: they are of its classes, numbers and names alone.
    """
    if key == "target":
        # A weight's name is under this key, too, which torch only looks up in a dictionary.
        return None if _TARGET.fullmatch(text) or not text.startswith(("torch", "math", "_operator", "#")) else (
            f"it calls {text}, which is not an operator"
        )  # fmt: skip
    rest = _NUMBER.sub("0", _SYMBOL.sub("Symbol(", text))
    names = _NAME.findall(rest)
    known = all(each in _ASSUMPTIONS or re.fullmatch(r"[A-Z][A-Za-z]*|[a-z]+\d+", each) for each in names)
    return (
        None if known and re.fullmatch(r"[\w\s(),=+*/%<>&|-]*", rest) else f"{text!r} is not the expression of a size"
    )
