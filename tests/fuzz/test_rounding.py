"""How far results may be from each other follows from how often they are rounded."""

from __future__ import annotations

import numpy as np
from mirstack.fuzz.relay.rounding import Rounding, difference, run
from mirstack.parser import parse_mir


def test_sums_of_equal_terms_lean_to_one_side() -> None:
    """Four lanes that add up the same numbers each are rounded alike; what is far more than that is a difference."""
    module = parse_mir("def @main(%x: Tensor[(67, 67), float32]) { sum(%x) }")
    four = np.array([0.5563415884971619, 0.2665187120437622, -0.8744869232177734, -1.6076582670211792], np.float32)
    x = np.resize(four, (67, 67))
    exact = x.sum(dtype=np.float64)
    in_lanes = np.cumsum(x.ravel()[:-1].reshape(1122, 4), 0)[-1].sum() + x[-1, -1]
    for computed, is_fine in ((in_lanes, True), (1.004 * exact, False)):
        said = difference(module, [x], [np.asarray(exact, np.float32)], [np.asarray(computed, np.float32)], Rounding())
        assert (said is None) == is_fine


def test_numbers_that_are_one_in_half_precision() -> None:
    """0 and the smallest float64 are equal in float16, whatever else rounding may do."""
    module = parse_mir("def @main(%x: float64, %y: float64) { equal(%x, %y) }")
    inputs = [np.asarray(0.0), np.asarray(5e-324)]
    for rounding, is_fine in (
        (Rounding(), False),
        (Rounding(unit=2.0**-11, absolute=2.0**-25, narrow=np.float16), True),
    ):
        said = difference(module, inputs, [np.asarray(False)], [np.asarray(True)], rounding)
        assert (said is None) == is_fine


def test_normalizations_sum_on_their_way() -> None:
    """A mean of 1,922 numbers in their order is off by more than one rounding, and so is what is divided by the deviation."""
    text = """def @main(%x: Tensor[(1, 31, 4, 31), float32], %g: Tensor[(4), float32], %b: Tensor[(4), float32]) {
      nn.group_norm(%x, %g, %b, num_groups=2, axis=2) }"""
    module = parse_mir(text)
    rng = np.random.default_rng(0)
    inputs = [rng.normal(3, 1, (1, 31, 4, 31)).astype(np.float32), np.ones(4, np.float32), np.zeros(4, np.float32)]
    (exact,) = run(module, inputs)
    for factor, is_fine in ((1 + 6e-6, True), (1 + 1e-3, False)):
        computed = (exact * np.float32(factor)).astype(np.float32)
        assert (difference(module, inputs, [exact], [computed], Rounding()) is None) == is_fine
