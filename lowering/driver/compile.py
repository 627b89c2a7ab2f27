"""Compiles a program to an executable: for `mirstack.compile`, `mirstack.build` and `mir-run`.

    file or module       → cache: a program of this text, these options and this machine?
                         → parse, the entry with its shapes and what it calls (`entry.py`, `bind_shapes.py`)
                         → compile_program: build.py lowers, LLVM compiles
                         → load_program: linked, ready to be called (`loading`)

`mir-opt -t llvm|asm` shares the lowering (`build.lower`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ...support.diagnostics import Sources
from ...support.garbage import no_collection
from ...support.stopwatch import current_span, timed
from ...support.target import named, require_host
from ...support.xdsl_patches import apply
from .source import ProgramSource, TargetName, check_functions

if TYPE_CHECKING:
    # A program from the cache needs no xDSL, whose import takes longer than all else: the rest is imported where one is compiled.
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Operation

    from ...dialects.array_box import ArrayBox
    from ...passes.relay.functional.bind_shapes import Shapes
    from ..pipeline import Observer, Options
    from .loading.executable import Executable

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
) -> Executable:
    """Compiles the entry called `entry`, by default the only one or `main`; a module is used up.

    `shapes` fixes open dimensions of its parameters.

    Raises MirError for what cannot be compiled, or would not run on this machine.
    """
    if options.caches:
        # Refused here, whether or not the program has a schedule that asks for the sizes.
        named(options.cpu or "", options.threads, options.caches)
    if target == "interp":
        return _interpreted(source, entry, shapes)
    require_host(options.cpu)
    return _native(source, entry, options, observers, cache, shapes)


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
) -> Executable:
    """Returns the native executable of an entry: from the cache, or compiled and then cached."""
    from .cache.store import Store

    store = Store.open() if cache and not observers else None
    side = None
    if store is not None and isinstance(source, ProgramSource):
        from .cache.side_arrays import SideArrays

        # Weights are read and hashed while the rest is imported.
        side = SideArrays(source)
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
    if known is not None:
        return load_program(known, options)

    from ..llvm.jit.codegen_process import start as start_codegen

    # It starts up while Python reads and lowers.
    start_codegen()
    apply()
    from .compile_program import compile_program
    from .entry import entry_kind, find_entry, name_of
    from .reachable import apply_ready_schedules, only_reachable, side_weights

    warnings = len(Sources.current().warnings)
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
    kernels = None
    if not observers:
        from .cache.kernels import KernelCache

        kernels = KernelCache(None if context is None else store, context or b"")
    program = compile_program(module, function, entry_kind(function), options, observers, kernels)
    executable = load_program(program, options)

    def give_up_weights() -> None:
        for box in weights:
            box.give_up()

    # A program with warnings is not cached: it warns again the next time.
    if place is None or len(Sources.current().warnings) > warnings:
        give_up_weights()
        return executable
    place.save(program, give_up_weights)
    if current_span() is not None:
        # A measurement includes the writing.
        wait_for_writing()
    return executable
