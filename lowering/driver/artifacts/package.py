"""Reads and writes packages, `net.mirpkg`: a program's machine code and weights.

    magic, format, length of the header, SHA-256 of the header      48 bytes
    the header                                                       JSON, up to a multiple of 64 bytes
    machine code and weights                                         each at a multiple of 64 bytes

The header names the start, the length and the SHA-256 of every part, what each level of machine code needs of a processor, and the program
as data (`program.py`). Levels share weights. A package is read only where all of it is as it was written; it holds machine code, so that it
is to be trusted as a program is (docs/security.md). The same program, options and version of mirstack make the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import struct
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....dialects.array_box import ArrayBox, numpy_dtype
from ....support.diagnostics import Diagnostic, MirError
from ....support.parallel import in_threads
from ....support.target import Target, missing_here
from ....support.text import counted
from ..program import DYNAMIC, KernelProgram, Program, RelayProgram, Tree, of_tree_json
from ..segments import ALIGNMENT, Segments

if TYPE_CHECKING:
    from ..loading.executable import Executable

ENDING = ".mirpkg"
MAGIC = b"MIRPKG\r\n"
FORMAT = 1
"""The version of the format, and of how machine code is called: one that is newer than this is refused."""
START = struct.Struct("<8sII32s")
MOST_HEADER = 1 << 28


@dataclass(frozen=True)
class Level:
    """The program compiled for one processor."""

    target: Target
    triple: str
    program: Program


@dataclass(frozen=True)
class Package:
    """A package as it was read: what its header says, and its bytes."""

    path: Path
    header: Mapping[str, Any]
    body: memoryview


def write_package(path: Path, levels: Sequence[Level], threads: int | None, version: str) -> None:
    """Writes a package. Raises MirError for a file that cannot be written."""
    segments = Segments()
    arrays: dict[bytes, list[Any]] = {}

    def number_of(box: ArrayBox) -> int:
        found = arrays.get(box.digest)
        if found is None:
            data = box.array.reshape(-1).view("uint8").data
            found = arrays[box.digest] = [len(arrays), box.dtype, list(box.shape), _part(segments, data, box.contents)]
        return int(found[0])

    described: list[dict[str, Any]] = []
    for level in levels:
        program = level.program
        described.append(
            {
                "cpu": level.target.name,
                "arch": level.target.arch,
                "vector_bytes": level.target.vector_bytes,
                "features": sorted(level.target.features),
                "triple": level.triple,
                "relay": isinstance(program, RelayProgram),
                "program": program.to_json(),
                "objects": [_part(segments, data) for data in program.objects],
                "constants": [number_of(box) for box in program.constants] if isinstance(program, RelayProgram) else [],
            }
        )
    header: dict[str, Any] = {
        "mirstack": version,
        "system": sys.platform,
        "threads": threads,
        "levels": described,
        "arrays": [about[1:] for about in arrays.values()],
    }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(START.size + len(text)) % ALIGNMENT)
    start = START.pack(MAGIC, FORMAT, len(text), hashlib.sha256(text).digest())
    try:
        with path.open("wb") as file:
            for part in (start, text, *segments.parts):
                file.write(part)
    except OSError as error:
        raise MirError(Diagnostic(f"{path}: cannot be written: {error.strerror or error}")) from None


def _part(segments: Segments, data: bytes | memoryview, hashed: bytes | None = None) -> list[Any]:
    """Adds a part; returns its start, its length and its SHA-256."""
    return [*segments.add(data), (hashed or hashlib.sha256(data).digest()).hex()]


def read_package(path: Path) -> Package:
    """Reads a package and checks every byte of it. Raises MirError for one that is not as it was written."""
    try:
        data = memoryview(path.read_bytes())
    except OSError as error:
        raise MirError(Diagnostic(f"{path}: cannot be read: {error.strerror or error}")) from None
    if len(data) < START.size or bytes(data[: len(MAGIC)]) != MAGIC:
        raise refused(path, "is not a package of mirstack", "mir-build FILE -o net.mirpkg writes one")
    _, format, length, hashed = START.unpack(data[: START.size])
    if format != FORMAT:
        raise refused(
            path,
            f"is of format {format}, and this version of mirstack reads format {FORMAT}",
            "build it again with this version, or install the version that it was built with",
        )
    text, body = data[START.size : START.size + length], data[START.size + length :]
    if length > MOST_HEADER or len(text) != length or hashlib.sha256(text).digest() != hashed:
        raise refused(path, "is damaged or incomplete", "its header is not what was written: copy or build it again")
    try:
        header: dict[str, Any] = json.loads(bytes(text))
        whole = _is_whole(header, body)
    except (KeyError, TypeError, ValueError, RecursionError):
        whole, header = False, {}
    if not whole:
        raise refused(path, "is damaged or incomplete", "a part of it is not what was written: copy or build it again")
    return Package(path, header, body)


def _is_whole(header: Mapping[str, Any], body: memoryview) -> bool:
    """Returns whether all parts that a header names are as they were written, and nothing else is there."""
    parts: list[Sequence[Any]] = [part for level in header["levels"] for part in level["objects"]]
    parts += [part for *_, part in header["arrays"]]
    end = max((start + length for start, length, _ in parts), default=0)
    # Hashing does not hold the interpreter's lock.
    return len(body) == end + -end % ALIGNMENT and all(in_threads(lambda part: _is_right(body, part), parts))


def _is_right(body: memoryview, part: Sequence[Any]) -> bool:
    start, length, hashed = part
    padding = body[start + length : start + length + -length % ALIGNMENT]
    return hashlib.sha256(body[start : start + length]).hexdigest() == hashed and not any(padding)


def refused(path: Path, what: str, note: str) -> MirError:
    """Returns the error for a package that is not loaded."""
    return MirError(Diagnostic(f"{path}: {what}").with_note(note))


def load_package(path: Path, threads: int | None = None) -> Executable:
    """Returns the program of a package, of its levels the best that runs here.

    `threads` bounds those of parallel loops; by default they are those that it was built for, or all cores. Raises MirError for a file
    that is not a whole package, and where no level runs here.
    """
    from ...options import Options
    from ..loading.load_program import load_program

    package = read_package(path)
    with _as_written(path):
        program = program_of(package, choose(package))
        options = Options(threads=threads or package.header["threads"])
    return load_program(program, options)


@contextmanager
def _as_written(path: Path) -> Generator[None]:
    """Raises MirError where a header is not one of `write_package`, though its checksum is right."""
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError, IndexError) as error:
        raise refused(path, "is not a package that mirstack wrote", f"its header says {error}") from None


def choose(package: Package) -> Mapping[str, Any]:
    """Returns the best level that runs here: that with the widest vectors, and the most features.

    Raises MirError where none runs here.
    """
    header = package.header
    if header["system"] != sys.platform:
        raise refused(
            package.path,
            f"was built for the system '{header['system']}', and this is '{sys.platform}'",
            "build it here",
        )
    ranked = sorted(header["levels"], key=lambda level: (level["vector_bytes"], len(level["features"])), reverse=True)
    reasons: list[str] = []
    for level in ranked:
        lacks = missing_here(level["arch"], level["vector_bytes"], frozenset(level["features"]))
        if lacks is None:
            return level
        reasons.append(f"{level['cpu']}: {lacks}")
    raise refused(
        package.path,
        "has no code that runs on this machine",
        "; ".join(reasons) + "; build it with --mcpu for a lesser processor, such as x86-64-v3",
    )


def program_of(package: Package, level: Mapping[str, Any]) -> Program:
    """Returns the program of a level; its weights are in the package's memory."""
    import numpy as np

    def box_of(number: int) -> ArrayBox:
        dtype, shape, part = package.header["arrays"][number]
        return ArrayBox(np.frombuffer(_bytes_of(package, part), numpy_dtype(dtype)).reshape(shape))

    objects = [bytes(_bytes_of(package, part)) for part in level["objects"]]
    if not level["relay"]:
        return KernelProgram.of_json(level["program"], objects)
    return RelayProgram.of_json(level["program"], list(map(box_of, level["constants"])), objects)


