"""The text of a program: read from a file, parsed and verified, and found again for messages."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from weakref import WeakKeyDictionary

from ...support.deep_stack import in_deep_stack
from ...support.diagnostics import Diagnostic, MirError, Sources
from ...support.external_names import names_one
from ...support.garbage import no_collection
from ...support.source_text import source_text
from ...support.xdsl_patches import apply

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from .cache.file_digests import FileDigests, NamedArray

TargetName = Literal["cpu", "interp"]
"""What runs a program: native code, or the interpreters."""


class ProgramSource(ABC):
    """A program in files, which is read only if the cache does not have what it compiles to."""

    name: str
    """Of the file, in messages."""

    @abstractmethod
    def parse(self) -> ModuleOp:
        """Returns the verified module. Raises MirError with everything that is wrong in it."""

    @abstractmethod
    def key(self, digests: FileDigests) -> tuple[str, Sequence[NamedArray]] | None:
        """Returns the key of all that is read: a text, and the arrays that may be constants of a program.

        None where the program is not to be cached.
        """


@dataclass(frozen=True)
class SourceText(ProgramSource):
    """A `.mir` text with its name in messages, and the directory of its side files of constants."""

    text: str
    name: str
    directory: Path | None

    @staticmethod
    def of_file(path: str | PathLike[str]) -> SourceText:
        """Returns the text of a file. Raises MirError where it cannot be read."""
        if not str(path):
            raise MirError(Diagnostic("compile takes the path of a file, or a program, and this is the empty text"))
        if isinstance(path, str) and is_program_text(path):
            raise MirError(
                Diagnostic("this is the text of a program, and not the path of a file").with_note(
                    "mirstack.parse(text) reads a text, mirstack.compile(text) compiles it"
                )
            )
        file = Path(path)
        try:
            text = source_text(file.read_bytes())
        except UnicodeDecodeError:
            raise MirError(Diagnostic(f"{file} cannot be read: it is not UTF-8 text")) from None
        except (OSError, ValueError) as exception:
            reason = exception.strerror if isinstance(exception, OSError) else str(exception)
            raise MirError(Diagnostic(f"{file} cannot be read: {reason}")) from None
        return SourceText(text, str(path), file.parent)

    @no_collection()
    def parse(self, init: ModuleOp | None = None, nodes: Mapping[str, Sequence[object]] | None = None) -> ModuleOp:
        """Returns the verified module, which begins with the ops of `init`.

        The text may use these, and `nodes` as metadata. Raises MirError with everything that is wrong in the text.
        """
        apply()
        from ...parser import parse_mir
        from ...passes.extensions.packages import load_packages

        load_packages()
        from ...support.verify import verify

        sources = Sources()
        sources.add(self.name, self.text)
        folder = None if self.directory is None else str(self.directory)

        def verified() -> ModuleOp:
            module = parse_mir(self.text, self.name, directory=folder, init=init, nodes=nodes)
            verify(module)
            check_functions(module)
            return module

        with sources.reading():
            module = in_deep_stack(verified)
        _PARSED[module] = sources
        return module

    def key(self, digests: FileDigests) -> tuple[str, Sequence[NamedArray]] | None:
        """Returns the text and its side files' arrays; None if one cannot be read, or with code from outside."""
        if names_one(self.text):
            return None
        arrays: list[NamedArray] = []
        listed: list[str] = []
        for side in sorted(set(_SIDE_FILE.findall(self.text))):
            path = None if self.directory is None else self.directory / side
            if path is None or not path.is_file():
                continue
            # Here, since a text without side files does not need it.
            from ...dialects.side_file import SideFile

            try:
                file = SideFile(path)
                arrays += digests.of_arrays(file)
            except (OSError, ValueError):
                return None
            listed.append(json.dumps([side, list(file.names())]))
        return "\n".join(["mir", self.name, *listed, self.text]), arrays


def is_program_text(text: str) -> bool:
    """Returns whether a text is a program's, and not the path of a file."""
    return any(sign in text for sign in ("\n", "{", "def @"))


_SIDE_FILE = re.compile(r'constants\s*=\s*"([^"\n]+)"')

_PARSED: WeakKeyDictionary[ModuleOp, Sources] = WeakKeyDictionary()
"""The text of each module that was parsed and is still there: an error in compiling it is shown in this text."""


def sources_of(source: object) -> Sources:
    """Returns the text of a program that is to be compiled; no text where it is not known."""
    sources = Sources()
    if isinstance(source, SourceText):
        sources.add(source.name, source.text)
        return sources
    from xdsl.dialects.builtin import ModuleOp

    return _PARSED.get(source, sources) if isinstance(source, ModuleOp) else sources


def check_functions(module: ModuleOp, *, runs: bool = False) -> None:
    """Verifies the rules across the ops of a TIR function; with `runs` also those for programs to be run.

    Raises MirError with all that is broken; warnings go to the current sources.
    """
    if any(op.name == "tir.prim_func" for op in module.ops):
        from ...dialects.tir.verify import check_module

        check_module(module, runs=runs)
