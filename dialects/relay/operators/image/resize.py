"""Defines resizing of images by interpolation, upsampling, and crops.

resize2d:        data (N,C,H,W), size=[h,w] -> (N,C,h,w)
upsampling:      data (N,C,H,W), scale_h=2, scale_w=2 -> (N,C,2*H,2*W)
crop_and_resize: data (N,C,H,W), boxes (R,4), box_indices (R), crop_size=[h,w] -> (R,C,h,w)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...operator import Attrs, AttrSpec, OpPattern, Relation, attr, define
from ..common._lazy import np, te
from ..common.layout_strings import checked_layout, laid_out, layout, logical_sizes
from ..common.numpy_meanings import Array
from ..common.relations import ANY, dtype_attr, rank_must_be, same_dim, shape_of, show_argument, size_of
from ..common.sources import TVM_IMAGE, TVM_NN
from ..common.te_computes import signed_index, without_elements
from ..conv.convolution import SPATIAL
from ..elementwise.unary import convert
from ..indexing.gather import must_have_elements
from .source_pixels import (
    Line,
    Rounding,
    first_pixel_line,
    nearest,
    nearest_pixel,
    nearest_pixel_line,
    positions,
    source_position,
)

if TYPE_CHECKING:
    from ....te.builder import Tensor

METHODS = ("nearest_neighbor", "linear", "cubic")
COORDINATES = (
    "half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "tf_half_pixel_for_nn", "tf_crop_and_resize",
)  # fmt: skip
ROUNDING = ("", "round", "round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


def cubic_weights(t: Any, alpha: float) -> list[Any]:
    """Returns the weights of the four pixels around a place, `t` beyond the second (Keys' cubic)."""
    square, cube = t * t, t * t * t
    return [
        alpha * (cube - 2 * square + t),
        (alpha + 2) * cube - (3 + alpha) * square + 1,
        -(alpha + 2) * cube + (3 + 2 * alpha) * square - alpha * t,
        -alpha * cube + alpha * square,
    ]


def axis_taps(
    size: int, target: int, attrs: Attrs, dtype: str, low: float, high: float
) -> tuple[list[tuple[Array, Array]], Array]:
    """Returns the source pixels of each target pixel of one axis with their weights, computed in `dtype`.

    The second result is the mask of target pixels that are outside of the image.
    """
    mode = attrs.coordinate_transformation_mode
    position = positions(size, target, mode, low, high)
    if attrs.method == "nearest_neighbor":
        taps = [(nearest(position, attrs.rounding_method, mode), np.ones(target, np.float32))]
    else:
        line = None if dtype == "float64" else first_pixel_line(size, target, mode)
        first = np.floor(position) if line is None else line.at(np.arange(target)).astype(np.float32)
        t = position - first
        if attrs.method == "linear":
            taps = [(first, 1 - t), (first + 1, t)]
        else:
            taps = [(first + k - 1, w) for k, w in enumerate(cubic_weights(t, attrs.cubic_alpha))]
            if attrs.cubic_exclude:
                kept = [np.where((p < 0) | (p > size - 1), np.float32(0), w) for p, w in taps]
                total = sum(kept[1:], kept[0])
                taps = [(p, w / total) for (p, _), w in zip(taps, kept, strict=True)]
    outside = (position < 0) | (position > size - 1) if mode == "tf_crop_and_resize" else np.zeros(target, bool)
    return [(np.clip(pixel, 0, size - 1).astype(np.int64), weight) for pixel, weight in taps], outside


def resize(x: Array, size: Sequence[int], attrs: Attrs, roi: Sequence[float]) -> Array:
    """Resizes x (N, C, …) along its spatial axes, in `resize_dtype`."""
    rank = x.ndim - 2
    if 0 in (*x.shape[:2], *size):
        return np.zeros((*x.shape[:2], *size), resize_dtype(x.dtype.name, attrs))
    result, outside = x.astype(resize_dtype(x.dtype.name, attrs)), np.zeros((1,) * x.ndim, bool)
    for axis in range(rank):
        low, high = (roi[axis], roi[rank + axis]) if len(roi) == 2 * rank else (0.0, 1.0)
        taps, beyond = axis_taps(x.shape[2 + axis], size[axis], attrs, result.dtype.name, low, high)
        along = [-1 if a == 2 + axis else 1 for a in range(x.ndim)]
        if attrs.method == "nearest_neighbor":
            result = result.take(taps[0][0], 2 + axis)
        else:
            parts = [result.take(pixel, 2 + axis) * weight.reshape(along) for pixel, weight in taps]
            result = sum(parts[1:], parts[0])
        outside = outside | beyond.reshape(along)
    return np.where(outside, np.asarray(attrs.extrapolation_value).astype(result.dtype), result)


def resize_dtype(dtype: str, attrs: Attrs) -> str:
    """Returns the dtype that pixels are resized in.

    It is their own where pixels are only selected, otherwise float32, or float64 for float64.
    """
    return dtype if dtype == "float64" or attrs.method == "nearest_neighbor" else "float32"


def check_resize(rel: Relation) -> None:
    """Fails on a method, coordinate mode or rounding that there is not."""
    for name, values in (
        ("method", METHODS),
        ("coordinate_transformation_mode", COORDINATES),
        ("rounding_method", ROUNDING),
    ):
        if rel.attrs[name] not in values:
            raise rel.fail(
                f"{rel.operator.name}: {name}={rel.attrs[name]!r} must be one of {', '.join(filter(None, values))}"
            )


def resize_attributes(rank: int) -> tuple[Any, ...]:
    """Returns the attributes of resizing along `rank` axes, without the size."""
    return (
        attr("roi", None, "floats", printed=True),
        attr("layout", "NC" + SPATIAL[rank]),
        attr("method", "linear"),
        attr("coordinate_transformation_mode", "half_pixel"),
        attr("rounding_method", "", printed=True),
        attr("cubic_alpha", -0.5),
        attr("cubic_exclude", 0),
        attr("extrapolation_value", 0.0),
        attr("out_dtype", None, "str"),
    )


def _resize_relation(rank: int) -> Any:
    axes = SPATIAL[rank]

    def relation(rel: Relation) -> None:
        of = checked_layout(rel, "layout", "NC" + axes)
        check_resize(rel)
        size, roi = rel.attrs.size, rel.attrs.roi
        if len(size) != rank or any(s < 1 for s in size):
            raise rel.fail(f"{rel.operator.name}: size={list(size)} must be {rank} positive numbers")
        if roi is not None and len(roi) not in (0, 2 * rank):
            raise rel.fail(f"{rel.operator.name}: roi={list(roi)} must be {2 * rank} numbers, starts then ends")
        old = logical_sizes(rel, 0, of)
        must_have_elements(rel, 0, size_of([old[axis] for axis in axes]), [old["N"], old["C"]])
        sizes = old | dict(zip(axes, size, strict=True))
        rel.set_result(laid_out(rel, sizes, of, dtype_attr(rel, "out_dtype", rel.tensor(0).element_type)))

    return relation


def _resized(attrs: Attrs, x: Array, size: Sequence[int], rank: int) -> Array:
    of, axes = layout(attrs.layout), "NC" + SPATIAL[rank]
    result = resize(of.to_logical(x, axes), size, attrs, attrs.roi or ())
    return of.from_logical(convert(result, attrs.out_dtype or x.dtype.name), axes)


@dataclass(frozen=True)
class Crops:
    """Images cut out of images: how many, and by the number of one its source and its region (as `roi`)."""

    count: Any
    source: Callable[[Any], Any]
    region: Callable[[Any], Sequence[Any]]


def te_resize(
    x: Tensor,
    of: Any,
    axes: str,
    size: Sequence[Any],
    attrs: Attrs,
    dtype: str,
    name: str,
    crops: Crops | None = None,
) -> Tensor:
    """Resizes by one compute: a sum of the neighbours, each times its weights."""
    sizes = of.logical(x.shape)
    rank, mode = len(axes), attrs.coordinate_transformation_mode
    if crops is None:
        crops = Crops(sizes["N"], lambda n: n, lambda n: attrs.roi or ())
    new = {**sizes, "N": crops.count, **dict(zip(axes, size, strict=True))}
    if (nothing := without_elements(of.physical(new), dtype, name)) is not None:
        return nothing
    wide = resize_dtype(x.dtype, attrs)

    def real(value: Any) -> Any:
        return te.const(float(value), "float32") if isinstance(value, int) else value.astype("float32")

    def choose(condition: Any, a: Any, b: Any) -> Any:
        return te.Select(
            condition,
            te.const(a, "float32") if isinstance(a, float) else a,
            te.const(b, "float32") if isinstance(b, float) else b,
        )

    lines = {axis: _line(sizes[axis], new[axis], attrs, wide) for axis in axes}

    def taps(axis: str, place: Any, number: int, roi: Sequence[Any]) -> tuple[list[tuple[Any, Any]], Any]:
        low, high = (roi[number], roi[rank + number]) if len(roi) == 2 * rank else (0.0, 1.0)
        position = source_position(place.astype("float32"), real(sizes[axis]), real(new[axis]), mode, low, high, choose)
        last, line = sizes[axis] - 1, lines[axis]

        def pixel(index: Any) -> Any:
            return te.max(te.min(index.astype("int32"), last), 0)

        if attrs.method == "nearest_neighbor":
            if line is not None:
                return [(_te_line(line, place), None)], position
            return [
                (
                    pixel(nearest_pixel(position, attrs.rounding_method, mode, Rounding(te.round, te.ceil, te.floor))),
                    None,
                )
            ], position
        if line is None:
            first = te.floor(position)
            t, base = position - first, first.astype("int32")
        else:
            base = _te_line(line, place)
            t = position - base.astype("float32")
        if attrs.method == "linear":
            return [(pixel(base), 1.0 - t), (pixel(base + 1), t)], position
        weights = cubic_weights(t, attrs.cubic_alpha)
        if attrs.cubic_exclude:
            inside = [te.all(base + (k - 1) >= 0, base + (k - 1) <= last) for k in range(4)]
            weights = [te.Select(i, w, te.const(0.0, "float32")) for i, w in zip(inside, weights, strict=True)]
            total = weights[0] + weights[1] + weights[2] + weights[3]
            weights = [w / total for w in weights]
        return [(pixel(base + (k - 1)), w) for k, w in enumerate(weights)], position

    def body(*i: Any) -> Any:
        at = of.logical_indices(i)
        roi = crops.region(at["N"])
        found = {a: taps(a, at[a], n, roi) for n, a in enumerate(axes)}

        def value(rest: str, where: dict[str, Any]) -> Any:
            if not rest:
                return x(*of.indices(where)).astype(wide)
            total: Any = None
            for pixel, weight in found[rest[0]][0]:
                part = value(rest[1:], {**where, rest[0]: pixel})
                part = part if weight is None else part * weight.astype(wide)
                total = part if total is None else total + part
            return total

        result = value(axes, {"N": crops.source(at["N"]), "C": at["C"]})
        if mode == "tf_crop_and_resize":
            for a in axes:
                position = found[a][1]
                outside = te.any(position < 0.0, position > real(sizes[a]) - 1.0)
                result = te.Select(outside, te.const(attrs.extrapolation_value, "float64").astype(wide), result)
        return result.astype(dtype)

    return te.compute(of.physical(new), body, name=name)


def _line(size: Any, target: Any, attrs: Attrs, dtype: str) -> Line | None:
    """Returns the integer formula of the pixel at or before each position, or of its nearest pixel.

    None where it is computed in floats.
    """
    if not isinstance(size, int) or not isinstance(target, int):
        return None
    mode = attrs.coordinate_transformation_mode
    if attrs.method == "nearest_neighbor":
        return nearest_pixel_line(size, target, mode, attrs.rounding_method)
    # Of a weight that differs from the position's fraction by its rounding, doubles would show the difference.
    return None if dtype == "float64" else first_pixel_line(size, target, mode)


def _te_line(line: Line, place: Any) -> Any:
    """Returns the numbers of a line, in indices."""
    scaled = place if line.a == 1 else place * line.a
    shifted = scaled if line.b == 0 else scaled + line.b
    return shifted if line.c == 1 else te.floordiv(shifted, line.c)


def _register_resize(rank: int) -> None:
    axes = SPATIAL[rank]
    define(
        f"image.resize{rank}d", ("data",), _resize_relation(rank), OpPattern.INJECTIVE,
        numpy=lambda attrs, x: _resized(attrs, x, attrs.size, rank),
        compute=lambda attrs, xs, out: [
            te_resize(xs[0], layout(attrs.layout), axes, attrs.size, attrs, attrs.out_dtype or xs[0].dtype, "resize")
        ],
        attributes=(attr("size", kind="ints"), *resize_attributes(rank)),
        doc="The image in another size, interpolated by `method` at the places that the coordinate mode names.",
        source=TVM_IMAGE.format(f"resize{rank}d"),
    )  # fmt: skip


for _rank in SPATIAL:
    _register_resize(_rank)


def _scales(attrs: Attrs, rank: int) -> list[float]:
    return [attrs[f"scale_{axis.lower()}"] for axis in SPATIAL[rank]]


def _upsampled(size: Any, scale: float) -> Any:
    """Returns round(size * scale), as TVM."""
    return int(size * scale + 0.5) if isinstance(size, int) else (size.astype("float32") * scale + 0.5).astype("int32")


def check_upsampling(rel: Relation) -> None:
    """Fails on a method that there is not."""
    if rel.attrs.method not in _UPSAMPLING:
        raise rel.fail(f"{rel.operator.name}: method={rel.attrs.method!r} must be one of {', '.join(_UPSAMPLING)}")


def _upsampling_relation(rank: int) -> Any:
    axes = SPATIAL[rank]

    def relation(rel: Relation) -> None:
        of = checked_layout(rel, "layout", "NC" + axes)
        sizes, attrs = logical_sizes(rel, 0, of), rel.attrs
        check_upsampling(rel)
        for axis, scale in zip(axes, _scales(attrs, rank), strict=True):
            if not scale > 0:
                raise rel.fail(f"{rel.operator.name}: scale_{axis.lower()}={scale:g} must be positive")
            sizes[axis] = ANY if sizes[axis] == ANY else _upsampled(sizes[axis], scale)
        rel.set_result(laid_out(rel, sizes, of, rel.tensor(0).element_type))

    return relation


_UPSAMPLING = {
    "nearest_neighbor": "nearest_neighbor", "bilinear": "linear", "trilinear": "linear", "bicubic": "cubic",
}  # fmt: skip


def as_resize(attrs: Attrs) -> Attrs:
    """Returns the attributes of the resizing that an upsampling is."""
    align = attrs.get("align_corners", False) or attrs.get("coordinate_transformation_mode") == "align_corners"
    mode = "align_corners" if align else attrs.get("coordinate_transformation_mode", "asymmetric")
    return Attrs(
        {
            "method": _UPSAMPLING[attrs.method],
            "coordinate_transformation_mode": mode,
            "rounding_method": "",
            "cubic_alpha": -0.5,
            "cubic_exclude": 0,
            "extrapolation_value": 0.0,
            "roi": None,
        }
    )


def upsampling(attrs: Attrs, x: Array, scales: Sequence[float]) -> Array:
    """Resizes x to `scales` times its spatial axes."""
    of, axes = layout(attrs.layout), "NC" + SPATIAL[len(scales)]
    data = of.to_logical(x, axes)
    size = [_upsampled(d, s) for d, s in zip(data.shape[2:], scales, strict=True)]
    return of.from_logical(convert(resize(data, size, as_resize(attrs), ()), x.dtype.name), axes)


def _te_upsampling(attrs: Attrs, x: Tensor, rank: int) -> Tensor:
    of, axes = layout(attrs.layout), SPATIAL[rank]
    sizes = of.logical(x.shape)
    size = [_upsampled(sizes[a], s) for a, s in zip(axes, _scales(attrs, rank), strict=True)]
    return te_resize(x, of, axes, size, as_resize(attrs), x.dtype, "upsampling")


def upsampling_attributes(rank: int) -> tuple[AttrSpec, ...]:
    """Returns the attributes of enlarging along `rank` axes."""
    axes = SPATIAL[rank]
    mode = attr("align_corners", False) if rank == 2 else attr("coordinate_transformation_mode", "half_pixel")
    scales = (attr(f"scale_{axis.lower()}", 1.0, printed=True) for axis in axes)
    return (*scales, attr("layout", "NC" + axes), attr("method", "nearest_neighbor"), mode)


def _register_upsampling(name: str, rank: int, *, source: str) -> None:
    define(
        name, ("data",), _upsampling_relation(rank), OpPattern.INJECTIVE,
        numpy=lambda attrs, x: upsampling(attrs, x, _scales(attrs, rank)),
        compute=lambda attrs, xs, out: [_te_upsampling(attrs, xs[0], rank)],
        attributes=upsampling_attributes(rank),
        doc="The image enlarged by a factor along each axis, each pixel repeated or interpolated.",
        source=source,
    )  # fmt: skip


_register_upsampling("nn.upsampling", 2, source=TVM_NN.format("upsampling"))
_register_upsampling("nn.upsampling3d", 3, source=TVM_NN.format("upsampling3d"))


def _crop_relation(rel: Relation) -> None:
    of = checked_layout(rel, "layout", "NCHW")
    sizes, boxes = logical_sizes(rel, 0, of), rank_must_be(rel, 1, 2)
    indices = rank_must_be(rel, 2, 1)
    if not same_dim(shape_of(boxes)[1], 4) or len(rel.attrs.crop_size) != 2:
        raise rel.fail(
            f"image.crop_and_resize: {show_argument(rel, 1)} must have rows (y1, x1, y2, x2), crop_size two numbers"
        )
    if rel.attrs.method not in ("bilinear", "nearest_neighbor"):
        raise rel.fail(f"image.crop_and_resize: method={rel.attrs.method!r} must be bilinear or nearest_neighbor")
    count = shape_of(indices)[0]
    if not same_dim(shape_of(boxes)[0], count):
        raise rel.fail(
            f"image.crop_and_resize: {show_argument(rel, 1)} and {show_argument(rel, 2)} must be of as many boxes",
            argument=2,
        )
    must_have_elements(rel, 0, size_of([sizes[axis] for axis in "NHW"]), [count, sizes["C"], *rel.attrs.crop_size])
    sizes |= {"N": count, "H": rel.attrs.crop_size[0], "W": rel.attrs.crop_size[1]}
    rel.set_result(laid_out(rel, sizes, of, dtype_attr(rel, "out_dtype", rel.tensor(0).element_type)))


def _resizing_of_crops(attrs: Attrs) -> Attrs:
    """Returns the attributes of the resizing that computes a crop."""
    return Attrs(
        {**as_resize(Attrs({"method": attrs.method})), "coordinate_transformation_mode": "tf_crop_and_resize"}
        | {"extrapolation_value": attrs.extrapolation_value, "rounding_method": "round"}
    )


def _te_crop_and_resize(attrs: Attrs, x: Tensor, boxes: Tensor, indices: Tensor) -> Tensor:
    of = layout(attrs.layout)
    images = of.logical(x.shape)["N"]

    def source(n: Any) -> Any:
        return te.max(te.min(signed_index(indices(n)), images - 1), 0)

    crops = Crops(indices.shape[0], source, lambda n: [boxes(n, k).astype("float32") for k in range(4)])
    dtype = attrs.out_dtype or x.dtype
    return te_resize(x, of, "HW", attrs.crop_size, _resizing_of_crops(attrs), dtype, "crop_and_resize", crops)


def _crop_and_resize(attrs: Attrs, x: Array, boxes: Array, indices: Array) -> Array:
    of = layout(attrs.layout)
    data = of.to_logical(x, "NCHW")
    resizing = _resizing_of_crops(attrs)
    crops = [
        resize(data[i : i + 1], attrs.crop_size, resizing, box)
        for box, i in zip(boxes, np.clip(indices, 0, max(len(data) - 1, 0)).tolist(), strict=True)
    ]
    empty = np.zeros((0, data.shape[1], *attrs.crop_size), resize_dtype(x.dtype.name, resizing))
    result = np.concatenate([empty, *crops])
    return of.from_logical(convert(result, attrs.out_dtype or x.dtype.name), "NCHW")


define(
    "image.crop_and_resize", ("data", "boxes", "box_indices"), _crop_relation, OpPattern.INJECTIVE,
    numpy=_crop_and_resize,
    compute=lambda attrs, xs, out: [_te_crop_and_resize(attrs, *xs)],
    attributes=(
        attr("crop_size", kind="ints"), attr("layout", "NCHW"), attr("method", "bilinear"),
        attr("extrapolation_value", 0.0), attr("out_dtype", None, "str"),
    ),
    doc="Boxes (y1, x1, y2, x2 in parts of the image) cut out of images and resized.",
    source=TVM_IMAGE.format("crop_and_resize"),
)  # fmt: skip
