"""Core ATen operators against torch: drawn shapes, dtypes and arguments, interpreted; one case of each also as native code."""

from __future__ import annotations

from collections.abc import Callable
from operator import getitem
from typing import Any

import mirstack
import numpy as np
import pytest
from extras import library
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.extra
torch = library("torch", "torch")

from mirstack.frontends.torch.importer import import_graph  # noqa: E402
from mirstack.frontends.torch.registry import TABLE  # noqa: E402
from mirstack.frontends.torch.tensors import to_numpy  # noqa: E402

aten = torch.ops.aten

MISSING = {
    "rand.default": "random numbers",
    "randn.default": "random numbers",
    "randperm.default": "random numbers",
}
"""The operators that cannot be imported, and why."""
COMPLEX = ("_fft_c2r.default", "_fft_r2c.default")
"""Operators on complex tensors, which are not results of programs: tested in `test_complex_tensors.py`."""

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("int8", "uint8", "int16", "int32", "int64")
TOLERANCE = {"float32": 2e-5, "float64": 1e-9, "float16": 4e-3, "bfloat16": 4e-2}


class Draw:
    """Draws arguments of a case."""

    def __init__(self, data: st.DataObject):
        self.data = data

    def one_of(self, *values: Any) -> Any:
        return self.data.draw(st.sampled_from(values))

    def integer(self, low: int, high: int) -> int:
        return self.data.draw(st.integers(low, high))

    def flag(self) -> bool:
        return self.data.draw(st.booleans())

    def shape(self, low: int = 0, high: int = 4, most: int = 4, least: int = 1) -> list[int]:
        return self.data.draw(st.lists(st.integers(least, most), min_size=low, max_size=high))

    def tensor(self, shape: list[int] | None = None, dtype: str | None = None, low: float = -3, high: float = 3) -> Any:
        """Returns numbers in a range; of halves and whole numbers some, too."""
        shape = self.shape() if shape is None else shape
        kind: str = dtype or str(self.one_of("float32", "float32", "float32", "float64", "float16", "bfloat16"))
        generator = torch.Generator().manual_seed(self.integer(0, 1000))
        if kind == "bool":
            return torch.randint(0, 2, shape, generator=generator).bool()
        if not kind.startswith(("float", "bfloat")):
            low = max(low, 0) if kind == "uint8" else low
            return torch.randint(int(low), int(high) + 1, shape, generator=generator).to(getattr(torch, kind))
        values = low + (high - low) * torch.rand(shape, generator=generator, dtype=torch.float64)
        if self.flag():
            values = torch.clamp((values * 2).round() / 2, low, high)
        return values.to(getattr(torch, kind))

    def any_dtype(self) -> str:
        return self.one_of(*FLOATS, *INTEGERS, "bool")

    def broadcast(self, shape: list[int]) -> list[int]:
        """Returns a shape that broadcasts to another."""
        kept = shape[self.integer(0, len(shape)) :]
        return [1 if self.flag() else size for size in kept]

    def axis(self, shape: list[int] | Any) -> int:
        rank = len(shape)
        return self.integer(-rank, rank - 1) if rank else 0

    def axes(self, shape: list[int]) -> list[int]:
        return [axis for axis in range(len(shape)) if self.flag()]


Case = tuple[Any, ...]
"""The positional arguments, and perhaps a dictionary of those by name."""
CASES: dict[str, Callable[[Draw], Case]] = {}


def case(*names: str) -> Callable[[Callable[[Draw], Case]], Callable[[Draw], Case]]:
    def add(function: Callable[[Draw], Case]) -> Callable[[Draw], Case]:
        for name in names:
            assert name not in CASES
            CASES[name] = function
        return function

    return add


def _unary(low: float, high: float, dtypes: tuple[str, ...] = FLOATS) -> Callable[[Draw], Case]:
    return lambda d: (d.tensor(dtype=d.one_of(*dtypes), low=low, high=high),)


