"""From a module to LLVM IR, assembly or object files: `lower` is the way of all of them.

`build` compiles kernel by kernel, LLVM at work on one while Python lowers the next; `mir-opt -t llvm|asm` prints one module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import UNKNOWN_LOC, ModuleOp
from xdsl.passes import ModulePass

from ...support.diagnostics import Diagnostic, MirError, Sources, file_loc
from ...support.garbage import no_collection
from ...support.stages import counted, steps
from ...support.stopwatch import timed
from ...support.target import processors
from ...support.trace import anyone_listens
from ..pipeline import DEFAULT, Observer, Options, graph_passes, kernel_passes, program_passes, target_of
from .units import Unit, split

if TYPE_CHECKING:
    from ..llvm.jit.object_pool import ObjectPool
    from .cache.kernels import Candidate, KernelCache
    from .kernel_work import KernelWork
    from .lowered_unit import LoweredUnit
    from .lowering_process import LoweringProcess
    from .workers import Answer

Apply = Callable[[ModulePass, Context, ModuleOp], None]
"""Applies a pass to a module."""

MOST_THREADS = 5
"""Threads at work at most, one of Python that feeds LLVM's among them."""
FEW = 4
"""Kernels for which other processes are no help."""


@dataclass
class Passes:
    """Runs passes on modules, and tells observers of each."""

    observers: Sequence[Observer] = ()
    context: Context = field(default_factory=Context)
    apply: Apply | None = None
    """Applies a pass in place of its own `apply`: with instruments around it, as `mir-opt` does."""

    def run(self, passes: Iterable[ModulePass], module: ModuleOp) -> None:
        """Runs the passes in order, in place. Raises MirError for what one of them refuses."""
        for step in passes:
            with timed(step.name, fine=True):
                if self.apply is None:
                    step.apply(self.context, module)
                else:
                    self.apply(step, self.context, module)
            for observe in self.observers:
                observe(step, module)


def lower(
    module: ModuleOp, options: Options, passes: Passes, kernels: Callable[[Sequence[Unit] | None], None] | None = None
) -> None:
    """Lowers a module of any level to the LLVM dialect, in place.

    `kernels` lowers those of a Relay program, which it gets each in a module of its own, by `unit_passes` and joins them to the
    program; of any other module it gets None, and lowers them by `kernel_passes` where they are, as is done without it. Raises MirError
    for what cannot be compiled.
    """
    with timed("graph"):
        passes.run(graph_passes(options), module)
    units = None if kernels is None else split(module)
    with timed("kernels"):
        if kernels is None:
            passes.run(kernel_passes(options), module)
        else:
            kernels(units)
    with timed("program"):
        passes.run(program_passes(options), module)


def lower_module(
    module: ModuleOp, options: Options, observers: Sequence[Observer] = (), apply: Apply | None = None
) -> None:
    """Lowers a module and its kernels to the LLVM dialect, in place. Raises MirError where it cannot."""
    with no_collection():
        lower(module, options, Passes(observers, apply=apply))


def llvm_text(
    module: ModuleOp, options: Options = DEFAULT, observers: Sequence[Observer] = (), apply: Apply | None = None
) -> str:
    """Returns the LLVM IR text that the module is compiled to; the module is lowered in place."""
    from ..llvm.text.translation import translate

    lower_module(module, options, observers, apply)
    return translate(module, externs=options.allow_extern, debug=options.debug_info)


def assembly_text(
    module: ModuleOp, options: Options = DEFAULT, observers: Sequence[Observer] = (), apply: Apply | None = None
) -> str:
    """Returns the assembly of the module's machine code; the module is lowered in place."""
    from ..llvm.jit.codegen_process import start
    from ..llvm.jit.load import emit_assembly

    # It readies itself while Python lowers.
    start()
    return emit_assembly(llvm_text(module, options, observers, apply), target_of(options))


@dataclass
class Built:
    """The compiled form of a module.

    `module` is in the LLVM dialect; of a Relay program it is the functions that call the kernels.
    """

    module: ModuleOp
    messages: dict[int, str]
    """What the statuses mean that its functions may return."""
    objects: tuple[bytes, ...] = ()
    work: dict[str, KernelWork] = field(default_factory=dict[str, "KernelWork"])
    """Of a program that is profiled: the work of its kernels by name."""


