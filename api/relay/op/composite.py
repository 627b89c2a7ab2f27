"""Functions of TVM's Python that make calls of several operators, or more than a table can say."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from ....dialects.relay.operator import get_operator
from ....dialects.relay.operators.qnn.simulated import CODES
from ...ir.op import Op
from ..expr import Call, Constant, RelayExpr, Tuple, TupleWrapper, const
from .make import make_call


def _call(name: str, *args: RelayExpr, **attrs: Any) -> Call:
    return Call(Op.get(name), args, attrs or None)


def _make(op_name: str, **given: Any) -> Any:
    operator = get_operator(op_name)
    assert operator is not None
    return make_call(operator, given)


def arange(start: Any, stop: Any = None, step: Any = None, dtype: str = "float32") -> Call:
    """Creates the numbers from `start` up to, not including, `stop`, by `step`; one argument is `stop`."""
    if stop is None:
        start, stop = 0, start
    step = 1 if step is None else step
    parts = [value if isinstance(value, RelayExpr) else const(value, dtype) for value in (start, stop, step)]
    return _call("arange", *parts, dtype=dtype)


def full(fill_value: RelayExpr, shape: Any = (), dtype: str = "") -> Call:
    """A tensor of `shape` whose elements are a scalar."""
    return _make("full", fill_value=fill_value, shape=_shape(shape), dtype=dtype)


def zeros(shape: Any, dtype: str) -> Call:
    """A tensor of zeros."""
    return _make("zeros", shape=_shape(shape), dtype=dtype)


def ones(shape: Any, dtype: str) -> Call:
    """A tensor of ones."""
    return _make("ones", shape=_shape(shape), dtype=dtype)


def _shape(shape: Any) -> Any:
    return (int(shape),) if hasattr(shape, "__index__") else shape


def dropout(data: RelayExpr, rate: float = 0.5) -> RelayExpr:
    """Elements set to zero at random when a network is trained; the data itself afterwards."""
    return dropout_raw(data, rate)[0]


def dropout_raw(data: RelayExpr, rate: float = 0.5) -> TupleWrapper:
    """As `dropout`, with the mask as a second result."""
    return TupleWrapper(_call("nn.dropout", data, rate=rate), 2)


def variance(
    data: RelayExpr,
    axis: Any = None,
    keepdims: bool = False,
    exclude: bool = False,
    unbiased: bool = False,
    with_mean: RelayExpr | None = None,
) -> Call:
    """The variance along axes, around `with_mean` where it is given."""
    if with_mean is None:
        with_mean = _make("mean", data=data, axis=axis, keepdims=True, exclude=exclude)
    return _make(
        "variance",
        data=data,
        with_mean=with_mean,
        axis=axis,
        keepdims=keepdims,
        exclude=exclude,
        unbiased=unbiased,
    )


def std(
    data: RelayExpr, axis: Any = None, keepdims: bool = False, exclude: bool = False, unbiased: bool = False
) -> Call:
    """The standard deviation along axes."""
    return _call("sqrt", variance(data, axis, keepdims, exclude, unbiased))


def mean_variance(
    data: RelayExpr, axis: Any = None, keepdims: bool = False, exclude: bool = False, unbiased: bool = False
) -> TupleWrapper:
    """The mean and the variance along axes."""
    mean = _make("mean", data=data, axis=axis, keepdims=True, exclude=exclude)
    spread = variance(data, axis, keepdims, exclude, unbiased, mean)
    if not keepdims:
        mean = _make("squeeze", data=mean, axis=axis)
    return TupleWrapper(Tuple([mean, spread]), 2)


def mean_std(data: RelayExpr, axis: Any = None, keepdims: bool = False, exclude: bool = False) -> TupleWrapper:
    """The mean and the standard deviation along axes."""
    both = mean_variance(data, axis, keepdims, exclude)
    return TupleWrapper(Tuple([both[0], _call("sqrt", both[1])]), 2)


def logsumexp(data: RelayExpr, axis: Any = None, keepdims: bool = False) -> RelayExpr:
    """The logarithm of the sum of exponentials along axes, without overflow."""
    highest = _make("max", data=data, axis=axis, keepdims=True, exclude=False)
    total = _make("sum", data=_call("exp", data - highest), axis=axis, keepdims=True, exclude=False)
    result = _call("log", total) + highest
    return result if keepdims else _make("squeeze", data=result, axis=axis)


def matrix_set_diag(data: RelayExpr, diagonal: RelayExpr, k: Any = 0, align: str = "RIGHT_LEFT") -> Call:
    """Sets the diagonals of the data, from the first to the second of `k`; `align` places short ones."""
    first, last = (k, k) if hasattr(k, "__index__") else (k[0], k[-1])
    over, under = align.split("_")
    return _call(
        "matrix_set_diag",
        data,
        diagonal,
        k1=int(first),
        k2=int(last),
        super_diag_right_align=over == "RIGHT",
        sub_diag_right_align=under == "RIGHT",
    )


def strided_set(data: RelayExpr, v: RelayExpr, begin: Any, end: Any, strides: Any = None) -> Call:
    """Sets the slice of the data from `begin` up to, not including, `end` to `v`; by default each element."""
    if strides is None:
        strides = [1] * (1 if isinstance(begin, RelayExpr) else len(begin))
    return _make("strided_set", data=data, v=v, begin=begin, end=end, strides=strides)


def stft(
    data: RelayExpr,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: RelayExpr | None = None,
    normalized: bool = False,
    onesided: bool = True,
) -> Call:
    """The short-time Fourier transform of signals."""
    hop_length = n_fft // 4 if hop_length is None else hop_length
    win_length = n_fft if win_length is None else win_length
    window = const(np.ones(n_fft, "int32")) if window is None else window
    return _call(
        "stft",
        data,
        window,
        n_fft=n_fft,
        hop_length=hop_length,
        win_length=win_length,
        normalized=normalized,
        onesided=onesided,
    )


def threefry_key(seed: int) -> Constant:
    """A key of the random operators, of a seed of 64 bits."""
    from ....dialects.relay.operators.misc.random import key_of_seed

    return const(key_of_seed(seed))


def simulated_quantize(
    data: RelayExpr, output_scale: RelayExpr, output_zero_point: RelayExpr, axis: int = -1, out_dtype: Any = "int8"
) -> Call:
    """Quantizes the data, but keeps it in floating point.

    `out_dtype` is a dtype's name, "disable", or an expression of its number.
    """
    return _simulated("quantize", data, out_dtype, output_scale, output_zero_point, axis)


def simulated_dequantize(
    data: RelayExpr, input_scale: RelayExpr, input_zero_point: RelayExpr, axis: int = -1, in_dtype: Any = "int8"
) -> Call:
    """Inverts `simulated_quantize`; `in_dtype` is that one's `out_dtype`."""
    return _simulated("dequantize", data, in_dtype, input_scale, input_zero_point, axis)


