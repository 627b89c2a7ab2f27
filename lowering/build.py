"""From a module to object files: kernel by kernel, LLVM at work on one while Python lowers the next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, StringAttr
from xdsl.passes import ModulePass

from ..support.garbage import no_collection
from ..support.stopwatch import timed
from .mangle_symbols import MangleSymbols
from .pipeline import Observer, Options, graph_passes, kernel_passes, lowering_passes, program_passes, target_of
from .runtime import processors
from .units import Unit, split

if TYPE_CHECKING:
    from .cache.kernels import KernelCache
    from .llvm.object_pool import ObjectPool


MOST_THREADS = 5
"""Threads at work at most, one of Python that feeds LLVM's among them."""


@dataclass
class Built:
    """What a module was compiled to. `module` is in the LLVM dialect; of a Relay program it is what calls the kernels."""

    module: ModuleOp
    messages: dict[int, str]
    """What the statuses mean that its functions may return."""
    objects: tuple[bytes, ...] = ()


@dataclass
class _Build:
    """A build under way."""

    options: Options
    observers: Sequence[Observer]
    pool: ObjectPool
    context: Context = field(default_factory=Context)
    objects: list[Future[bytes]] = field(default_factory=list[Future[bytes]])
    messages: dict[int, str] = field(default_factory=dict[int, str])

    def run(self, passes: Iterator[ModulePass] | Sequence[ModulePass], module: ModuleOp) -> None:
        for step in passes:
            with timed(step.name):
                step.apply(self.context, module)
            for observe in self.observers:
                observe(step, module)

    def emit(self, module: ModuleOp) -> Future[bytes]:
        """Has LLVM compile a module of its dialect."""
        from .llvm.translation import translate

        with timed("translate"):
            text = translate(module)
        future = self.pool.submit(text)
        self.objects.append(future)
        self.messages |= messages_of(module)
        return future


def build(
    module: ModuleOp, options: Options, observers: Sequence[Observer] = (), kernels: KernelCache | None = None
) -> Built:
    """Compiles the module, which is used up; raises MirError for what cannot be compiled.

    Of a program of Relay functions and kernels each kernel is compiled as a module of its own, unless `kernels` has it;
    observers see them one after the other, and the program last.
    """
    from .llvm.object_pool import ObjectPool

    with no_collection(), ObjectPool(target_of(options), min(processors(), MOST_THREADS)) as pool:
        work = _Build(options, observers, pool)
        with timed("graph"):
            work.run(graph_passes(options), module)
        units = split(module)
        if units is None:
            rest = list(lowering_passes(options))[len(list(graph_passes(options))) :]
            with timed("kernels"):
                work.run(rest, module)
        else:
            steps = [step for step in kernel_passes(options) if step.name != MangleSymbols.name]
            with timed("kernels"):
                for unit in units:
                    _build_unit(work, unit, steps, module, kernels)
            with timed("program"):
                work.run(program_passes(options), module)
        work.emit(module)
        pool.hurry()
        with timed("wait for LLVM"):
            objects = tuple(future.result() for future in work.objects)
    if kernels is not None:
        kernels.write()
    return Built(module, work.messages, objects)


def _build_unit(
    work: _Build, unit: Unit, steps: Sequence[ModulePass], program: ModuleOp, kernels: KernelCache | None
) -> None:
    """Compiles a unit, or takes it from the cache, and joins it to the program."""
    unit.add_stubs()
    with timed("look up"):
        candidate = None if kernels is None else kernels.candidate(unit)
        known = None if candidate is None else candidate.find(work.messages)
    if known is not None:
        known.join(unit, program)
        work.messages |= known.messages
        if known.object not in work.objects:
            work.objects.append(known.object)
        return
    work.run(steps, unit.module)
    stubs = unit.take_stubs()
    unit.join(program, stubs)
    unit.export()
    future = work.emit(unit.module)
    if candidate is not None:
        candidate.keep(unit, stubs, program, future)


def messages_of(module: ModuleOp) -> dict[int, str]:
    """What the statuses mean that the module's functions may return."""
    from .llvm.converter import MESSAGES

    table = module.attributes.get(MESSAGES)
    if not isinstance(table, DictionaryAttr):
        return {}
    return {int(code): text.data for code, text in table.data.items() if isinstance(text, StringAttr)}
