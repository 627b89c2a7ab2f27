"""Defines the options of compilation, and the target of the code generator for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..support.target import foreign_triple, llvm_name, whole_triple

if TYPE_CHECKING:
    from .llvm.jit.load import Target


@dataclass(frozen=True)
class Options:
    """The options of compilation.

    `cpu` is LLVM's `-mcpu`, None for this machine; `triple` likewise. `caches` are the sizes of the data caches where they differ from
    the known ones (`support.target.named`). `allow_extern` are C functions that the program may call besides those that every program
    may (`externs.py`). With `strict_math` floats are computed as the interpreter computes them, except for the order of sums
    (docs/rules.md). With `profile` functions record when each kernel runs (docs/see-inside.md); kernels are the same. With `debug_info`
    machine code carries the lines of the source for debuggers, and is otherwise the same.
    """

    entry: str = "main"
    opt_level: int = 3
    cpu: str | None = None
    triple: str | None = None
    threads: int | None = None
    caches: str = ""
    allow_extern: tuple[str, ...] = ()
    strict_math: bool = False
    profile: bool = False
    debug_info: bool = False


DEFAULT = Options()


def target_of(options: Options) -> Target:
    """Returns the target of the code generator for these options."""
    from .llvm.jit.load import Target

    triple = whole_triple(options.triple) if options.triple else foreign_triple(options.cpu)
    return Target(triple=triple, cpu=llvm_name(options.cpu), opt_level=options.opt_level)