NUMBERS = (*FLOATS, *INTEGERS)
for _name, _low, _high, _dtypes in (
    ("abs", -3, 3, NUMBERS), ("acos", -1, 1, FLOATS), ("acosh", 1, 5, FLOATS), ("asin", -1, 1, FLOATS), ("asinh", -3, 3, FLOATS),
    ("atan", -3, 3, NUMBERS), ("atanh", -0.9, 0.9, FLOATS), ("ceil", -3, 3, NUMBERS), ("cos", -3, 3, NUMBERS), ("cosh", -3, 3, FLOATS),
    ("erf", -3, 3, FLOATS), ("exp", -3, 3, (*NUMBERS, "bool")), ("expm1", -2, 2, FLOATS), ("floor", -3, 3, NUMBERS), ("log", 0.1, 5, FLOATS),
    ("log10", 0.1, 5, FLOATS), ("log1p", -0.9, 3, FLOATS), ("log2", 0.1, 5, FLOATS), ("neg", -3, 3, NUMBERS), ("reciprocal", 1, 3, NUMBERS),
    ("relu", -3, 3, NUMBERS), ("round", -3, 3, NUMBERS), ("rsqrt", 0.1, 3, FLOATS), ("sigmoid", -3, 3, NUMBERS),
    ("sign", -3, 3, (*NUMBERS, "bool")), ("sin", -3, 3, NUMBERS), ("sinh", -3, 3, FLOATS), ("sqrt", 0, 5, NUMBERS), ("tan", -1, 1, FLOATS),
    ("tanh", -3, 3, NUMBERS), ("trunc", -3, 3, NUMBERS), ("bitwise_not", -3, 3, (*INTEGERS, "bool")),
    ("logical_not", -1, 1, (*NUMBERS, "bool")), ("isnan", -1, 1, NUMBERS), ("isinf", -1, 1, NUMBERS), ("alias", -1, 1, NUMBERS),
    ("clone", -1, 1, (*NUMBERS, "bool")),
):  # fmt: skip
    case(f"{_name}.default")(_unary(_low, _high, _dtypes))


def _pair(dtypes: tuple[str, ...], low: float = -3, high: float = 3, mixed: bool = True) -> Callable[[Draw], Case]:
    def draw(d: Draw) -> Case:
        shape, dtype = d.shape(), d.one_of(*dtypes)
        other = d.one_of(*dtypes) if mixed and d.flag() else dtype
        return d.tensor(shape, dtype, low, high), d.tensor(d.broadcast(shape), other, low, high)

    return draw


def _scalar(
    dtypes: tuple[str, ...], numbers: tuple[Any, ...], low: float = -3, high: float = 3
) -> Callable[[Draw], Case]:
    return lambda d: (d.tensor(dtype=d.one_of(*dtypes), low=low, high=high), d.one_of(*numbers))


ALL = (*NUMBERS, "bool")
WHOLE = (*INTEGERS, "bool")
for _name, _dtypes, _numbers in (
    ("eq", ALL, (1, 0.5)), ("ne", ALL, (1, 0.5)), ("lt", ALL, (1, 0.5)), ("le", ALL, (1, 0.5)), ("gt", ALL, (1, 0.5)), ("ge", ALL, (1, 0.5)),
    ("mul", ALL, (2, 0.5)), ("bitwise_and", WHOLE, (1, 3)), ("bitwise_or", WHOLE, (1, 3)), ("bitwise_xor", WHOLE, (1, 3)),
):  # fmt: skip
    case(f"{_name}.Tensor")(_pair(_dtypes))
    case(f"{_name}.Scalar")(_scalar(_dtypes, _numbers))
for _name in ("maximum", "minimum", "logical_and", "logical_or", "logical_xor"):
    case(f"{_name}.default")(_pair(ALL))
for _name in ("fmod", "remainder"):
    case(f"{_name}.Tensor")(
        lambda d: (
            d.tensor(shape := d.shape(), dtype := d.one_of(*FLOATS[:2], *INTEGERS)),
            d.tensor(shape, dtype, 1, 3),
        )
    )
    case(f"{_name}.Scalar")(_scalar((*FLOATS[:2], *INTEGERS), (2, 3)))


@case("add.Tensor", "sub.Tensor")
def _add(d: Draw) -> Case:
    x, y = _pair(NUMBERS)(d)
    return x, y, {"alpha": d.one_of(1, 2)}


@case("add.Scalar", "sub.Scalar")
def _add_scalar(d: Draw) -> Case:
    return *_scalar(NUMBERS, (2, 1.5))(d), d.one_of(1, 2)


case("div.Tensor")(_pair(NUMBERS, 1, 4))
case("div.Scalar")(_scalar(NUMBERS, (2, 1.5)))
case("div.Tensor_mode")(
    lambda d: (*_pair((*FLOATS[:2], *INTEGERS), 1, 5, False)(d), {"rounding_mode": d.one_of(None, "floor", "trunc")})
)
case("div.Scalar_mode")(
    lambda d: (*_scalar((*FLOATS[:2], *INTEGERS), (2, 3))(d), {"rounding_mode": d.one_of(None, "floor", "trunc")})
)
case("pow.Tensor_Tensor")(_pair(FLOATS, 0.5, 3))
case("pow.Tensor_Scalar")(_scalar(NUMBERS, (2, 3, 1), 1, 3))
case("pow.Scalar")(lambda d: (d.one_of(2, 1.5), d.tensor(dtype=d.one_of(*FLOATS))))
case("atan2.default")(_pair(FLOATS, mixed=False))


