"""Cases of annotations and explicit memory."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from relay_cases import ALL, array, case, use

case("annotation.stop_fusion annotation.checkpoint on_device", use(array(dtypes=ALL)), lambda a, x: x)
case("annotation.compiler_begin annotation.compiler_end", use(array(dtypes=ALL), compiler="dnnl"), lambda a, x: x)
case("annotation.stop_fusion", use(st.tuples(array(), array())), lambda a, xs: xs)
SCALAR = st.integers(64, 128).map(lambda v: np.array(v, np.int64))
case(
    "memory.alloc_storage",
    use(SCALAR, st.just(np.array([4], np.int64)), st.just(np.array(64, np.int64))),
    lambda a, size, shape, alignment: np.zeros(size, np.uint8),
    unknown=False,
)
case("memory.kill", use(array()), lambda a, x: ())
case(
    "memory.alloc_tensor",
    use(
        st.just(np.arange(64, dtype=np.uint8)),
        st.just(np.array(8, np.int64)),
        st.just(np.array([3], np.int64)),
        assert_shape=st.just((3,)),
        dtype="float32",
    ),
    lambda a, storage, offset, shape: np.frombuffer(bytes(range(8, 20)), np.float32),
)
