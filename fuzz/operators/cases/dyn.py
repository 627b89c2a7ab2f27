"""Cases of enlarging by factors that are arguments."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from ..sampling import FLOATS, array, case, use


def _factor(value: float) -> st.SearchStrategy[np.ndarray]:
    return st.just(np.array(value, np.float32))


case(
    "dyn.nn.upsampling",
    use(array((1, 2, 2, 3), FLOATS), _factor(2), _factor(3)),
    lambda a, x, h, w: x.repeat(2, 2).repeat(3, 3),
)
case(
    "dyn.nn.upsampling3d",
    use(
        array((1, 2, 2, 3, 1), FLOATS), _factor(2), _factor(1), _factor(2), coordinate_transformation_mode="asymmetric"
    ),
    lambda a, x, d, h, w: x.repeat(2, 2).repeat(2, 4),
)