@case("atan2.out")
def _atan2_out(d: Draw) -> Case:
    shape = d.shape()
    return d.tensor(shape, "float32"), d.tensor(shape, "float32"), {"out": torch.zeros(shape)}


case("where.self")(
    lambda d: (
        d.tensor(shape := d.shape(), "bool"),
        d.tensor(shape, dtype := d.any_dtype()),
        d.tensor(d.broadcast(shape), dtype),
    )
)
case("clamp.default")(lambda d: (d.tensor(dtype=d.one_of(*NUMBERS)), d.one_of(None, -1, 0), d.one_of(1, 2)))
case("clamp.Tensor")(
    lambda d: (
        d.tensor(shape := d.shape(), "float32"),
        d.tensor(d.broadcast(shape), "float32"),
        d.one_of(None, d.tensor(shape, "float32")),
    )
)
case("hardtanh.default")(lambda d: (d.tensor(dtype=d.one_of(*FLOATS)), d.one_of(-1, -0.5), d.one_of(1, 2)))
case("leaky_relu.default")(lambda d: (d.tensor(), d.one_of(0.01, 0.5)))
case("elu.default")(lambda d: (d.tensor(), d.one_of(1, 0.5), d.one_of(1, 2), d.one_of(1, 1.5)))
case("gelu.default")(lambda d: (d.tensor(), {"approximate": d.one_of("none", "tanh")}))
case("_to_copy.default")(lambda d: (d.tensor(dtype=d.any_dtype(), low=0), {"dtype": getattr(torch, d.any_dtype())}))
case("copy.default")(lambda d: (d.tensor(shape := d.shape(), "float32"), d.tensor(d.broadcast(shape), d.any_dtype())))
case("native_dropout.default")(lambda d: (d.tensor(dtype="float32"), 0.5, False))
case("_local_scalar_dense.default")(lambda d: (d.tensor([], d.one_of("float32", "int64")),))

# Creation ----------------------------------------------------------------------------------------------------------------------

case("full.default")(lambda d: (d.shape(), d.one_of(2, 1.5), {"dtype": getattr(torch, d.any_dtype())}))
case("full_like.default")(lambda d: (d.tensor(dtype=d.any_dtype()), d.one_of(0, 1)))
case("fill.Scalar")(lambda d: (d.tensor(dtype=d.any_dtype()), d.one_of(0, 1)))
case("scalar_tensor.default")(lambda d: (d.one_of(2, 1.5), {"dtype": getattr(torch, d.one_of(*NUMBERS))}))
case("arange.start_step")(
    lambda d: (
        d.one_of(0, 1, 0.5),
        d.one_of(5, 7.5),
        d.one_of(1, 2, 0.5),
        {"dtype": getattr(torch, d.one_of("float32", "float64"))},
    )
)
case("empty.memory_format")(lambda d: (d.shape(), {"dtype": torch.float32}))
case("empty_strided.default")(lambda d: ([2, 3], [3, 1], {"dtype": torch.float32}))

# Shapes ------------------------------------------------------------------------------------------------------------------------


@case("view.default")
def _view(d: Draw) -> Case:
    shape = d.shape()
    return d.tensor(shape, d.any_dtype()), d.one_of([-1], [int(np.prod(shape)), 1], [1, -1, *shape[-1:]])


case("expand.default")(
    lambda d: (d.tensor([1, 3, 1] if d.flag() else [3, 1], d.any_dtype()), d.one_of([2, 3, 4], [5, 3, 2]))
)


@case("permute.default")
def _permute(d: Draw) -> Case:
    shape = d.shape()
    return d.tensor(shape, d.any_dtype()), list(d.data.draw(st.permutations(range(len(shape)))))


case("unsqueeze.default")(
    lambda d: (d.tensor(shape := d.shape(), d.any_dtype()), d.integer(-len(shape) - 1, len(shape)))
)
case("squeeze.dim")(lambda d: (d.tensor(shape := d.shape(most=2)), d.axis(shape)))
case("squeeze.dims")(lambda d: (d.tensor(shape := d.shape(most=2)), d.axes(shape)))
case("diagonal.default")(
    lambda d: (d.tensor(d.shape(3, 4), d.any_dtype()), d.integer(-2, 2), *d.one_of((0, 1), (1, 2), (-1, 0)))
)
case("as_strided.default")(
    lambda d: (d.tensor([4, 6], d.any_dtype()), *d.one_of(([2, 3], [6, 2], 1), ([24], [1]), ([3, 3, 2], [4, 1, 2], 0)))
)


