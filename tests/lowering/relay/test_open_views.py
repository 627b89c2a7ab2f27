"""Open reshapes are views of their argument: what is computed with both, and what is returned, is as with copies."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack.lowering.driver.build import llvm_text

PROGRAMS = {
    "both are used": "let %v = reshape(%y, newshape=[-1, 2]); (sum(%v, axis=[0]), add(%y, %y))",
    "a view of a parameter is returned": "reshape(%x, newshape=[-1, 2])",
    "a parameter and its view are returned": "(%x, reshape(%x, newshape=[-1, 2]), reshape(%x, newshape=[-1]))",
    "a view of a view": "transpose(reshape(reshape(%y, newshape=[-1]), newshape=[-1, 2]))",
    "a view is in a tuple": "let %t = (reshape(%y, newshape=[-1, 2]), %y); concatenate((%t.0, reshape(%t.1, newshape=[-1, 2])), axis=0)",
    "a branch returns a view": "if (less(min(%y), 0f)) { reshape(%y, newshape=[-1, 2]) } else { reshape(exp(%y), newshape=[-1, 2]) }",
    "its argument is dead after it": "let %v = reshape(exp(%y), newshape=[-1, 2]); let %w = multiply(%v, 2f); add(%w, exp(%w))",
}


def results(found: Any) -> tuple[np.ndarray, ...]:
    """Returns the results of a program, of one or several."""
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize("body", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_views_are_as_copies(body: str) -> None:
    text = f"def @main(%x: Tensor[(?, 4), float32]) {{ let %y = negative(%x); {body} }}"
    native = mirstack.compile(mirstack.parse(text), specialize=False)
    meaning = mirstack.compile(mirstack.parse(text), target="interp")
    for rows in (1, 3, 0, 5):
        x = np.random.default_rng(rows).standard_normal((rows, 4)).astype("float32")
        if rows == 0 and "min" in body:
            continue  # There is no least element.
        given = x.copy()
        found, wanted = results(native(x)), results(meaning(x))
        kept = [(got.copy(), want) for got, want in zip(found, wanted, strict=True)]
        # Neither a later call nor writing to the argument changes results.
        native(np.full((rows + 1, 4), 7, "float32"))
        x[...] = -1
        for (got, want), now in zip(kept, found, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-6)
            np.testing.assert_array_equal(now, got)
        np.testing.assert_array_equal(results(native(given))[0], kept[0][0])


def test_rows_that_a_loop_reshapes() -> None:
    """A function that calls itself makes a view in each iteration."""
    text = """
    def @loop(%n: int32, %x: Tensor[(?, 2), float32]) -> Tensor[(?, 2), float32] {
      if (equal(%n, 0)) { %x } else {
        let %flat = reshape(%x, newshape=[-1]);
        @loop(subtract(%n, 1), reshape(add(%flat, 1f), newshape=[-1, 2]))
      }
    }
    def @main(%n: int32, %x: Tensor[(?, 2), float32]) { @loop(%n, %x) }
    """
    run = mirstack.compile(mirstack.parse(text), specialize=False)
    for rows, count in ((1, 0), (3, 1), (4, 50)):
        x = np.arange(2 * rows, dtype="float32").reshape(rows, 2)
        np.testing.assert_array_equal(run(np.array(count, "int32"), x), x + count)
        np.testing.assert_array_equal(x, np.arange(2 * rows, dtype="float32").reshape(rows, 2))


def test_a_view_needs_no_memory_and_no_kernel() -> None:
    text = "def @main(%x: Tensor[(?, 4), float32]) { let %y = exp(%x); nn.softmax(reshape(%y, newshape=[-1, 2])) }"
    code = llvm_text(mirstack.parse(text)).split("define internal i32 @main")[1].split("\n}")[0]
    assert "@fused_exp(" in code and "@fused_reshape(" not in code
