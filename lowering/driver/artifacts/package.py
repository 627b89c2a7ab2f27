"""Reads and writes packages, `net.mirpkg`: a program's machine code and weights.

    magic, format, length of the header, SHA-256 of the header      48 bytes
    the header                                                       JSON, up to the start of a page
    machine code                                                     each object at a multiple of 64 bytes
    weights, as the code reads them                                  from the start of a page; mapped

The header names the start and the length of every part, the SHA-256 of every object, the checksums of the weights (`stripe_checksum.py`),
what each level of machine code needs of a processor, and the program as data (`program.py`). Levels share weights where these have the same
bytes. A package is read only where all of it is as it was written; it holds machine code, so that it is to be trusted as a program is
(docs/security.md). The same program, options and version of mirstack make the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import struct
import sys
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from ....dialects.array_box import ArrayBox, numpy_dtype
from ....support.diagnostics import Diagnostic, MirError
from ....support.target import Target, missing_here
from ....support.text import counted
from ..program import DYNAMIC, KernelProgram, Program, RelayProgram, Tree, of_tree_json
from ..segments import ALIGNMENT, PAGE, Segments, segment_of
from . import stripe_checksum

if TYPE_CHECKING:
    from ..loading.executable import Executable

ENDING = ".mirpkg"
MAGIC = b"MIRPKG\r\n"
FORMAT = 2
"""The version of the format, and of how machine code is called: one that is newer than this is refused."""
START = struct.Struct("<8sII32s")
END = struct.Struct("<8sQ")
END_MAGIC = b"MIRPKGAT"
"""The end of a file that holds a package after something else, such as a shared library: and then where the package starts."""
MOST_HEADER = 1 << 28


@dataclass(frozen=True)
class Level:
    """The program compiled for one processor."""

    target: Target
    triple: str
    program: Program
    checksum: bytes
    """The object file of the checksum of weights."""


@dataclass(frozen=True)
class Package:
    """A package as it was read: its header, machine code, and weights, which are not checked yet."""

    path: Path
    header: Mapping[str, Any]
    code: memoryview
    weights: memoryview

    def check(self, sums: stripe_checksum.Sums) -> None:
        """Raises MirError unless the weights are as they were written."""
        if stripe_checksum.checksums(self.weights, sums) != self.header["checksums"]:
            raise damaged(self.path)


def write_package(path: Path, levels: Sequence[Level], threads: int | None, version: str) -> None:
    """Writes a package. Raises MirError for a file that cannot be written."""
    code, weights = Segments(), Segments()
    arrays: dict[bytes, list[Any]] = {}

    def numbers_of(boxes: Iterable[ArrayBox]) -> list[int]:
        numbers: list[int] = []
        for box in boxes:
            found = arrays.get(box.digest)
            if found is None:
                place = weights.add(box.array.reshape(-1).view("uint8").data)
                found = arrays[box.digest] = [len(arrays), box.dtype, list(box.shape), place]
            numbers.append(int(found[0]))
        return numbers

    described: list[dict[str, Any]] = []
    for level in levels:
        program = level.program
        relay = isinstance(program, RelayProgram)
        described.append(
            {
                "cpu": level.target.name,
                "arch": level.target.arch,
                "vector_bytes": level.target.vector_bytes,
                "features": sorted(level.target.features),
                "triple": level.triple,
                "relay": relay,
                "program": program.to_json(),
                "objects": [_part(code, data) for data in (*program.objects, level.checksum)],
                "constants": numbers_of(program.constants) if relay else [],
                "contents": numbers_of(program.contents) if relay else [],
            }
        )
    code.fill(PAGE)
    weights.fill(PAGE)
    data = memoryview(b"".join(weights.parts))
    header: dict[str, Any] = {
        "mirstack": version,
        "system": sys.platform,
        "threads": threads,
        "levels": described,
        "arrays": [about[1:] for about in arrays.values()],
        "bytes": [code.end, weights.end],
        "checksums": stripe_checksum.checksums(data, stripe_checksum.own_function()),
    }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(START.size + len(text)) % PAGE)
    start = START.pack(MAGIC, FORMAT, len(text), hashlib.sha256(text).digest())
    _write(path, (start, text, *code.parts, data))


def append_package(path: Path, write: Callable[[Path], object]) -> None:
    """Appends a package to a file, such as a shared library, from which `read_package` then reads it.

    `write` writes the package to the path that it gets. Raises MirError for a file that cannot be written.
    """
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder, f"program{ENDING}")
        write(package)
        first, second = path.read_bytes(), package.read_bytes()
    padding = bytes(-len(first) % PAGE)
    _write(path, (first, padding, second, END.pack(END_MAGIC, len(first) + len(padding))))


def _write(path: Path, parts: Sequence[bytes | bytearray | memoryview]) -> None:
    """Writes a file beside its place and renames it: who has mapped the one that was there keeps it."""
    try:
        if path.exists() and not path.is_file():
            with path.open("wb") as file:
                file.writelines(parts)
            return
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.writelines(parts)
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(temporary, 0o666 & ~mask)
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
    except OSError as error:
        raise MirError(Diagnostic(f"{path}: cannot be written: {error.strerror or error}")) from None


def _part(segments: Segments, data: bytes) -> list[Any]:
    """Adds a part; returns its start, its length and its SHA-256."""
    return [*segments.add(data), hashlib.sha256(data).hexdigest()]


def read_package(path: Path) -> Package:
    """Reads a package and checks all but its weights.

    Raises MirError for one that is not as it was written.
    """
    try:
        with path.open("rb") as file:
            return _read(path, file)
    except OSError as error:
        raise MirError(Diagnostic(f"{path}: cannot be read: {error.strerror or error}")) from None


def _read(path: Path, file: BinaryIO) -> Package:
    base, end = _place(file)
    file.seek(base)
    start = file.read(START.size)
    if len(start) < START.size or start[: len(MAGIC)] != MAGIC:
        raise refused(path, "is not a package of mirstack", "mir-build FILE -o net.mirpkg writes one")
    _, format, length, hashed = START.unpack(start)
    if format != FORMAT:
        raise refused(
            path,
            f"is of format {format}, and this version of mirstack reads format {FORMAT}",
            "build it again with this version, or install the version that it was built with",
        )
    text = file.read(length) if length <= MOST_HEADER else b""
    if len(text) != length or hashlib.sha256(text).digest() != hashed:
        raise damaged(path)
    try:
        header: dict[str, Any] = json.loads(text)
        of_code, of_weights = header["bytes"]
        begin = base + START.size + length
        whole = end == begin + of_code + of_weights
        code = memoryview(file.read(of_code) if whole else b"")
        whole = whole and _is_whole(header, code)
    except (KeyError, TypeError, ValueError, RecursionError, OverflowError):
        raise damaged(path) from None
    if not whole:
        raise damaged(path)
    weights = memoryview(b"")
    if of_weights:
        # With all its pages in the table at once: else each is found missing, which takes longer than to check it.
        flags = mmap.MAP_PRIVATE | getattr(mmap, "MAP_POPULATE", 0)
        weights = memoryview(mmap.mmap(file.fileno(), 0, flags, mmap.PROT_READ))[begin + of_code : end]
    return Package(path, header, code, weights)


def _place(file: BinaryIO) -> tuple[int, int]:
    """Returns where the package of a file starts and ends: all of the file, or what was appended to it."""
    size = os.fstat(file.fileno()).st_size
    if file.read(len(MAGIC)) != MAGIC and size > END.size:
        file.seek(size - END.size)
        magic, start = END.unpack(file.read(END.size))
        if magic == END_MAGIC and start < size:
            return start, size - END.size
    return 0, size


def _is_whole(header: Mapping[str, Any], code: memoryview) -> bool:
    """Returns whether the objects that a header names are as they were written, and nothing else is there."""
    parts: list[Sequence[Any]] = [part for level in header["levels"] for part in level["objects"]]
    end = max((start + length for start, length, _ in parts), default=0)
    return len(code) == end + -end % PAGE and all(_is_right(code, part) for part in parts) and not any(code[end:])


def _is_right(code: memoryview, part: Sequence[Any]) -> bool:
    start, length, hashed = part
    padding = code[start + length : start + length + -length % ALIGNMENT]
    return hashlib.sha256(code[start : start + length]).hexdigest() == hashed and not any(padding)


def damaged(path: Path) -> MirError:
    """Returns the error for a package that is not as it was written."""
    return refused(path, "is damaged or incomplete", "a part of it is not what was written: copy or build it again")


def refused(path: Path, what: str, note: str) -> MirError:
    """Returns the error for a package that is not loaded."""
    return MirError(Diagnostic(f"{path}: {what}").with_note(note))


def load_package(path: Path, threads: int | None = None) -> Executable:
    """Returns the program of a package, of its levels the best that runs here.

    `threads` bounds those of parallel loops; by default they are those that it was built for, or all cores. Raises MirError for a file
    that is not a whole package, and where no level runs here.
    """
    from ...llvm.jit.load import CompiledModule, keep_shipped
    from ...options import Options
    from ..cache.store import Store
    from ..loading.load_program import load_program

    if (store := Store.open()) is not None:
        keep_shipped(store)
    package = read_package(path)
    with _as_written(path):
        program = program_of(package, choose(package))
        options = Options(threads=threads or package.header["threads"])

    def check(code: CompiledModule) -> None:
        package.check(stripe_checksum.function_at(code.address(stripe_checksum.SYMBOL)))

    return load_program(program, options, check)


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
        dtype, shape, place = package.header["arrays"][number]
        return ArrayBox(np.frombuffer(segment_of(package.weights, place), numpy_dtype(dtype)).reshape(shape))

    objects = [bytes(segment_of(package.code, part[:2])) for part in level["objects"]]
    if not level["relay"]:
        return KernelProgram.of_json(level["program"], objects)
    constants, contents = ([box_of(number) for number in level[key]] for key in ("constants", "contents"))
    return RelayProgram.of_json(level["program"], constants, objects, contents)


def describe(package: Package) -> str:
    """Returns what a package holds, as text: what `mir-opt net.mirpkg` prints.

    Raises MirError for damaged weights.
    """
    package.check(stripe_checksum.own_function())
    with _as_written(package.path):
        return "\n".join(_described(package)) + "\n"


def _described(package: Package) -> Iterator[str]:
    header = package.header
    arrays: list[Sequence[Any]] = header["arrays"]
    yield f"// {package.path.name}: built by mirstack {header['mirstack']} for {header['system']}"
    yield f"// {counted(len(arrays), 'array')} of {counted(sum(place[1] for *_, place in arrays), 'byte')}"
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
