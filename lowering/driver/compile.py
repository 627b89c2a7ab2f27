"""Compiles a program to an executable: for `mirstack.compile`, `mirstack.build` and `mir-run`.

    file or module       → cache: a program of this text, these options and this machine?
                         → parse, the entry with its shapes and what it calls (`entry.py`, `bind_shapes.py`)
                         → compile_program: build.py lowers, LLVM compiles
                         → load_program: linked, ready to be called (`loading`); beside calls, code for sizes (`specialize.py`)

`mir-opt -t llvm|asm` shares the lowering (`build.lower`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...passes.extensions.packages import load_packages
from ...support.diagnostics import Sources
from ...support.garbage import no_collection
from ...support.stages import detail, inform
from ...support.stopwatch import current_span, timed
from ...support.target import named, require_host
from ...support.xdsl_patches import apply
from .source import ProgramSource, SourceText, TargetName, check_functions

if TYPE_CHECKING:
    # A program from the cache needs no xDSL, whose import takes longer than all else: the rest is imported where one is compiled.
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Operation

    from ...dialects.array_box import ArrayBox
    from ...passes.relay.functional.bind_shapes import Shapes
    from ..pipeline import Observer, Options
    from .cache.kernels import KernelCache
    from .cache.programs import CachedProgram
    from .compile_program import ModuleBuilder
    from .loading.executable import Executable
    from .loading.relay_executable import RelayExecutable
    from .program import Program

NO_SHAPES: Shapes = {}
"""Parameters keep the shapes that they are declared with."""


def compile_source(
    source: ProgramSource | ModuleOp,
    target: TargetName,
    entry: str | None,
    options: Options,
    observers: Sequence[Observer] = (),
    *,
    cache: bool = True,
    shapes: Shapes = NO_SHAPES,
    specialize: bool = True,
) -> Executable:
    """Compiles the entry called `entry`, by default the only one or `main`; a module is used up.

    `shapes` fixes open dimensions of its parameters. With `specialize`, sizes of others that are met often get code of their own
    (`specialize.py`).

    Raises MirError for what cannot be compiled, or would not run on this machine.
    """
    # What they define is a part of the key.
    load_packages()
    if options.cpu:
        from .processor import with_processor

        options = with_processor(options, source)
    if options.caches:
        # Refused here, whether or not the program has a schedule that asks for the sizes.
        named(options.cpu or "", options.threads, options.caches)
    if target == "interp":
        return _interpreted(source, entry, shapes)
    require_host(options.cpu)
    return _native(source, entry, options, observers, cache, shapes, specialize)


def _interpreted(source: ProgramSource | ModuleOp, entry: str | None, shapes: Shapes) -> Executable:
    apply()
    from .entry import find_entry
    from .loading.interpreted_executable import InterpretedExecutable
    from .reachable import apply_ready_schedules

    module = source.parse() if isinstance(source, ProgramSource) else source
    apply_ready_schedules(module)
    function = find_entry(module, entry)
    _bind(module, function, shapes)
    return InterpretedExecutable(module, function)


def _bind(module: ModuleOp, entry: Operation, shapes: Shapes) -> None:
    if shapes:
        from ...passes.relay.functional.bind_shapes import bind_shapes

        bind_shapes(module, entry, shapes)


@no_collection()
def _native(
    source: ProgramSource | ModuleOp,
    entry: str | None,
    options: Options,
    observers: Sequence[Observer],
    cache: bool,
    shapes: Shapes,
    specialize: bool,
) -> Executable:
    """Returns the native executable of an entry: from the cache, or compiled and then cached."""
    from .cache.store import Store

    store = Store.open() if cache and not observers else None
    side = None
    if store is not None and isinstance(source, ProgramSource):
        from .cache.source_key import SourceKey

        # Weights are read and hashed while the rest is imported.
        side = SourceKey(source, store)
    from ..llvm.jit.load import keep_shipped
    from .cache.keys import context_key
    from .cache.programs import CachedProgram, wait_for_writing
    from .loading.load_program import load_program

    if store is not None:
        keep_shipped(store)
    # So that what was compiled is found, and no thread keeps this process from being forked.
    wait_for_writing()
    context = None if store is None else context_key(options)
    with timed("look up"):
        start = (entry, shapes)
        place = None if store is None or context is None else CachedProgram.of(source, context, start, store, side)
        if side is not None:
            side.join()
        known = None if place is None else place.load()
    # A profile is that of one program, whose call sites are known.
    specialize = specialize and not observers and options.opt_level > 1 and not options.profile
    name = source.name if isinstance(source, ProgramSource) else "a module"
    if known is not None:
        inform("%s: found in the cache", name)
        return _specializing(load_program(known, options), source, entry, options, shapes, specialize, cache, place)

    inform("%s: compiling for %s at opt_level %d", name, options.cpu or "this processor", options.opt_level)
    kept = source
    if specialize and not isinstance(source, ProgramSource) and _has_open_parameters(source, entry, shapes):
        # Compiling uses the module up. The arrays of the copy are those of the module.
        kept = source.clone()
    from ..llvm.jit.codegen_process import start as start_codegen
    from .lowering_process import start as start_lowering

    # These start up while Python reads and lowers.
    start_codegen()
    process = start_lowering(options) if _has_kernels(source) and not observers else None
    apply()
    warnings = len(Sources.current().warnings)
    kernels = None
    if not observers:
        from .cache.kernels import KernelCache

        # Programs that are profiled have the same kernels.
        same = None if context is None else context_key(replace(options, profile=False))
        # Kernels are kept without their lines.
        kept_in = None if context is None or options.debug_info else store
        kernels = KernelCache(kept_in, same or b"", process)
    try:
        program, options, weights = compiled_program(source, entry, options, observers, kernels, shapes)
    finally:
        if process is not None:
            process.close()
    executable = load_program(program, options)

    def give_up_weights() -> None:
        for box in weights:
            box.give_up()

    # A program with warnings is not cached: it warns again the next time.
    if place is None or len(Sources.current().warnings) > warnings:
        detail("%s: not kept in the cache", name)
        give_up_weights()
    else:
        place.save(program, executable, give_up_weights)
        if current_span() is not None:
            # A measurement includes the writing.
            wait_for_writing()
    return _specializing(executable, kept, entry, options, shapes, specialize, cache, place)


def _has_kernels(source: ProgramSource | ModuleOp) -> bool:
    """Returns whether the source has functions of Relay, whose kernels another process may lower."""
    if isinstance(source, ProgramSource):
        return not isinstance(source, SourceText) or "def @" in source.text
    return any(op.name == "relay.func" for op in source.ops)


def compiled_program(
    source: ProgramSource | ModuleOp,
    entry: str | None,
    options: Options,
    observers: Sequence[Observer],
    kernels: KernelCache | None,
    shapes: Shapes,
    builder: ModuleBuilder | None = None,
) -> tuple[Program, Options, list[ArrayBox]]:
    """Returns the program, the options with the name of its entry, and the weights read for it alone."""
    from .build import build
    from .compile_program import compile_program
    from .entry import entry_kind, find_entry, name_of
    from .reachable import apply_ready_schedules, only_reachable, side_weights

    weights: list[ArrayBox] = []
    if isinstance(source, ProgramSource):
        with timed("parse"):
            source = source.parse()
        # Weights that were read for this program alone. The module is a cycle, which only a collection frees.
        weights = side_weights(source)
    # Before functions that are not reached are dropped, such as declarations of tensor intrinsics.
    apply_ready_schedules(source)
    function = find_entry(source, entry)
    _bind(source, function, shapes)
    options = replace(options, entry=name_of(function))
    module = only_reachable(source, options.entry)
    check_functions(module, runs=True)
    program = compile_program(module, function, entry_kind(function), options, observers, kernels, builder or build)
    return program, options, weights


def _has_open_parameters(module: ModuleOp, entry: str | None, shapes: Shapes) -> bool:
    """Returns whether the entry is a Relay function with open dimensions that `shapes` does not fix."""
    from ...dialects.relay.infer.open_checks import is_open
    from ...dialects.relay.ir import FuncOp
    from .entry import find_entry

    function = find_entry(module, entry)
    return isinstance(function, FuncOp) and any(is_open(param.type) for param in function.params)


def _specializing(
    executable: Executable,
    source: ProgramSource | ModuleOp,
    entry: str | None,
    options: Options,
    shapes: Shapes,
    specialize: bool,
    cache: bool,
    own: CachedProgram | None,
) -> Executable:
    """Returns the executable, which gets code for sizes if its parameters are open.

    `own` is its place in the cache.
    """
    if not specialize or not any("?" in param.shape for param in executable.params):
        return executable
    from .loading.relay_executable import RelayExecutable
    from .specialize import Variants, is_wanted

    if not isinstance(executable, RelayExecutable) or not is_wanted():
        return executable
    from .cache.keys import context_key
    from .cache.programs import CachedProgram
    from .cache.store import Store
    from .loading.load_program import load_program

    def place_of(fixed: Mapping[str, Sequence[int]], folder: Path | None) -> CachedProgram | None:
        store = (Store.open() if cache else None) if folder is None else Store(folder)
        context = context_key(options) or (None if folder is None else b"")
        if store is None or context is None:
            return None
        return CachedProgram.of(source, context, (entry, {**shapes, **fixed}), store)

    def compile_for(fixed: Mapping[str, Sequence[int]], place: CachedProgram) -> None:
        from ...support.deep_stack import in_deep_stack
        from ..llvm.jit.codegen_process import start as start_codegen
        from .cache.kernels import KernelCache

        start_codegen()
        apply()
        kernels = KernelCache(None if options.debug_info else place.store, context_key(options) or b"")
        program, *_ = in_deep_stack(lambda: compiled_program(source, entry, options, (), kernels, {**shapes, **fixed}))
        place.write(program)

    def load(place: CachedProgram) -> RelayExecutable | None:
        program = place.load()
        loaded = None if program is None else load_program(program, options)
        return loaded if isinstance(loaded, RelayExecutable) else None

    variants = Variants(executable.params, place_of, compile_for, load)
    executable.specialize(variants)
    if own is not None:
        kept = own.others()
        variants.is_kept = lambda fixed: kept((entry, {**shapes, **fixed}))
    return executable
