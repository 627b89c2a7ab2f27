"""A call that ends with a failed check gives back the memory that it took."""

from pathlib import Path

import mirstack
import numpy as np
import pytest
from mirstack.support.diagnostics import MirError

STATM = Path("/proc/self/statm")
CODE = """@T.prim_func
def main(A: T.Buffer((8,), "int32")):
    X = T.alloc_buffer((1000000,), "int32")
    for i in range(1000000):
        X[i] = A[0]
    for i in range(8):
        assert A[i] == 0, "there is one that is not zero"
        A[i] = X[i * 2] + 1
"""


@pytest.mark.skipif(not STATM.exists(), reason="the process's size is read from Linux's /proc")
def test_failed_calls_do_not_pile_up():
    function = mirstack.compile(mirstack.parse(CODE))
    array = np.ones(8, np.int32)
    sizes: list[int] = []
    for _ in range(40):
        with pytest.raises(MirError, match="there is one that is not zero"):
            function(array)
        sizes.append(int(STATM.read_text().split()[1]))
    # In pages of 4 KiB or more: one call takes about a thousand, so that 35 of them would be 35,000. A few are the process's own.
    assert sizes[-1] - sizes[4] < 9000
    array[:] = 0
    function(array)
    assert (array == 1).all()