@case("slice.Tensor")
def _slice(d: Draw) -> Case:
    shape = d.shape(1, 3, 6)
    return (
        d.tensor(shape, d.any_dtype()), d.axis(shape), d.one_of(None, d.integer(-7, 7)),
        d.one_of(None, d.integer(-7, 7), 2**63 - 1), d.integer(1, 3),
    )  # fmt: skip


@case("select.int")
def _select(d: Draw) -> Case:
    shape = d.shape(1, 3)
    axis = d.axis(shape)
    return d.tensor(shape, d.any_dtype()), axis, d.integer(-shape[axis], shape[axis] - 1)


@case("cat.default")
def _cat(d: Draw) -> Case:
    shape = d.shape(1, 3)
    axis, dtype = d.axis(shape), d.any_dtype()
    parts: list[Any] = []
    for _ in range(d.integer(1, 3)):
        own = list(shape)
        own[axis] = d.integer(1, 3)
        parts.append(d.tensor(own, d.one_of(dtype, "float32")))
    return parts, axis


@case("split_with_sizes.default")
def _split(d: Draw) -> Case:
    return d.tensor([6, 2], d.any_dtype()), d.one_of([1, 2, 3], [6], [2, 4], [0, 6]), 0


case("repeat.default")(lambda d: (d.tensor(d.shape(0, 2), d.any_dtype()), d.shape(2, 3, 3)))
case("flip.default")(lambda d: (d.tensor(shape := d.shape(), d.any_dtype()), d.axes(shape)))
case("sym_size.int")(lambda d: (d.tensor([2, 3]), d.integer(-2, 1)))
case("sym_numel.default")(lambda d: (d.tensor([2, 3]),))
case("sym_stride.int")(lambda d: (d.tensor([2, 3]), d.integer(-2, 1)))
case("sym_storage_offset.default")(lambda d: (d.tensor([2, 3]),))


@case("slice_scatter.default")
def _slice_scatter(d: Draw) -> Case:
    begin, step = d.integer(0, 3), d.integer(1, 2)
    places = range(begin, d.integer(begin + 1, 6), step)
    return d.tensor([2, 6], "float32"), d.tensor([2, len(places)], "float32"), 1, begin, places.stop, step


case("select_scatter.default")(lambda d: (d.tensor([3, 4], "float32"), d.tensor([3], "float32"), 1, d.integer(-4, 3)))
case("constant_pad_nd.default")(
    lambda d: (
        d.tensor([2, 4, 4], d.any_dtype()),
        d.one_of([1, 2], [0, 1, 2, 0], [-1, 2], [-1, -1, 1, 1]),
        d.one_of(0, 1),
    )
)
for _rank in (1, 2, 3):
    case(f"reflection_pad{_rank}d.default")(
        lambda d, rank=_rank: (d.tensor([2, 3, *[4] * rank], "float32"), [d.integer(-1, 3) for _ in range(2 * rank)])
    )
for _rank in (2, 3):
    case(f"replication_pad{_rank}d.default")(
        lambda d, rank=_rank: (d.tensor([2, 3, *[4] * rank], "float32"), [d.integer(0, 3) for _ in range(2 * rank)])
    )

# Reductions --------------------------------------------------------------------------------------------------------------------

