"""`mirstack.compile`: a file or a module to something that runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast
from weakref import WeakKeyDictionary

from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.ir import Operation

from ..dialects.array import ArrayBox, ArrayValueAttr
from ..support.arguments import check, integer, items
from ..support.deep_stack import in_deep_stack
from ..support.diagnostics import Diagnostic, MirError, Sources, error_at, file_loc
from ..support.garbage import no_collection
from ..support.source_text import source_text, where_not_utf8
from ..support.stopwatch import current_span, timed
from ..support.target import require_host
from ..support.verify import verify
from ..support.walk import walk_ops
from .entry import entry_kind, find_entry, functions_of, name_of
from .executable import Executable

if TYPE_CHECKING:
    from ..lowering.pipeline import Observer, Options
    from .ir.module import IRModule

TargetName = Literal["cpu", "interp"]


@no_collection()
def parse(text: str, name: str = "<string>", *, directory: str | PathLike[str] | None = None) -> ModuleOp:
    """The module that a `.mir` text holds, typed and verified: of an empty text, as an empty module prints, an empty one.

    `name` stands for the file in messages; `directory` is where side files of constants are looked for. Raises MirError
    with everything that is wrong in the text.
    """
    from ..parser import parse_mir

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
    sources = Sources()
    sources.add(name, text)
    with sources.reading():
        folder = None if directory is None else str(directory)
        module = in_deep_stack(lambda: _verified(parse_mir(text, name, directory=folder)))
    _PARSED[module] = sources
    return module


_PARSED: WeakKeyDictionary[ModuleOp, Sources] = WeakKeyDictionary()
"""The text of each module that was parsed and is still there: what cannot be compiled is shown in it."""


def _sources_of(source: _Read | ModuleOp | IRModule) -> Sources:
    """The text that is compiled, where it is known."""
    sources = Sources()
    if isinstance(source, _Read):
        sources.add(source.name, source.text)
    return _PARSED.get(source, sources) if isinstance(source, ModuleOp) else sources


def _verified(module: ModuleOp) -> ModuleOp:
    verify(module)
    check_functions(module)
    return module


def check_functions(module: ModuleOp, *, runs: bool = False) -> None:
    """The rules that hold across the ops of a TIR function; `runs`: also those that only a program that runs must keep.

    Raises MirError with all that is broken; warnings go to the current sources.
    """
    if any(op.name == "tir.prim_func" for op in module.ops):
        from ..dialects.tir.verify import check_module

        check_module(module, runs=runs)


def load(path: str | PathLike[str]) -> ModuleOp:
    """The module in a `.mir` file. Raises MirError for a file that cannot be read or is wrong."""
    check(path, "path", "the path of a file", str, PathLike)
    return _Read.of_file(path).parse()


def compile(
    source: str | PathLike[str] | ModuleOp | IRModule,
    target: TargetName = "cpu",
    *,
    entry: str | None = None,
    threads: int | None = None,
    opt_level: int = 3,
    cpu: str | None = None,
    caches: str = "",
    allow_extern: Iterable[str] = (),
    strict_math: bool = False,
    observers: Iterable[Observer] = (),
    cache: bool = True,
) -> Executable:
    """Compiles an entry of a `.mir` file or of a module (of xDSL's or an `IRModule`), which stays as it is.

    `target` is "cpu" for native code or "interp" for the interpreters. `entry` names the function; by default the only
    one, else `main`. `threads` bounds the threads of parallel loops (all cores by default), `opt_level` is 0 to 3, `cpu`
    LLVM's name of the processor (this one by default), `caches` the sizes of its data caches where schedules should
    count on others than those known (`"32K,1M,16M"`). With `strict_math` floats are computed as the interpreter computes them, but
    for the order of sums (docs/rules.md). `allow_extern` names C functions that the program may call beside
    C's mathematics (docs/security.md). `observers` are called after each pass with the pass and the
    module that it ran on: each kernel is a module of its own. With `cache`, and without observers, compiled code is taken from
    the cache on disk where it is there, and kept there (`lowering.driver.cache`). Raises MirError for what cannot be compiled, or would not run here.
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
    if caches:
        # Refused here, whether or not the program has a schedule that asks for the sizes.
        from ..support.target import named

        named(cpu or "", threads, caches)
    check(strict_math, "strict_math", "True or False", bool)
    check(cache, "cache", "True or False", bool)
    observers = tuple(items(observers, "observers", "functions of a pass and a module", cast("type", Callable)))

    if target == "cpu":
        require_host(cpu)

    from ..lowering.externs import names_of

    if target == "interp":
        return in_deep_stack(lambda: _interpreted(_module_of(source), entry))
    from ..lowering.pipeline import Options

    names = names_of(allow_extern)
    options = Options(
        opt_level=opt_level, cpu=cpu, threads=threads, caches=caches, allow_extern=names, strict_math=strict_math
    )
    read = _Read.of_file(source) if isinstance(source, str | PathLike) else source
    try:
        return in_deep_stack(lambda: _native(read, entry, options, observers, cache))
    except MirError as error:
        error.show_in(_sources_of(read))
        raise


def compile_text(
    text: str,
    name: str,
    directory: str | PathLike[str] | None,
    options: Options,
    entry: str | None = None,
    *,
    cache: bool = True,
) -> Executable:
    """Compiles an entry of a `.mir` text to native code, as `compile` does with a file; `name` and `directory` as for `parse`."""
    require_host(options.cpu)
    read = _Read(source_text(text), name, None if directory is None else Path(directory))
    return in_deep_stack(lambda: _native(read, entry, options, (), cache))


@dataclass(frozen=True)
class _Read:
    """A text that was read."""

    text: str
    name: str
    directory: Path | None

    @staticmethod
    def of_file(path: str | PathLike[str]) -> _Read:
        """The text of a file. Raises MirError where it cannot be read."""
        if not str(path):
            raise MirError(Diagnostic("compile takes the path of a file, or a program, and this is the empty text"))
        if any(sign in str(path) for sign in ("\n", "{", "def @")):
            raise MirError(
                Diagnostic("compile takes the path of a file, and this is the text of a program").with_note(
                    "parse it first: mirstack.compile(mirstack.parse(text))"
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
        return _Read(text, str(path), file.parent)

    def parse(self) -> ModuleOp:
        """The module that it holds."""
        return parse(self.text, self.name, directory=self.directory)


@no_collection()
def _native(
    source: _Read | ModuleOp | IRModule,
    entry: str | None,
    options: Options,
    observers: tuple[Observer, ...],
    cache: bool,
) -> Executable:
    """The executable of an entry, by way of the cache."""
    from ..lowering.driver.cache.keys import context_key
    from ..lowering.driver.cache.store import Store
    from ..lowering.llvm.jit.codegen_process import start as start_codegen
    from .cached import CachedProgram, wait_for_writing
    from .native import load_program

    # So that what was compiled is found, and no thread keeps this process from being forked.
    wait_for_writing()
    store = Store.open() if cache and not observers else None
    context = None if store is None else context_key(options)
    module = None if isinstance(source, _Read) else _module_of(source)
    place = None
    with timed("look up"):
        if store is not None and context is not None:
            if isinstance(source, _Read):
                place = CachedProgram.of_text(source.text, source.name, source.directory, context, entry, store)
            elif module is not None:
                place = CachedProgram.of_module(module, context, entry, store)
        known = None if place is None else place.load()
    if known is not None:
        return load_program(known, options)
    # It readies itself while Python reads and lowers.
    start_codegen()
    warnings = len(Sources.current().warnings)
    if isinstance(source, _Read):
        with timed("parse"):
            module = source.parse()
    assert module is not None
    # Weights that were read for this program alone. The module is a cycle, which only a collection frees.
    weights = _side_weights(module) if isinstance(source, _Read) else []

    def give_up_weights() -> None:
        for box in weights:
            box.give_up()

    from .native_compile import compile_program

    # Before what is not reached goes: declarations of tensor intrinsics are not.
    apply_ready_schedules(module)
    function = find_entry(module, entry)
    name = name_of(function)
    module = only_reachable(module, name)
    check_functions(module, runs=True)
    options = replace(options, entry=name)
    kernels = None
    if not observers:
        from ..lowering.driver.cache.kernels import KernelCache

        kernels = KernelCache(None if context is None else store, context or b"")
    program = compile_program(module, find_entry(module, name), entry_kind(function), options, observers, kernels)
    # What was warned of is warned of again the next time.
    executable = load_program(program, options)
    if place is None or len(Sources.current().warnings) > warnings:
        give_up_weights()
        return executable
    place.save(program, give_up_weights)
    if current_span() is not None:
        # Who measures sees all of it.
        wait_for_writing()
    return executable


def _side_weights(module: ModuleOp) -> list[ArrayBox]:
    """The arrays of a module that a side file has."""
    values = (
        attr.data for op in walk_ops(module) for attr in op.properties.values() if isinstance(attr, ArrayValueAttr)
    )
    return list({id(box): box for box in values if box.origin is not None}.values())


def _interpreted(module: ModuleOp, entry: str | None) -> Executable:
    from .interpret import InterpretedExecutable

    apply_ready_schedules(module)
    return InterpretedExecutable(module, find_entry(module, entry))


def _module_of(source: str | PathLike[str] | ModuleOp | IRModule) -> ModuleOp:
    """A module of one's own: read from a file, or a copy."""
    if isinstance(source, ModuleOp):
        return source.clone()
    if isinstance(source, str | PathLike):
        return load(source)
    from ..passes.relay.functional.infer_type import ensure_types
    from .ir.module import IRModule

    if not isinstance(source, IRModule):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(
            f"compile takes the path of a file or a module (of a schedule, its mod), not {type(source).__name__}"
        )
    module = source.copy_op()
    ensure_types(module)
    return module


@no_collection()
def preload() -> None:
    """Imports all that parsing and compiling need, which is else imported when first used (some 0.6 s, once)."""
    from importlib import import_module

    from ..dialects.relay.operator import get_operator
    from ..lowering.pipeline import Options, lowering_passes
    from ..passes.schedule.engine import primitive

    for name in PRELOADED:
        import_module(f"..{name}", __package__)
    for _ in lowering_passes(Options()):
        pass
    # With all topics of the operator table that stand before its own: those of a usual model.
    get_operator("nn.batch_norm")
    primitive.load_all()
    if sys.platform == "linux":
        for name in ("multiprocessing.connection", "multiprocessing.popen_fork"):
            import_module(name)


PRELOADED = (
    "parser.source",
    "parser.relay.reading",
    "parser.rules",
    "parser.rules.build",
    "parser.rules.reader",
    "parser.tvmscript",
    "parser.te",
    "dialects.relay.exhaustive",
    "dialects.relay.infer.inference",
    "dialects.relay.infer.check",
    "dialects.relay.verify",
    "dialects.relay.operators.sorting.bitonic_sort",
    "dialects.relay.operators.sorting.radix_sort",
    "dialects.relay.operators.indexing.te_scatter",
    "dialects.relay.operators.sorting.te_sort",
    "dialects.rule.levels.relay",
    "dialects.arith.format",
    "dialects.tir.attribute_values",
    "passes.schedule.primitives.common.new_blocks",
    "passes.schedule.analysis.layout_map",
    "passes.schedule.analysis.solve_linear",
    "lowering.driver.cache.programs",
    "lowering.driver.cache.kernels",
    "lowering.relay.kernels.te_kernel",
    "lowering.llvm.jit.object_pool",
    "lowering.llvm.jit.object_symbols",
    "lowering.llvm.text.translation",
    "lowering.llvm.jit.codegen_process",
    "lowering.llvm.jit.load",
    "lowering.driver.workers",
    "support.allocator",
    "api.cached",
    "api.native",
    "api.native_compile",
    "api.native_relay",
    "api.native_kernel",
)


def apply_ready_schedules(module: ModuleOp) -> None:
    """Applies the scripts whose functions are TIR already, in place: a script may name functions that the entry does not."""
    if any(op.name == "schedule.script" for op in module.ops):
        from xdsl.context import Context

        from ..passes.schedule.apply_schedule import ApplySchedule

        ApplySchedule(mark=True, ready=True).apply(Context(), module)


def only_reachable(module: ModuleOp, entry: str) -> ModuleOp:
    """The functions that the entry may come to call, and what is no function, flat in one module; taken from `module`."""
    functions = functions_of(module, lower=True)
    wanted = {entry}
    pending = [entry]
    while pending:
        for name in _callees(functions[pending.pop()]):
            if name in functions and name not in wanted:
                wanted.add(name)
                pending.append(name)
    result = ModuleOp([], attributes=dict(module.attributes))
    every = set(functions.values())
    left = functions.keys() - wanted
    kept = [op for op in module.ops if op not in every and not isinstance(op, ModuleOp) and not _schedules(op, left)]
    for op in (*kept, *(functions[name] for name in functions if name in wanted)):
        op.detach()
        result.body.block.add_op(op)
    return result


def _schedules(op: Operation, functions: Collection[str]) -> bool:
    """Whether the op schedules one of these functions."""
    target = op.properties.get("target") if op.name in ("te.schedule", "schedule.script") else None
    return isinstance(target, SymbolRefAttr) and target.root_reference.data in functions


def _callees(function: Operation) -> list[str]:
    """The functions that a function refers to."""
    properties = (attr for op in walk_ops(function) for attr in op.properties.values())
    return [attr.root_reference.data for attr in properties if isinstance(attr, SymbolRefAttr)]
