"""`mirstack.compile` of a file or a module to an executable; `parse`, `load` and `preload`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ..lowering.driver.preload import preload
from ..lowering.driver.program import DYNAMIC
from ..lowering.driver.source import ProgramSource, SourceText, TargetName, is_program_text, sources_of
from ..support.arguments import Files, check, files_of, integer, items
from ..support.deep_stack import in_deep_stack
from ..support.diagnostics import MirError, error_at, file_loc
from ..support.garbage import no_collection
from ..support.short_tracebacks import short_traceback
from ..support.source_text import source_text, where_not_utf8
from ..support.xdsl_patches import apply
from .program_kinds import module_of

if TYPE_CHECKING:
    # A program from the cache needs no xDSL, whose import takes longer than all else.
    from xdsl.dialects.builtin import ModuleOp

    from ..dialects.te.tensor import Tensor
    from ..dialects.tir.node import Var
    from ..lowering.pipeline import Observer
    from .executable import Executable
    from .ir.module import IRModule
    from .program_kinds import Program

__all__ = ["TargetName", "compile", "load", "parse", "preload"]


@short_traceback
def parse(text: str, name: str = "<string>", *, directory: str | PathLike[str] | None = None) -> ModuleOp:
    """Parses a `.mir` text to a module, typed and verified; an empty text is an empty module.

    `name` is the file's name in messages; `directory` is where side files of constants are looked for. Raises MirError
    with every error of the text.
    """
    return parse_into(text, name, directory)


def parse_into(
    text: str,
    name: str,
    directory: str | PathLike[str] | None = None,
    init: ModuleOp | None = None,
    nodes: Mapping[str, Sequence[object]] | None = None,
) -> ModuleOp:
    """Parses a text as `parse` does to a module that begins with a copy of `init`.

    The text may use its names; `nodes` are arrays and attributes that the text calls `meta[KEY][i]`.
    """
    if not isinstance(cast("object", text), str | bytes):
        raise TypeError(f"parse takes the text of a program as a str, not {type(text).__name__}")
    check(name, "name", "the name of a file, for messages", str)
    if directory is not None:
        check(directory, "directory", "the path of a folder", str, PathLike)
    try:
        text = source_text(text)
    except UnicodeDecodeError as error:
        line, column, message = where_not_utf8(error.object, error)
        raise error_at(file_loc(name, line, column), message.removeprefix("is ")) from None
    return SourceText(text, name, None if directory is None else Path(directory)).parse(init, nodes)


@short_traceback
def load(path: str | PathLike[str]) -> ModuleOp:
    """Returns the module in a `.mir`, `.onnx` or `.pt2` file. Raises MirError for a file that is wrong."""
    check(path, "path", "the path of a file", str, PathLike)
    return _source(path).parse()


def _source(
    path: str | PathLike[str], shapes: Mapping[str, Sequence[int]] | None = None, custom: Files = ()
) -> ProgramSource:
    """Returns a file by its extension; `shapes` are those of a model, `custom` those of an ONNX model."""
    from ..frontends.model_file import model_file

    return model_file(path, shapes, files_of(custom)) or SourceText.of_file(path)


def _read(source: object, args: Sequence[Any] | None, shapes: Mapping[str, Sequence[int]], custom: Files) -> Any:
    """Returns what is compiled: the source of a path or a text, or a module."""
    is_text = isinstance(source, str) and is_program_text(source)
    if isinstance(source, str | PathLike) and not is_text and args is None:
        return _source(cast("str", source), shapes, custom)
    _no_custom(custom)
    if is_text and args is None:
        return SourceText(source_text(cast("str", source)), "<string>", None)
    apply()
    return module_of(source, args)


def _no_custom(custom: Files) -> None:
    """Raises TypeError for functions of custom operators that nothing would call."""
    if files_of(custom):
        raise TypeError("custom holds operators of an ONNX file; other programs have their functions in themselves")


@short_traceback
@no_collection()
def compile(
    source: str | PathLike[str] | Program,
    target: TargetName = "cpu",
    *,
    args: Sequence[Tensor | Var] | None = None,
    entry: str | None = None,
    threads: int | None = None,
    opt_level: int = 3,
    cpu: str | None = None,
    caches: str = "",
    allow_extern: Iterable[str] = (),
    strict_math: bool = False,
    observers: Iterable[Observer] = (),
    cache: bool = True,
    shapes: Mapping[str, Sequence[int | str | None]] | None = None,
    specialize: bool = True,
    custom: Files = (),
    profile: bool = False,
    debug_info: bool = False,
) -> Executable:
    """Compiles an entry of a program to an executable, called with arrays in order or by name.

    `source` is the path of a `.mir`, `.onnx` or `.pt2` file, the text of a program, or a program in memory: a module (xDSL's or an
    `IRModule`), a function or expression of Relay, a `PrimFunc`, a schedule of TIR, a schedule of TE with its parameters as `args`. It is not changed.
    `target` is "cpu" for native code or "interp" for the interpreters. `entry` names the function; by default the only
    one, otherwise `main`. `threads` bounds the threads of parallel loops (all cores by default), `opt_level` is 0 to 3, `cpu`
    LLVM's name of the processor (this one by default), `caches` the sizes of its data caches that schedules count on
    (`"32K,1M,16M"`; the known ones by default). With `strict_math` floats are computed as the interpreter computes them, except
    for the order of sums (docs/rules.md). `allow_extern` names C functions that the program may call besides
    C's mathematics (docs/security.md). `observers` are called after each pass with the pass and the
    module that it ran on: each kernel is a module of its own. With `cache`, and without observers, compiled code is read from
    the cache on disk, or stored there (`lowering.driver.cache`). `shapes` fixes open dimensions of parameters, `{"x": (1, 3, 224, 224)}`;
    `None` or `"?"` leaves one open. With `specialize`, sizes of open dimensions that calls often have get code of their own, which a process
    beside compiles (docs/compile-time.md, "Open sizes"). `custom` are files of TE and TIR functions for an ONNX file's own operators, as
    `from_onnx` takes them. With `profile` the program records when its kernels run, for `Executable.profile` (docs/see-inside.md); sizes of
    open dimensions then get no code of their own. With `debug_info` machine code carries the lines of the source, for debuggers.
    Raises MirError for a program that cannot be compiled, or would not run here.
    """
    if target not in ("cpu", "interp"):
        raise ValueError(f"there is no target '{target}'; the targets are cpu and interp")
    opt_level = integer(opt_level, "opt_level", 0, 3)
    if threads is not None:
        threads = integer(threads, "threads", 1)
    if entry is not None:
        check(entry, "entry", "the name of a function", str)
    if cpu is not None:
        check(cpu, "cpu", "LLVM's name of a processor, such as 'haswell'", str)
    check(caches, "caches", "a text of sizes, such as '32K,1M,16M'", str)
    check(strict_math, "strict_math", "True or False", bool)
    check(cache, "cache", "True or False", bool)
    check(specialize, "specialize", "True or False", bool)
    check(profile, "profile", "True or False", bool)
    check(debug_info, "debug_info", "True or False", bool)
    fixed = _shapes(shapes)
    observers = tuple(items(observers, "observers", "functions of a pass and a module", cast("type", Callable)))

    from ..lowering.driver.compile import compile_source
    from ..lowering.options import Options

    options = Options(
        opt_level=opt_level,
        cpu=cpu,
        threads=threads,
        caches=caches,
        allow_extern=_extern_names(allow_extern),
        strict_math=strict_math,
        profile=profile,
        debug_info=debug_info,
    )
    read: ProgramSource | ModuleOp | IRModule = _read(source, args, fixed, custom)
    if isinstance(read, ProgramSource) and not isinstance(read, SourceText):
        fixed = {}

    def exporter(path: Path, cpus: tuple[str, ...], weights: Path | None) -> list[Path]:
        from ..lowering.driver.artifacts.export import export
        from ..lowering.driver.artifacts.levels import Wanted

        taken = read if isinstance(read, ProgramSource) else _copied(read)
        # What records kernels is a part of this process.
        wanted = Wanted(taken, entry, replace(options, profile=False), fixed, cpus or (cpu,))
        return in_deep_stack(lambda: export(wanted, path, weights))

    def compiled() -> Executable:
        taken = read if isinstance(read, ProgramSource) else _copied(read)
        return compile_source(
            taken, target, entry, options, observers, cache=cache, shapes=fixed, specialize=specialize
        )

    try:
        executable = in_deep_stack(compiled)
    except MirError as error:
        if target == "cpu":
            error.show_in(sources_of(read))
        raise
    if target == "cpu":
        executable.exporter = exporter
    return executable


def _shapes(shapes: Mapping[str, Sequence[int | str | None]] | None) -> dict[str, tuple[int, ...]]:
    """Returns checked shapes with DYNAMIC for dimensions that stay open."""
    if shapes is None:
        return {}
    check(shapes, "shapes", "a dictionary of shapes by the names of parameters, such as {'x': (1, 3)}", Mapping)
    found: dict[str, tuple[int, ...]] = {}
    for name, shape in shapes.items():
        check(name, "a name in shapes", "the name of a parameter", str)
        sizes = items(shape, f"the shape of {name}", "sizes")
        found[name] = tuple(
            DYNAMIC if size is None or size == "?" else integer(cast("int", size), f"a size of {name}", 0)
            for size in sizes
        )
    return found


def _extern_names(names: Iterable[str]) -> tuple[str, ...]:
    """Returns the names of C functions that a program may call; usually none, which imports nothing."""
    if names == ():
        return ()
    from ..lowering.externs import names_of

    return names_of(names)


def _copied(source: ModuleOp | IRModule) -> ModuleOp:
    """Returns a copy of a module to compile."""
    apply()
    from xdsl.dialects.builtin import ModuleOp

    if isinstance(source, ModuleOp):
        return source.clone()
    from ..passes.relay.functional.infer_type import ensure_types

    module = source.copy_op()
    ensure_types(module)
    return module