def _bytes_of(package: Package, part: Sequence[Any]) -> memoryview:
    return package.body[part[0] : part[0] + part[1]]


def describe(package: Package) -> str:
    """Returns what a package holds, as text: what `mir-opt net.mirpkg` prints."""
    with _as_written(package.path):
        return "\n".join(_described(package)) + "\n"


def _described(package: Package) -> Iterator[str]:
    header = package.header
    arrays: list[Sequence[Any]] = header["arrays"]
    yield f"// {package.path.name}: built by mirstack {header['mirstack']} for {header['system']}"
    yield f"// {counted(len(arrays), 'array')} of {counted(sum(part[1] for *_, part in arrays), 'byte')}"
    for level in header["levels"]:
        size = sum(length for _, length, _ in level["objects"])
        parts = [level["arch"], f"vectors of {counted(level['vector_bytes'], 'byte')}", *level["features"]]
        yield f"// level {level['cpu']} ({', '.join(parts)}): {counted(size, 'byte')} of objects"
    level = header["levels"][0]
    program = level["program"]
    if not level["relay"]:
        yield f"// entry {program['entry']} ({program['kind']})"
        for param in program["params"]:
            yield f"//   {param['name']}: {param['dtype']}{param.get('shape', '')}"
        return
    yield f"// entry {program['entry']} (relay), {counted(program['memory'][0], 'byte')} of memory for a call"
    for name, tree in program["params"]:
        yield f"//   {name}: {_shown(of_tree_json(tree))}"
    names = f" {', '.join(program['result_names'])}" if program["result_names"] else ""
    yield f"// result{names}: {_shown(of_tree_json(program['result']))}"


def _shown(tree: Tree) -> str:
    if isinstance(tree, tuple):
        return f"({', '.join(map(_shown, tree))})"
    shape = ", ".join("?" if extent == DYNAMIC else str(extent) for extent in tree.shape)
    return f"Tensor[({shape}), {tree.dtype}]"