case("sum.dim_IntList")(
    lambda d: (
        d.tensor(shape := d.shape(), d.any_dtype()),
        d.one_of(None, d.axes(shape)),
        d.flag(),
        {"dtype": d.one_of(None, torch.float32)},
    )
)
case("mean.default")(lambda d: (d.tensor(),))
case("mean.dim")(lambda d: (d.tensor(shape := d.shape()), d.one_of(None, d.axes(shape)), d.flag()))
case("amax.default", "amin.default")(lambda d: (d.tensor(shape := d.shape(), d.any_dtype()), d.axes(shape), d.flag()))
case("any.default")(lambda d: (d.tensor(dtype=d.any_dtype(), low=-1, high=1),))
case("any.dim")(lambda d: (d.tensor(shape := d.shape(1), d.any_dtype(), -1, 1), d.axis(shape), d.flag()))
case("any.dims")(
    lambda d: (d.tensor(shape := d.shape(1), d.any_dtype(), -1, 1), d.one_of(None, d.axes(shape) or None), d.flag())
)
case("argmax.default", "argmin.default")(
    lambda d: (d.tensor(shape := d.shape(1), d.one_of(*NUMBERS)), d.one_of(None, d.axis(shape)), False)
)
case("max.dim", "min.dim")(lambda d: (d.tensor(shape := d.shape(1), d.any_dtype()), d.axis(shape), d.flag()))
case("prod.default")(lambda d: (d.tensor(dtype=d.any_dtype()),))
case("prod.dim_int")(lambda d: (d.tensor(shape := d.shape(1), d.any_dtype()), d.axis(shape), d.flag()))
case("var.dim")(lambda d: (d.tensor(shape := d.shape(1, 3, 4, 2)), d.one_of(None, d.axes(shape)), d.flag(), d.flag()))
case("var.correction")(
    lambda d: (
        d.tensor(shape := d.shape(1, 3, 4, 2)),
        d.one_of(None, d.axes(shape)),
        {"correction": d.one_of(None, 0, 1), "keepdim": d.flag()},
    )
)
case("cumsum.default")(lambda d: (d.tensor(shape := d.shape(), d.any_dtype()), d.axis(shape)))
case("sort.default")(
    lambda d: (torch.randperm(12).reshape(3, 4).to(getattr(torch, d.one_of(*NUMBERS))), d.integer(-2, 1), d.flag())
)
case("topk.default")(
    lambda d: (
        torch.randperm(12).reshape(3, 4).to(getattr(torch, d.one_of(*NUMBERS))),
        d.integer(0, 3),
        d.integer(-2, 1),
        d.flag(),
    )
)

# Matrices ----------------------------------------------------------------------------------------------------------------------

case("mm.default")(
    lambda d: (d.tensor([d.integer(1, 4), 3], dtype := d.one_of(*FLOATS)), d.tensor([3, d.integer(1, 4)], dtype))
)
case("bmm.default")(
    lambda d: (d.tensor([2, d.integer(1, 4), 3], dtype := d.one_of(*FLOATS)), d.tensor([2, 3, d.integer(1, 4)], dtype))
)
case("addmm.default")(
    lambda d: (
        d.tensor(d.one_of([5], [4, 5], [1, 5]), "float32"), d.tensor([4, 3], "float32"), d.tensor([3, 5], "float32"),
        {"beta": d.one_of(1, 2, 0), "alpha": d.one_of(1, 0.5)},
    )
)  # fmt: skip


