"""Draws tensor expressions of one dtype: elementwise chains, windows, sums, argmax, scans.

```python
A = te.placeholder((5, n), "int32", name="A")
k = te.reduce_axis((0, 5), name="k0")
S0 = te.compute((n,), lambda i: te.max(A[k, i] + A[4 - k, i], axis=k), name="S0")
```
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...dialects.array import numpy_dtype
from ...dialects.te import FuncOp
from ...dialects.te import builder as te
from ..relay.single import with_specials

DTYPES = ("int32", "int32", "float32", "float32", "float64", "int64", "int8", "uint8", "int16", "uint32", "float16")
SIZES = (1, 1, 2, 3, 4, 5, 7, 8, 9, 13)


@dataclass
class TensorProgramWriter:
    """Builds one function of tensors that read each other."""

    rng: random.Random
    tensors: list[Any] = field(default_factory=list[Any])
    inputs: dict[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    drawn: set[str] = field(default_factory=set[str])

    def function(self) -> FuncOp:
        """Draws the function `main`, whose last parameter is computed."""
        rng = self.rng
        self.dtype = rng.choice(DTYPES)
        self.symbolic = rng.random() < 0.25
        sizes = (*SIZES, 0, 0) if self.symbolic else SIZES
        n, m = rng.choice(sizes), rng.choice(sizes)
        self.sizes = (n, m)
        self.dims: tuple[Any, Any] = (te.var("n"), te.var("m")) if self.symbolic else (n, m)
        self.params: list[Any] = []
        for name in ("A", "B")[: rng.randint(1, 2)]:
            self.params.append(te.placeholder(self.dims, self.dtype, name))
            self.inputs[name] = self.array((n, m))
        self.tensors += self.params
        for place in range(rng.randint(1, 4)):
            made = rng.choice(
                (
                    self.by_element,
                    self.by_element,
                    self.window,
                    self.reduction,
                    self.reduction,
                    self.place_of_most,
                    self.scan,
                )
            )
            self.drawn.add(made.__name__)
            self.tensors.append(made(f"S{place}"))
        last = self.tensors[-1]
        self.params.append(last)
        self.inputs[last.name] = np.zeros(self.sizes, numpy_dtype(last.dtype))
        return te.func("main", self.params)

    def array(self, shape: tuple[int, int]) -> np.ndarray:
        """Draws small numbers, seldom special ones."""
        draw = np.random.default_rng(self.rng.randrange(1 << 30))
        low = 0 if self.dtype.startswith("u") else -9
        made = np.asarray(draw.integers(low, 10, shape)).astype(numpy_dtype(self.dtype))
        return with_specials(made, self.rng) if self.rng.random() < 0.15 else made

    def source(self) -> Any:
        """Draws a tensor that is read; the latest more often."""
        return self.tensors[-1] if self.rng.random() < 0.6 else self.rng.choice(self.tensors)

    def constant(self) -> Any:
        """Draws a number of the dtype."""
        return te.const(self.rng.randint(0, 3), self.dtype)

    def read(self, tensor: Any, i: Any, j: Any) -> Any:
        """Draws an element, perhaps at a mirrored place."""
        n, m = self.dims
        kind = self.rng.randrange(6)
        if kind == 0:
            i = n - 1 - i
        elif kind == 1:
            j = m - 1 - j
        elif kind == 2 and not self.symbolic:
            i, j = (i * m + j) // m % n, (j + 1) % m
        return tensor[i, j]

    def by_element(self, name: str) -> Any:
        """Draws a function of the same element of others, or of mirrored ones."""
        a, b, rng = self.source(), self.source(), self.rng
        number = self.constant()
        forms: list[Callable[[Any, Any], Any]] = [
            lambda x, y: x * number + y,
            lambda x, y: x - y,
            lambda x, y: te.max(x, y),
            lambda x, y: te.min(x, y) + number,
            lambda x, y: te.Select(x < y, x, y * number),
            lambda x, y: te.if_then_else(x < y, x + number, y),
        ]
        if "float" in self.dtype:
            forms += [
                lambda x, y: te.exp(te.min(x, number)) + y,
                lambda x, y: te.sqrt(te.abs(x)) * y,
                lambda x, y: te.tanh(x) - y,
            ]
        form = rng.choice(forms)
        places = rng.randrange(1 << 30)

        def element(i: Any, j: Any) -> Any:
            self.rng = random.Random(places)
            try:
                return form(self.read(a, i, j), self.read(b, i, j))
            finally:
                self.rng = rng

        return te.compute(self.dims, element, name=name)

    def window(self, name: str) -> Any:
        """Draws a function of neighbours, those outside replaced by a number."""
        a, number = self.source(), self.constant()
        n, m = self.dims
        di, dj = self.rng.randint(-1, 1), self.rng.randint(-2, 2)

        def element(i: Any, j: Any) -> Any:
            inside = te.all(i + di >= 0, i + di < n, j + dj >= 0, j + dj < m)
            return a[i, j] + te.if_then_else(inside, a[i + di, j + dj], number)

        return te.compute(self.dims, element, name=name)

    def reduction(self, name: str) -> Any:
        """Draws a sum, a product or an extreme along a row or a column, or of a product of two."""
        a, b, rng = self.source(), self.source(), self.rng
        n, m = self.dims
        reducer = rng.choice((te.sum, te.sum, te.max, te.min))
        form = rng.randrange(4)
        if form == 0:
            k = te.reduce_axis((0, m), name=f"k{name}")
            return te.compute(self.dims, lambda i, j: reducer(a[i, k] * b[i, j], axis=k), name=name)
        if form == 1:
            k = te.reduce_axis((0, n), name=f"k{name}")
            return te.compute(self.dims, lambda i, j: reducer(a[k, j] + b[i, j], axis=k), name=name)
        if form == 2:
            k, q = (
                te.reduce_axis((0, n), name=f"k{name}"),
                te.reduce_axis((0, rng.choice((0, 1, 2, 3))), name=f"q{name}"),
            )
            return te.compute(
                self.dims, lambda i, j: reducer(a[k, j] * (q + i % 3).astype(self.dtype), axis=[k, q]), name=name
            )
        k = te.reduce_axis((0, m), name=f"k{name}")
        return te.compute(self.dims, lambda i, j: reducer(a[i, k], axis=k, where=k <= j), name=name)

    def place_of_most(self, name: str) -> Any:
        """Draws the largest of a row and its place, by a reducer of two values.

        What is not above the number that it begins with is read as 1: of that and of NaN the place depends on the order. Of equal numbers
        the first counts, in whatever order they come.
        """
        a = self.source()

        def read(i: Any, k: Any) -> Any:
            value = a[i, k]
            return te.Select(value > te.min_value(self.dtype), value, te.const(1, self.dtype))

        k = te.reduce_axis((0, self.dims[1]), name=f"k{name}")

        def combine(x: Any, y: Any) -> Any:
            place = te.Select(x[1] > y[1], x[0], te.Select(x[1] >= y[1], te.min(x[0], y[0]), y[0]))
            return place, te.Select(x[1] >= y[1], x[1], y[1])

        def identity(*dtypes: str) -> Any:
            return te.const(-1, dtypes[0]), te.min_value(dtypes[1])

        reducer = te.comm_reducer(combine, identity, name="most")
        index, value = te.compute(self.dims, lambda i, j: reducer((k + j * 0, read(i, k)), axis=k), name=f"{name}_")
        return te.compute(self.dims, lambda i, j: value[i, j] + index[i, j].astype(self.dtype), name=name)

    def scan(self, name: str) -> Any:
        """Draws a scan: each row is computed from the row before it."""
        a, number = self.source(), self.constant()
        n, m = self.dims
        state = te.placeholder((n, m), self.dtype, f"{name}_state")
        first = te.compute((1, m), lambda _, j: a[0, j], name=f"{name}_init")
        update = te.compute((n, m), lambda t, j: state[t - 1, j] + a[t, j] * number, name=f"{name}_update")
        scanned = te.scan(first, update, state, inputs=[a], name=f"{name}_scan")
        return te.compute(self.dims, lambda i, j: scanned[i, j] + number, name=name)