@dataclass
class TextBuilder:
    """Builds a module as LLVM IR text of all its functions, in place of object files.

    `attributes` are those that every function gets, such as `"target-cpu"="haswell"`.
    """

    attributes: str = ""
    text: str = ""

    def __call__(
        self, module: ModuleOp, options: Options, observers: Sequence[Observer] = (), kernels: KernelCache | None = None
    ) -> Built:
        """Lowers the module, which is used up; keeps the text. Raises MirError for what cannot be compiled."""
        from ..llvm.jit.call import messages_of
        from ..llvm.text.translation import translate

        lower_module(module, options, observers)
        self.text = translate(
            module, externs=options.allow_extern, attributes=self.attributes, debug=options.debug_info
        )
        return Built(module, messages_of(module))


@dataclass
class _Build:
    """A build under way."""

    options: Options
    passes: Passes
    pool: ObjectPool
    objects: dict[Future[bytes], None] = field(default_factory=dict[Future[bytes], None])
    """Each once, in their order."""
    messages: dict[int, str] = field(default_factory=dict[int, str])
    declared: set[str] = field(default_factory=set[str])
    """The kernels' functions that the program has declared."""
    work: dict[str, KernelWork] = field(default_factory=dict[str, "KernelWork"])

    def note_work(self, module: ModuleOp) -> None:
        """Notes the work of the kernels in a module, if the program is profiled."""
        if self.options.profile:
            from .kernel_work import work_of_kernels

            with timed("work", fine=True):
                self.work |= work_of_kernels(module, self.options)

    def emit(self, module: ModuleOp) -> Future[bytes]:
        """Submits a module of the LLVM dialect to LLVM; returns the future object file."""
        from ..llvm.text.translation import translate

        with timed("translate", fine=True):
            externs = {*self.options.allow_extern, *self.declared}
            text = translate(module, externs=externs, debug=self.options.debug_info)
        return self.pool.submit(text)

    def add(self, object: Future[bytes], messages: Mapping[int, str]) -> None:
        """Makes an object file and what its statuses mean a part of the result."""
        self.objects[object] = None
        self.messages |= messages


def build(
    module: ModuleOp, options: Options, observers: Sequence[Observer] = (), kernels: KernelCache | None = None
) -> Built:
    """Compiles the module, which is used up; raises MirError for what cannot be compiled.

    Of a program of Relay functions and kernels each kernel is compiled as a module of its own, unless `kernels` has it; some by
    other processes (`workers.py`). Without `kernels` observers see one after the other, and the program last.
    """
    from ..llvm.jit.call import messages_of
    from ..llvm.jit.object_pool import ObjectPool

    with no_collection(), ObjectPool(target_of(options), min(processors(), MOST_THREADS)) as pool:
        work = _Build(options, Passes(observers), pool)
        lower(module, options, work.passes, lambda units: _build_kernels(work, units, module, kernels))
        work.add(work.emit(module), messages_of(module))
        pool.hurry()
        with timed("wait for LLVM"):
            objects = tuple(future.result() for future in work.objects)
    if kernels is not None:
        kernels.write()
    return Built(module, work.messages, objects, work.work)


@dataclass
class _Job:
    """A unit on its way."""

    unit: Unit
    candidate: Candidate | None
    result: tuple[LoweredUnit, Future[bytes]] | MirError | None = None

    @staticmethod
    def of(unit: Unit, kernels: KernelCache | None) -> _Job:
        unit.add_stubs()
        with timed("look up", fine=True):
            return _Job(unit, None if kernels is None else kernels.candidate(unit))

    def lower(self, work: _Build) -> None:
        """Lowers the unit and submits it to LLVM; an error is kept until the unit joins the program."""
        from .lowered_unit import LoweredUnit, unit_passes

        try:
            work.passes.run(unit_passes(work.options), self.unit.module)
            lowered = LoweredUnit.of(self.unit)
            future = work.emit(lowered.module)
        except MirError as error:
            self.result = error
            return
        self.result = lowered, future
        if self.candidate is not None:
            self.candidate.keep_lowered(lowered, future)

    def compile(self, work: _Build) -> Answer | None:
        """Compiles the unit in another process; returns the facts of the kernel and its object file.

        Returns None where these do not say everything (a warning, facts that plain data cannot express).
        """
        from ..llvm.jit.load import emit_object
        from ..llvm.text.translation import translate
        from .cache.kernel_facts import facts_of
        from .lowered_unit import LoweredUnit, unit_passes

        assert self.candidate is not None
        warnings = len(Sources.current().warnings)
        work.passes.run(unit_passes(work.options), self.unit.module)
        lowered = LoweredUnit.of(self.unit)
        facts = facts_of(lowered, self.candidate.places)
        if facts is None or len(Sources.current().warnings) > warnings:
            return None
        with timed("translate", fine=True):
            text = translate(lowered.module, externs=work.options.allow_extern, debug=work.options.debug_info)
        return facts, emit_object(text, target_of(work.options))

    def join(self, work: _Build, program: ModuleOp) -> None:
        """Joins the unit to the program; it is lowered now where nobody else did."""
        if self.result is None:
            with timed("look up", fine=True):
                known = None if self.candidate is None else self.candidate.find(work.messages)
            if known is not None:
                known.join(self.unit, program, work.declared)
                work.declared.update(op.sym_name.data for op in known.declarations)
                work.add(known.object, known.messages)
                return
            self.lower(work)
        match self.result:
            case (lowered, future):
                self.unit.join(program, lowered.stubs, lowered.declarations)
                work.declared.update(op.sym_name.data for op in lowered.declarations)
                work.add(future, lowered.messages)
            case MirError() as error:
                raise error
            case None:
                raise AssertionError("a unit was lowered to nothing")


