"""Functions of schedule rules' conditions: of the kernel, and of the processor that it is for.

    rule for nn.dense(%x, %w) where operators() == 1, has_feature("avx2"), $lanes = lanes(%x.dtype)

Other rules know neither.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from ...support.target import Target
from .functions import FUNCTIONS, NoMatch, named_function


@dataclass(frozen=True)
class Kernel:
    """A kernel that a rule is tried at: how many operators it has, and the processor that it is for."""

    operators: int
    target: Target


_KERNEL: ContextVar[Kernel | None] = ContextVar("kernel", default=None)
_BEFORE = frozenset(FUNCTIONS)


@contextmanager
def at_kernel(kernel: Kernel) -> Generator[None]:
    """While inside, conditions are of this kernel."""
    token = _KERNEL.set(kernel)
    try:
        yield
    finally:
        _KERNEL.reset(token)


def _kernel() -> Kernel:
    found = _KERNEL.get()
    if found is None:
        raise NoMatch
    return found


@named_function(arity=0)
def operators() -> int:
    """how many operators a kernel has; in schedule rules only, as are the functions of its processor"""
    return _kernel().operators


@named_function(arity=1)
def lanes(dtype: str) -> int:
    """how many elements of a dtype a vector of the processor holds; in schedule rules"""
    from ..array_box import numpy_dtype

    return _kernel().target.lanes(numpy_dtype(dtype).itemsize)


@named_function(arity=0)
def vector_registers() -> int:
    """how many vector registers the processor has; in schedule rules"""
    return _kernel().target.vector_registers


@named_function(arity=1)
def cache_bytes(level: int) -> int:
    """bytes of the data cache of level 1, 2 or 3 that a core may count on; in schedule rules"""
    target = _kernel().target
    return (target.l1, target.l2, target.l3)[range(1, 4).index(level)]


@named_function(arity=0)
def cores() -> int:
    """how many threads parallel loops may use; in schedule rules"""
    return _kernel().target.cores


@named_function(arity=1)
def has_feature(name: str) -> bool:
    """whether the processor has instructions by their name, such as "vnni" or "avx2"; in schedule rules"""
    return name in _kernel().target.features


@named_function(arity=0)
def architecture() -> str:
    """the kind of processor: "x86_64", "aarch64", "riscv64", "arm" or "wasm32"; in schedule rules"""
    return _kernel().target.arch


KERNEL_FUNCTIONS = frozenset(FUNCTIONS) - _BEFORE