@case("convolution.default")
def _convolution(d: Draw) -> Case:
    rank, groups, transposed = d.integer(1, 3), d.one_of(1, 1, 2), d.flag()
    stride = d.integer(1, 2)
    kernel = [d.integer(1, 3) for _ in range(rank)]
    weight = [4, 6 // groups if transposed else 4 // groups, *kernel] if transposed else [6, 4 // groups, *kernel]
    bias = d.one_of(None, d.tensor([6 if not transposed else weight[1] * groups], "float32"))
    dilation = 1 if transposed else d.integer(1, 2)
    return (
        d.tensor([2, 4, *[6] * rank], "float32"), d.tensor(weight, "float32"), bias, [stride] * rank, [d.integer(0, 1)] * rank if min(kernel) > 2 else [0] * rank,
        [dilation] * rank, transposed, [d.integer(0, stride - 1) if transposed else 0] * rank, groups,
    )  # fmt: skip


case("_cdist_forward.default")(
    lambda d: (
        d.tensor([2, 3, 4], "float32"),
        d.tensor([2, 5, 4], "float32"),
        d.one_of(0.0, 1.0, 2.0, 3.0, float("inf")),
        None,
    )
)
case("_pdist_forward.default")(lambda d: (d.tensor([4, 3], "float32"), d.one_of(0.0, 1.0, 2.0, 3.0, float("inf"))))


@case("col2im.default")
def _col2im(d: Draw) -> Case:
    padding, stride, dilation = d.integer(0, 1), d.integer(1, 2), d.integer(1, 2)
    count = [(size + 2 * padding - dilation - 1) // stride + 1 for size in (6, 5)]
    shape = [3 * 4, count[0] * count[1]]
    return (
        d.tensor([2, *shape] if d.flag() else shape, "float32"),
        [6, 5],
        [2, 2],
        [dilation] * 2,
        [padding] * 2,
        [stride] * 2,
    )


# Layers ------------------------------------------------------------------------------------------------------------------------

case("_softmax.default", "_log_softmax.default")(lambda d: (d.tensor(shape := d.shape()), d.axis(shape), False))
case("native_layer_norm.default")(
    lambda d: (
        d.tensor([2, 3, 4], "float32"), *(([4], d.one_of(None, d.tensor([4], "float32")), d.one_of(None, d.tensor([4], "float32"))) if d.flag()
        else ([3, 4], d.tensor([3, 4], "float32"), d.tensor([3, 4], "float32"))), 1e-5,
    )
)  # fmt: skip
case("native_group_norm.default")(
    lambda d: (
        d.tensor([2, 6, 4], "float32"),
        d.one_of(None, d.tensor([6], "float32")),
        d.one_of(None, d.tensor([6], "float32")),
        2,
        6,
        4,
        d.one_of(1, 2, 3),
        1e-5,
    )
)
for _name, _stats in (
    ("_native_batch_norm_legit_no_training.default", ()),
    ("_native_batch_norm_legit.default", (True,)),
):
    case(_name)(
        lambda d, stats=_stats: (
            d.tensor([2, 3, 4], "float32"), d.one_of(None, d.tensor([3], "float32")), d.one_of(None, d.tensor([3], "float32")),
            d.tensor([3], "float32"), d.tensor([3], "float32", 0.5, 2), *stats, 0.1, 1e-5,
        )
    )  # fmt: skip
case("_native_batch_norm_legit.no_stats")(
    lambda d: (
        d.tensor([2, 3, 4, 2], "float32"),
        d.one_of(None, d.tensor([3], "float32")),
        d.one_of(None, d.tensor([3], "float32")),
        True,
        0.1,
        1e-5,
    )
)


for _rank in (2, 3):
    case(f"avg_pool{_rank}d.default")(
        lambda d, rank=_rank: (
            d.tensor([2, 3, *[7, 6, 5][:rank]], "float32"), [3, 2, 2][:rank], d.one_of([], [2] * rank), [1] * rank, d.flag(), d.flag(),
            d.one_of(None, None, 3),
        )
    )  # fmt: skip
    case(f"max_pool{_rank}d_with_indices.default")(
        lambda d, rank=_rank: (
            d.tensor([2, 3, *[7, 6, 5][:rank]], "float32"), [3, 2, 2][:rank], d.one_of([], [2] * rank), [1] * rank,
            [d.integer(1, 2)] * rank, d.flag(),
        )
    )  # fmt: skip
    case(f"_adaptive_avg_pool{_rank}d.default")(
        lambda d, rank=_rank: (d.tensor([2, 3, *[7, 6, 5][:rank]], "float32"), [d.integer(1, 4) for _ in range(rank)])
    )
case("upsample_nearest2d.vec")(
    lambda d: (
        d.tensor([1, 2, 4, 3], "float32"),
        *d.one_of((None, [2.0, 2.0]), ([7, 5], None), (None, [1.5, 1.3]), ([2, 2], None)),
    )
)
case("upsample_bilinear2d.vec")(
    lambda d: (
        d.tensor([1, 2, 4, 3], "float32"),
        *d.one_of((None, False, [2.0, 2.0]), ([7, 5], True, None), ([7, 5], False, None), (None, False, [1.5, 1.3])),
    )
)
case("grid_sampler_2d.default")(
    lambda d: (
        d.tensor([2, 3, 5, 4], "float32"),
        d.tensor([2, 3, 2, 2], "float32", -1.1, 1.1),
        d.integer(0, 1),
        d.integer(0, 2),
        d.flag(),
    )
)

# Indices -----------------------------------------------------------------------------------------------------------------------


def _places(d: Draw, shape: list[int], size: int, least: int = 0) -> Any:
    return d.tensor(shape, "int64", least, size - 1)


case("embedding.default")(lambda d: (d.tensor([5, 3], d.one_of(*FLOATS)), _places(d, d.shape(), 5)))
case("gather.default")(
    lambda d: (d.tensor([3, 4], d.any_dtype()), axis := d.integer(-2, 1), _places(d, [2, 3], (3, 4)[axis]))
)
case("index_select.default")(
    lambda d: (d.tensor([3, 4], d.any_dtype()), axis := d.integer(-2, 1), _places(d, [5], (3, 4)[axis]))
)
case("index.Tensor")(
    lambda d: (
        d.tensor([3, 4, 5], d.any_dtype()),
        d.one_of(
            [_places(d, [2], 3, -3)], [None, _places(d, [2, 2], 4, -4)], [_places(d, [2], 3), _places(d, [2], 4)],
            [None, _places(d, [2], 4), _places(d, [3, 1], 5)], [_places(d, [2], 3), None, _places(d, [2], 5)],
        ),
    )
)  # fmt: skip


@case("index_put.default")
def _index_put(d: Draw) -> Case:
    x = d.tensor([3, 4, 5], "float32")
    rows, columns = torch.tensor([2, 0]), torch.tensor([1, -1])
    return d.one_of(
        (x, [rows], d.tensor([2, 4, 5], "float32"), d.flag()), (x, [None, columns], d.tensor([3, 2, 5], "float32"), d.flag()),
        (x, [rows, columns], d.tensor([5], "float32"), d.flag()), (x, [rows, None, columns], d.tensor([2, 4], "float32"), d.flag()),
        (x, [x > 0], torch.tensor(7.0), False),
    )  # fmt: skip


def _unique_rows(d: Draw) -> Any:
    return torch.stack([torch.randperm(4)[:3] for _ in range(2)])


case("scatter.src")(lambda d: (d.tensor([3, 4], dtype := d.any_dtype()), 1, _unique_rows(d), d.tensor([3, 4], dtype)))
case("scatter.value")(lambda d: (d.tensor([3, 4], d.any_dtype()), 1, _unique_rows(d), 1))
case("scatter_add.default")(
    lambda d: (
        d.tensor([3, 4], dtype := d.one_of("float32", "int32")),
        1,
        _places(d, [2, 3], 4),
        d.tensor([2, 4], dtype),
    )
)
case("scatter_reduce.two")(
    lambda d: (
        d.tensor([3, 4], dtype := d.one_of("float32", "int32")), 1, _places(d, [2, 3], 4), d.tensor([2, 4], dtype),
        d.one_of("sum", "prod", "mean", "amax", "amin"), {"include_self": d.flag()},
    )
)  # fmt: skip
case("masked_scatter.default")(
    lambda d: (d.tensor([3, 4], dtype := d.any_dtype()), d.tensor([3, 4], "bool"), d.tensor([12], dtype))
)
case("nonzero.default")(lambda d: (d.tensor(d.shape(1), d.any_dtype(), -1, 1),))


@case("_embedding_bag.default")
def _embedding_bag(d: Draw) -> Case:
    mode = d.integer(0, 2)
    weights = d.tensor([6], "float32") if mode == 0 and d.flag() else None
    has_last = d.flag()
    offsets = torch.tensor([0, 2, 2, 6 if has_last else 5])
    return d.tensor([5, 3], "float32"), _places(d, [6], 5), offsets, False, mode, False, weights, has_last


# Gradients ---------------------------------------------------------------------------------------------------------------------

case("embedding_dense_backward.default")(
    lambda d: (d.tensor([2, 3, 4], "float32"), _places(d, [2, 3], 5), 5, d.one_of(-1, 2), d.flag())
)
case("_adaptive_avg_pool2d_backward.default")(
    lambda d: (d.tensor([2, 3, 2, 3], "float32"), d.tensor([2, 3, 7, 5], "float32"))
)


@case("avg_pool2d_backward.default")
def _avg_pool_backward(d: Draw) -> Case:
    x, ceil, counts = d.tensor([2, 3, 7, 6], "float32"), d.flag(), d.flag()
    out = aten.avg_pool2d(x, [3, 2], [2, 2], [1, 1], ceil, counts)
    return d.tensor(list(out.shape), "float32"), x, [3, 2], [2, 2], [1, 1], ceil, counts, None


@case("max_pool2d_with_indices_backward.default")
def _max_pool_backward(d: Draw) -> Case:
    x, ceil = d.tensor([2, 3, 7, 6], "float32"), d.flag()
    out, indices = aten.max_pool2d_with_indices(x, [3, 2], [2, 2], [1, 1], [1, 1], ceil)
    return d.tensor(list(out.shape), "float32"), x, [3, 2], [2, 2], [1, 1], [1, 1], ceil, indices


@case("convolution_backward.default")
def _convolution_backward(d: Draw) -> Case:
    x, groups, stride = d.tensor([2, 4, 7, 6], "float32"), d.one_of(1, 2), d.integer(1, 2)
    weight = d.tensor([6, 4 // groups, 3, 2], "float32")
    arguments = ([stride] * 2, [1, 0], [1, 1], False, [0, 0], groups)
    out = aten.convolution(x, weight, None, *arguments)
    return d.tensor(list(out.shape), "float32"), x, weight, [6], *arguments, [True, True, True]


@case("native_layer_norm_backward.default")
def _layer_norm_backward(d: Draw) -> Case:
    x, weight, bias = d.tensor([2, 3, 4], "float32"), d.tensor([4], "float32"), d.tensor([4], "float32")
    _, mean, deviation = aten.native_layer_norm(x, [4], weight, bias, 1e-2)
    return d.tensor([2, 3, 4], "float32"), x, [4], mean, deviation, weight, bias, [True, True, True]


@case("native_group_norm_backward.default")
def _group_norm_backward(d: Draw) -> Case:
    x, weight = d.tensor([2, 6, 4], "float32"), d.tensor([6], "float32")
    _, mean, deviation = aten.native_group_norm(x, weight, None, 2, 6, 4, 3, 1e-2)
    return d.tensor([2, 6, 4], "float32"), x, mean, deviation, weight, 2, 6, 4, 3, [True, True, True]


# The tests ---------------------------------------------------------------------------------------------------------------------

CORE = [
    overload
    for packet in (getattr(aten, name) for name in dir(aten))
    if hasattr(packet, "overloads")
    for overload in (getattr(packet, each) for each in packet.overloads())
    if torch.Tag.core in overload.tags
]


def name_of(op: Any) -> str:
    return str(op).removeprefix("aten.")


def leaves(value: Any) -> list[Any]:
    if isinstance(value, list | tuple):
        return [leaf for each in value for leaf in leaves(each)]
    return [value]


def check(op: Any, arguments: Case, target: Any) -> None:
    """Compares an operator on some arguments with torch: tensors are parameters, all else is part of the graph."""
    named = dict(arguments[-1]) if isinstance(arguments[-1], dict) else {}
    given = arguments[:-1] if named else arguments
    graph = torch.fx.Graph()
    inputs: list[Any] = []

    def as_node(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [as_node(each) for each in value]
        if not isinstance(value, torch.Tensor):
            return value
        node = graph.placeholder(f"x{len(inputs)}")
        node.meta["val"] = value
        inputs.append(value.clone())
        return node

    nodes, keywords = [as_node(each) for each in given], {key: as_node(each) for key, each in named.items()}
    want = op(*given, **named)
    call = graph.call_function(op, tuple(nodes), keywords)
    call.meta["val"] = want
    outputs: list[Any] = [call]
    if isinstance(want, list | tuple):
        kept = [
            place
            for place, each in enumerate(want)
            if each is not None and not (name_of(op).startswith("_embedding_bag") and place)
        ]
        outputs = []
        for place in kept:
            outputs.append(graph.call_function(getitem, (call, place)))
            outputs[-1].meta["val"] = want[place]
        want = [want[place] for place in kept]
    graph.output(tuple(outputs))
    imported = import_graph(torch.fx.GraphModule({}, graph), "test", {})
    wanted = leaves(want)
    if imported.module is None:
        assert [each.value for each in imported.results] == wanted
        return
    program = mirstack.compile(imported.module, target)
    arrays = [to_numpy(inputs[place]) for place in imported.parameters]
    got = program(*arrays)
    for place, number in zip(imported.results, wanted, strict=True):
        array = np.asarray(got[place] if isinstance(got, tuple) else got)
        tensor = torch.as_tensor(number)
        reference = to_numpy(tensor)
        if isinstance(number, torch.Tensor):
            assert array.dtype == reference.dtype and array.shape == reference.shape, (array.dtype, array.shape)
        if name_of(op).startswith("empty"):
            continue
        if reference.dtype.kind not in "fV":
            np.testing.assert_array_equal(array, reference)
            continue
        tolerance = TOLERANCE[reference.dtype.name]
        np.testing.assert_allclose(
            array.astype("float64"), reference.astype("float64"), rtol=tolerance, atol=tolerance, equal_nan=True
        )


NAMES = sorted(name_of(op) for op in CORE)


def test_every_core_operator_is_tested_or_listed() -> None:
    assert sorted([*CASES, *MISSING, *COMPLEX]) == NAMES
    assert [name for name in NAMES if not TABLE.is_converted(name.partition(".")[0])] == sorted([*MISSING, *COMPLEX])


@pytest.mark.parametrize("op", [op for op in CORE if name_of(op) in CASES], ids=name_of)
@pytest.mark.parametrize(("target", "examples"), [("interp", 12), ("cpu", 2)])
def test_equals_torch(op: Any, target: str, examples: int) -> None:
    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large),
    )
    @given(st.data())
    def run(data: st.DataObject) -> None:
        torch.manual_seed(0)
        check(op, CASES[name_of(op)](Draw(data)), target)

    run()