def _build_kernels(work: _Build, units: Sequence[Unit] | None, program: ModuleOp, kernels: KernelCache | None) -> None:
    """Compiles units, or takes them from the cache, and joins them to the program.

    Without units, lowers the program as a whole.
    """
    if units is None:
        work.note_work(program)
        work.passes.run(kernel_passes(work.options), program)
        return
    jobs = [_Job.of(unit, kernels) for unit in units]
    for job in jobs:
        work.note_work(job.unit.module)
    if kernels is not None:
        _build_apart(work, jobs, kernels.process)
    for job in jobs if kernels is not None and kernels.process is not None else steps("kernels", jobs):
        job.join(work, program)


def _build_apart(work: _Build, jobs: Sequence[_Job], process: LoweringProcess | None) -> None:
    """Compiles kernels that are not in the cache, the largest first, with the help of other processes.

    Where a `process` was forked before, it and its forks lower them.
    """
    first = {job.candidate.key: job for job in reversed(jobs) if job.candidate is not None}
    unknown = [(job, job.candidate) for job in first.values() if job.candidate and not job.candidate.is_known()]
    unknown.sort(key=lambda each: -len(each[1].text))
    own = [job for job in jobs if job.candidate is None]
    if process is None:
        _build_by_workers(work, unknown, own)
        return
    if not unknown:
        process.close()
        _lower_own(work, own)
    else:
        lowered = process.lower_all([(candidate, job.unit) for job, candidate in unknown], work.options.entry)
        _lower_own(work, own)
        for number, answer in counted("kernels", lowered, len(jobs) - len(unknown), len(jobs)):
            job, candidate = unknown[number]
            if answer is None:
                job.lower(work)
            else:
                facts, text = answer
                candidate.keep(facts, work.pool.submit(text))
    work.pool.hurry()


def _lower_own(work: _Build, jobs: Sequence[_Job]) -> None:
    """Lowers kernels that are not cached, which no other process does."""
    for job in jobs:
        job.lower(work)


def _build_by_workers(work: _Build, unknown: Sequence[tuple[_Job, Candidate]], own: Sequence[_Job]) -> None:
    """Compiles unknown kernels and the process's `own` with forks of this process."""
    from .cache.kernels import finished
    from .workers import Workers

    tasks = [partial(job.compile, work) for job, _ in unknown]
    with Workers(_workers(len(unknown)), tasks) as workers:
        _lower_own(work, own)
        for task in workers.own_part():
            unknown[task][0].lower(work)
        work.pool.hurry()
        for task, (facts, data) in workers.answers().items():
            unknown[task][1].keep(facts, finished(data))
        for task in workers.crashed():
            unknown[task][0].result = _crash(unknown[task][1])


def _workers(kernels: int) -> int:
    """Returns how many other processes help to compile so many kernels."""
    from .workers import workers_wanted

    # Traces of passes are heard in this process only.
    return 0 if kernels < FEW or anyone_listens() else workers_wanted()


def _crash(candidate: Candidate) -> MirError:
    """Returns the error for a kernel that LLVM does not survive."""
    place = next((each for each in candidate.places if each is not None), None)
    location = UNKNOWN_LOC if place is None else file_loc(*place)
    return MirError(
        Diagnostic(f"LLVM ended the process that compiled kernel '{candidate.symbol}'", location).with_note(
            "this is a defect of LLVM or of what it was given, not of the program; opt_level=1 may avoid it"
        )
    )
