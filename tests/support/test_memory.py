"""Memory that kernels free stays with the process."""

from __future__ import annotations

import ctypes
import resource
import subprocess
import sys

import pytest

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
