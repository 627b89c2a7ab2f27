"""Memory that kernels free stays with the process; new memory is there when it is written to."""

from __future__ import annotations

import ctypes
import mmap
import resource
import subprocess
import sys

import pytest
from mirstack.support.memory import LARGE_PAGE, pages

PROGRAM = """
import ctypes, resource
import mirstack, numpy as np
run = mirstack.compile(mirstack.parse('''
def @main(%x: Tensor[(1, 64, 28, 28), float32], %w: Tensor[(64, 8, 3, 3), float32]) {
  nn.conv2d(%x, %w, padding=[1, 1, 1, 1], groups=8, channels=64, kernel_size=[3, 3])
}'''), threads=1, opt_level=1)
run(np.ones((1, 64, 28, 28), "float32"), np.ones((64, 8, 3, 3), "float32"))
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
def use():
    blocks = [libc.malloc(3 << 20) for _ in range(4)]
    for block in blocks:
        ctypes.memset(block, 1, 3 << 20)
    for block in blocks:
        libc.free(block)
use()
use()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    use()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="the C library is not glibc")
def test_temporary_buffers_are_not_asked_for_again() -> None:
    """Four blocks of 3 MB, as a kernel with temporary buffers takes them."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < (3 << 20) // resource.getpagesize()


@pytest.mark.parametrize("size", [1, 4096, 1 << 20, (2 * LARGE_PAGE) + 1])
def test_new_memory_is_empty_and_can_be_written(size: int) -> None:
    found = pages(size)
    assert len(found) == size and not any(found[:: max(1, size // 1000)])
    found[-1] = 7
    assert found[-1] == 7


@pytest.mark.skipif(not hasattr(mmap, "MAP_POPULATE"), reason="the system fills no pages in advance")
def test_new_memory_is_there_when_it_is_first_written_to() -> None:
    size = LARGE_PAGE
    found = pages(size)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    found[:: resource.getpagesize()] = bytes(size // resource.getpagesize())
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < size // resource.getpagesize() // 4
