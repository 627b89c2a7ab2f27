"""Compiles a program for several processors: the levels of a package or of a library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ....support.diagnostics import Diagnostic, MirError
from ....support.garbage import no_collection
from ....support.target import Target, llvm_name, missing_here, named
from ....support.xdsl_patches import apply
from ...options import Options, target_of
from ..processor import with_processor
from ..program import KernelProgram, Program, RelayProgram
from ..source import ProgramSource
from .kernel_library import as_level
from .library_ir import LibraryLevel, for_processor
from .package import Level
from .prepack import prepacked, prepacked_by_text
from .stripe_checksum import checksum_object

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

Shapes = Mapping[str, Sequence[int]]


@dataclass(frozen=True)
class Wanted:
    """An entry of a source that is built by options for some processors.

    A module is compiled for each of them, and stays as it is. `cpus` has None for this machine.
    """

    source: ProgramSource | ModuleOp
    entry: str | None
    options: Options
    shapes: Shapes
    cpus: tuple[str | None, ...] = (None,)

    def each(self) -> list[tuple[Options, Target]]:
        """Returns the options and the description of each processor, that with the most first."""
        found: list[tuple[Options, Target]] = []
        for wanted in self.cpus:
            cpu = with_processor(replace(self.options, cpu=wanted), self.source).cpu
            described = named(cpu or "", self.options.threads, self.options.caches)
            # What the code needs is what the processor has, whatever a description leaves to schedules.
            target = named(llvm_name(cpu) or "", self.options.threads, self.options.caches)
            known = target_of(replace(self.options, cpu=cpu)).resolved()[1] if cpu is None else described.name
            found.append((replace(self.options, cpu=cpu), replace(target, name=known)))
        kinds = {target.arch for _, target in found}
        if len(kinds) > 1:
            raise MirError(
                Diagnostic(f"processors of several kinds are asked for: {', '.join(sorted(kinds))}").with_note(
                    "build a file for each kind"
                )
            )
        return sorted(found, key=lambda each: (each[1].vector_bytes, len(each[1].features)), reverse=True)

    def taken(self) -> ProgramSource | ModuleOp:
        """Returns the source, or a copy of a module, which compiling uses up."""
        return self.source if isinstance(self.source, ProgramSource) else self.source.clone()


@no_collection()
def package_levels(wanted: Wanted) -> list[Level]:
    """Returns the program as objects for each processor. Raises MirError for what cannot be compiled."""
    from ...llvm.jit.codegen_process import start
    from ..cache.kernels import KernelCache
    from ..cache.keys import digest
    from ..compile import compiled_program

    start()
    apply()
    levels: list[Level] = []
    for options, target in wanted.each():
        machine = target_of(options)
        # Names of kernels follow from this key: they must not change with the time of an installation.
        kernels = KernelCache(None, digest(machine.describe(), str(options.threads)))
        program, _, _ = compiled_program(wanted.taken(), wanted.entry, options, (), kernels, wanted.shapes)
        if isinstance(program, RelayProgram) and program.prepared:
            if missing_here(target.arch, target.vector_bytes, target.features) is None:
                program = prepacked(program, program.objects)
            else:
                program = prepacked_by_text(program, _text_of(wanted, options)[1], target)
        levels.append(Level(target, machine.resolved()[0], program, checksum_object(machine)))
    return levels


def _text_of(wanted: Wanted, options: Options) -> tuple[Program, str]:
    """Returns the program, and the LLVM IR of all its functions."""
    from ..build import TextBuilder
    from ..compile import compiled_program

    _, cpu, features = target_of(options).resolved()
    builder = TextBuilder(for_processor(named(options.cpu or "").arch, cpu, features))
    program, _, _ = compiled_program(wanted.taken(), wanted.entry, options, (), None, wanted.shapes, builder)
    return program, builder.text


@no_collection()
def library_levels(wanted: Wanted) -> tuple[list[LibraryLevel], KernelProgram | None]:
    """Returns the program as LLVM IR for each processor, and a function of TE or TIR as such.

    Raises MirError for what cannot be compiled.
    """
    apply()
    levels: list[LibraryLevel] = []
    kernel: KernelProgram | None = None
    for options, target in wanted.each():
        program, text = _text_of(wanted, options)
        if isinstance(program, RelayProgram):
            levels.append(LibraryLevel(target, prepacked_by_text(program, text, target), text))
        else:
            kernel = program
            levels.append(LibraryLevel(target, as_level(program), text))
    return levels, kernel
