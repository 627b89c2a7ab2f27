"""Cases of annotations and explicit memory."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from ..sampling import ALL, array, case, use

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
case(
    "memory.alloc_tensor",
    use(
        st.just(np.arange(64, dtype=np.uint8)),
        st.just(np.array(8, np.int64)),
        st.just(np.array([], np.int64)),
        assert_shape=st.just(()),
        dtype="float32",
    ),
    lambda a, storage, offset, shape: np.frombuffer(bytes(range(8, 12)), np.float32).reshape(()),
)
case("annotation.bitpack_start annotation.bitpack_end", use(array(dtypes=ALL)), lambda a, x: x)
case("annotation.cast_hint", use(array(), dtype="float16"), lambda a, x: x)
case(
    "vm.shape_of",
    use(array(), dtype=st.sampled_from(("int32", "int64"))),
    lambda a, x: np.array(list(x.shape), a.dtype),
)
case(
    "vm.reshape_tensor",
    use(array((2, 3)), st.just(np.array([3, 2], np.int64)), newshape=st.just((3, 2))),
    lambda a, x, shape: np.array([[x[0, 0], x[0, 1]], [x[0, 2], x[1, 0]], [x[1, 1], x[1, 2]]]),
)