def _simulated(kind: str, data: RelayExpr, dtype: Any, scale: RelayExpr, zero_point: RelayExpr, axis: int) -> Call:
    if isinstance(dtype, str):
        codes = {"disable": 0, **{name: code for code, name in CODES.items()}}
        if dtype not in codes:
            raise ValueError(f"qnn.simulated_{kind}: the dtype is one of {', '.join(codes)}, not {dtype!r}")
        dtype = const(codes[dtype], "int32")
    scale, zero_point = (_make("reshape", data=each, newshape=[-1]) for each in (scale, zero_point))
    return _call(f"qnn.simulated_{kind}", data, dtype, scale, zero_point, axis=axis)


class SparseMatrix(Protocol):
    """A matrix in compressed rows: scipy's, or any object with these fields, expressions or arrays."""

    @property
    def data(self) -> Any:
        """The values."""
        ...

    @property
    def indices(self) -> Any:
        """The column of each value."""
        ...

    @property
    def indptr(self) -> Any:
        """The index where each row begins."""
        ...


def sparse_dense(dense_mat: RelayExpr, sparse_mat: SparseMatrix, sparse_lhs: bool = False) -> Call:
    """Multiplies a dense matrix by a sparse one's transpose; with `sparse_lhs` the other way round."""
    return _call("nn.sparse_dense", dense_mat, *_parts(sparse_mat), sparse_lhs=sparse_lhs)


def sparse_add(dense_mat: RelayExpr, sparse_mat: SparseMatrix) -> Call:
    """Adds a sparse matrix to a dense one."""
    return _call("nn.sparse_add", dense_mat, *_parts(sparse_mat))


def sparse_transpose(x: SparseMatrix) -> TupleWrapper:
    """Returns values, columns and beginnings of rows of the transpose of a square sparse matrix."""
    return TupleWrapper(_call("nn.sparse_transpose", *_parts(x)), 3)


def _parts(matrix: SparseMatrix) -> list[RelayExpr]:
    parts = (matrix.data, matrix.indices, matrix.indptr)
    return [part if isinstance(part, RelayExpr) else const(np.asarray(part)) for part in parts]


def segment_sum(data: RelayExpr, segment_ids: RelayExpr, num_segments: int | None = None) -> Call:
    """Sums the rows of the data that have one number in `segment_ids`. (N,…), (N,) → (segments,…)

    Without `num_segments` there are as many as the greatest number says.
    """
    if num_segments is None:
        one = const(1, "int64")
        count = _make(
            "reshape", data=_make("max", data=segment_ids, axis=0, keepdims=False, exclude=False), newshape=[-1]
        )
        sizes: RelayExpr = _call("cast", count, dtype="int64") + one
    else:
        sizes = const([num_segments], "int64")
    whole = _call("shape_of", data, dtype="int64")
    row = _make("strided_slice", data=whole, begin=[1], end=[-1], strides=[1], axes=None, slice_mode="size")
    shape = _call("concatenate", Tuple([sizes, row]), axis=0)
    zero = _call("cast_like", const(0.0), data)
    zeros_ = _make("full", fill_value=zero, shape=shape, dtype="")
    return _call("scatter_nd", zeros_, _call("expand_dims", segment_ids, axis=0), data, mode="add")


def reverse_reshape(data: RelayExpr, newshape: Any) -> Call:
    """`reshape`, with the special values counted from the right."""
    return _make("contrib_reverse_reshape", data=data, newshape=newshape)


FUNCTIONS: dict[str, Any] = {
    **{
        f.__name__: f
        for f in (
            arange, full, logsumexp, matrix_set_diag, mean_std, mean_variance, ones, reverse_reshape, segment_sum, std, stft,
            strided_set, variance, zeros,
        )
    },
    "nn.dropout": dropout,
    "nn.dropout_raw": dropout_raw,
    "nn.sparse_add": sparse_add,
    "nn.sparse_dense": sparse_dense,
    "nn.sparse_transpose": sparse_transpose,
    "qnn.simulated_dequantize": simulated_dequantize,
    "qnn.simulated_quantize": simulated_quantize,
    "random.threefry_key": threefry_key,
}  # fmt: skip
"""By the names under which `mirstack.relay` has them."""
