"""Defines TE computes of selecting boxes: non-maximum suppression in its forms, valid boxes first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...operator import Attrs
from ..common._lazy import te
from ..common.te_computes import divisor
from ..sorting.radix_sort import te_order
from ..sorting.te_sort import loops

if TYPE_CHECKING:
    from ....te.builder import Buffer, Expr, IRBuilder, Tensor

LEAST = float("-inf")
"""A score below every other: boxes without a score sort last, in their order."""


def scalar(x: Tensor, dtype: str) -> Tensor:
    """Returns a number of run time as a vector of one, for statements."""
    return te.compute((1,), lambda *i: (x(*i) if x.shape else x()).astype(dtype), name="T_scalar")


def corners(box: Sequence[Expr]) -> list[Expr]:
    """Returns two opposite corners (a, b, c, d) as the lower and the upper one."""
    a, b, c, d = box
    return [te.min(a, c), te.min(b, d), te.max(a, c), te.max(b, d)]


def overlap(first: Sequence[Expr], second: Sequence[Expr]) -> Expr:
    """Returns the intersection over union of two boxes (lower, then upper corner); 0 for an empty union."""
    zero = te.const(0.0, first[0].dtype)
    sides = [te.max(te.min(first[n + 2], second[n + 2]) - te.max(first[n], second[n]), zero) for n in range(2)]
    shared = sides[0] * sides[1]
    covered = area(first) + area(second) - shared
    return te.Select(covered <= zero, zero, shared / te.Select(covered <= zero, te.const(1.0, zero.dtype), covered))


def area(box: Sequence[Expr]) -> Expr:
    """Returns the area of a box (lower, then upper corner)."""
    return (box[2] - box[0]) * (box[3] - box[1])


def te_valid_counts(attrs: Attrs, data: Tensor, threshold: Tensor) -> list[Tensor]:
    """Computes `vision.get_valid_counts`."""
    batch, boxes, length = data.shape
    score, identity = attrs.score_index, attrs.id_index

    def statements(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Any:
        (x, least), (count, sorted_boxes, places) = ins, outs
        ib = te.ir_builder.create()
        with ib.for_range(0, batch, "i") as i:
            ib.emit(count.vstore(i, 0))
            with ib.for_range(0, boxes, "j") as j:
                valid = x[i, j, score] > least[0]
                if identity >= 0:
                    valid = te.all(valid, x[i, j, identity] >= te.const(0, x.dtype))
                # Elements that a later box overwrites are cleared first.
                with ib.for_range(0, length, "k") as k:
                    ib.emit(sorted_boxes.vstore((i, j, k), te.const(-1, x.dtype)))
                ib.emit(places.vstore((i, j), -1))
                with ib.if_scope(valid):
                    with ib.for_range(0, length, "k") as k:
                        ib.emit(sorted_boxes.vstore((i, count[i], k), x[i, j, k]))
                    ib.emit(places.vstore((i, count[i]), j))
                    ib.emit(count.vstore(i, count[i] + 1))
        return ib.get()

    shapes = [(batch,), (batch, boxes, length), (batch, boxes)]
    inputs = [data, scalar(threshold, data.dtype)]
    return list(te.extern(shapes, inputs, statements, name="valid_counts", dtype=["int32", data.dtype, "int32"]))


def te_nms(attrs: Attrs, data: Tensor, valid: Tensor, indices: Tensor, most: Tensor, threshold: Tensor) -> list[Tensor]:
    """Computes `vision.non_max_suppression`."""
    batch, boxes, length = data.shape
    score, identity, start = attrs.score_index, attrs.id_index, attrs.coord_start
    none = te.const(LEAST, data.dtype)
    scores = te.compute(
        (batch, boxes), lambda *i: te.Select(i[1] < valid(i[0]), data(*i, score), none), name="T_valid_scores"
    )

    def statements(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Any:
        (x, order, count, original, limit, iou), (kept, places, state) = ins, outs
        ib = te.ir_builder.create()
        zero = te.const(0, x.dtype)

        def write(i: Expr, j: Expr, source: Expr | None) -> None:
            with ib.for_range(0, length, "k") as k:
                ib.emit(kept.vstore((i, j, k), te.const(-1, x.dtype) if source is None else x[i, source, k]))
            ib.emit(places.vstore((i, j), -1 if source is None else source))

        def box(i: Expr, j: Expr) -> list[Expr]:
            return corners([kept[i, j, start + n] for n in range(4)])

        with ib.for_range(0, batch, "i") as i:
            many = te.min(count[i], boxes)
            first = te.min(many, attrs.top_k) if attrs.top_k > 0 else many
            suppresses = iou[0] > zero
            ib.emit(state.vstore(0, 0))
            with ib.for_range(0, boxes, "j") as j:
                with ib.if_scope(te.all(suppresses, j < first)):
                    write(i, j, order[i, j])
                with ib.else_scope():
                    with ib.if_scope(te.all(te.logical_not(suppresses), j < many)):
                        write(i, j, j)
                    with ib.else_scope():
                        write(i, j, None)
            with ib.if_scope(suppresses), ib.for_range(0, many, "j") as j:
                with ib.if_scope(state[0].equal(limit[0])):
                    write(i, j, None)
                with ib.else_scope(), ib.if_scope(kept[i, j, score] > zero):
                    ib.emit(state.vstore(1, 1))
                    with ib.for_range(0, j, "k") as k:
                        rivals = [state[1].equal(1), kept[i, k, score] > zero]
                        if identity >= 0:
                            rivals.append(kept[i, k, identity] >= zero)
                            if not attrs.force_suppress:
                                rivals.append(kept[i, j, identity].equal(kept[i, k, identity]))
                        with ib.if_scope(te.all(*rivals, overlap(box(i, j), box(i, k)) >= iou[0])):
                            ib.emit(state.vstore(1, 0))
                    with ib.if_scope(state[1].equal(1)):
                        ib.emit(state.vstore(0, state[0] + 1))
                    with ib.else_scope():
                        write(i, j, None)
            if attrs.return_indices:
                with ib.for_range(0, boxes, "j") as j, ib.if_scope(places[i, j] >= 0):
                    ib.emit(places.vstore((i, j), original[i, places[i, j]]))
        return ib.get()

    inputs = [data, te_order(scores, 1, False), valid, indices, scalar(most, "int32"), scalar(threshold, data.dtype)]
    shapes = [(batch, boxes, length), (batch, boxes), (2,)]
    kept, places, _ = te.extern(shapes, inputs, statements, name="nms", dtype=[data.dtype, "int32", "int32"])
    if attrs.return_indices:
        return _indices_first(places)
    return [_boxes_first(kept) if attrs.invalid_to_bottom else kept]


def _indices_first(places: Tensor) -> list[Tensor]:
    """Moves each row's numbers from 0 on to the front, then -1; returns their counts, too."""
    batch, boxes = places.shape

    def statements(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Any:
        (found,), (result, count) = ins, outs
        ib = te.ir_builder.create()
        with ib.for_range(0, batch, "i") as i:
            ib.emit(count.vstore((i, 0), 0))
            with ib.for_range(0, boxes, "j") as j:
                ib.emit(result.vstore((i, j), -1))
                with ib.if_scope(found[i, j] >= 0):
                    ib.emit(result.vstore((i, count[i, 0]), found[i, j]))
                    ib.emit(count.vstore((i, 0), count[i, 0] + 1))
        return ib.get()

    return list(te.extern([(batch, boxes), (batch, 1)], [places], statements, name="valid_indices", dtype="int32"))


def _boxes_first(data: Tensor) -> Tensor:
    """Moves each row's boxes whose first number is not negative to the front, then boxes of -1."""
    batch, boxes, length = data.shape

    def statements(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Any:
        (x,), (result, count) = ins, outs
        ib = te.ir_builder.create()
        with ib.for_range(0, batch, "i") as i:
            ib.emit(count.vstore(0, 0))
            with ib.for_range(0, boxes, "j") as j:
                with ib.for_range(0, length, "k") as k:
                    ib.emit(result.vstore((i, j, k), te.const(-1, x.dtype)))
                with ib.if_scope(x[i, j, 0] >= te.const(0, x.dtype)):
                    with ib.for_range(0, length, "k") as k:
                        ib.emit(result.vstore((i, count[0], k), x[i, j, k]))
                    ib.emit(count.vstore(0, count[0] + 1))
        return ib.get()

    shapes = [(batch, boxes, length), (1,)]
    result, _ = te.extern(shapes, [data], statements, name="valid_boxes", dtype=[data.dtype, "int32"])
    return result


@dataclass(frozen=True)
class Greedy:
    """The rules by which boxes are selected in order of their scores: eligible boxes, exclusions.

    `boxes` is (batch, n, 4), `scores` (batch * classes, n); `settings` (most, then thresholds) are vectors of one.
    """

    boxes: Tensor
    scores: Tensor
    classes: Any
    settings: Sequence[Tensor]
    eligible: Callable[[Expr, Sequence[Buffer]], Expr]
    excludes: Callable[[Sequence[Expr], Sequence[Expr], Expr, Sequence[Buffer]], Expr]
    most: Callable[[Sequence[Buffer]], Expr]

    def chosen(self) -> tuple[Tensor, Tensor]:
        """Returns the chosen boxes of each row of scores, best first, and their counts."""
        rows, boxes = self.scores.shape
        order = te_order(self.scores, 1, False)

        def statements(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Any:
            (corner, score, place, *settings), (found, count, free) = ins, outs
            ib = te.ir_builder.create()
            with ib.for_range(0, rows, "row") as row:
                batch = te.floordiv(row, divisor(self.classes))

                def box(j: Expr) -> list[Expr]:
                    return [corner[batch, place[row, j], n] for n in range(4)]

                ib.emit(count.vstore(row, 0))
                with ib.for_range(0, boxes, "j") as j:
                    ib.emit(found.vstore((row, j), 0))
                    ib.emit(free.vstore(j, 1))
                with ib.for_range(0, boxes, "j") as j:
                    own = self.eligible(score[row, place[row, j]], settings)
                    with ib.if_scope(te.all(free[j].equal(1), own, count[row] < self.most(settings))):
                        ib.emit(found.vstore((row, count[row]), place[row, j]))
                        ib.emit(count.vstore(row, count[row] + 1))
                        with ib.for_range(j + 1, boxes, "k") as k:
                            other = score[row, place[row, k]]
                            with ib.if_scope(self.excludes(box(j), box(k), other, settings)):
                                ib.emit(free.vstore(k, 0))
            return ib.get()

        found, count, _ = te.extern(
            [(rows, boxes), (rows,), (boxes,)],
            [self.boxes, self.scores, order, *self.settings],
            statements,
            name="greedy",
            dtype="int32",
        )
        return found, count


def te_all_class_nms(
    attrs: Attrs, boxes: Tensor, scores: Tensor, most: Tensor, iou: Tensor, least: Tensor
) -> list[Tensor]:
    """Computes `vision.all_class_non_max_suppression`."""
    batch, classes, number = scores.shape
    rows = te.compute(
        (batch * classes, number),
        lambda *i: scores(te.floordiv(i[0], divisor(classes)), te.floormod(i[0], divisor(classes)), i[1]),
        name="T_rows",
    )

    def eligible(score: Expr, settings: Sequence[Buffer]) -> Expr:
        if attrs.strict:
            return score > settings[2][0]
        minus = te.const(-1.0, score.dtype)
        return te.all(score > settings[2][0], score > minus, settings[1][0] > te.const(0.0, boxes.dtype))

    def excludes(a: Sequence[Expr], b: Sequence[Expr], score: Expr, settings: Sequence[Buffer]) -> Expr:
        shared = overlap(corners(a), corners(b))
        if attrs.strict:
            return shared > settings[1][0]
        return te.all(score > te.const(0.0, score.dtype), shared >= settings[1][0])

    def limit(settings: Sequence[Buffer]) -> Expr:
        return te.Select(settings[0][0] > 0, settings[0][0], number)

    settings = [scalar(most, "int32"), scalar(iou, boxes.dtype), scalar(least, scores.dtype)]
    found, count = Greedy(boxes, rows, classes, settings, eligible, excludes, limit).chosen()
    return _collected(found, count, rows, batch, classes, attrs.output_format == "onnx")


def _collected(found: Tensor, count: Tensor, scores: Tensor, batch: Any, classes: Any, onnx: bool) -> list[Tensor]:
    """Returns the selected boxes of all rows in sequence: (batch, class, box), or (class, box) per batch."""
    number = found.shape[1]

    def statements(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Any:
        chosen, many, score = ins
        ib = te.ir_builder.create()
        result, total = outs[0], outs[-1]
        for out in outs:
            _clear(ib, out)
        with loops(ib, [batch, classes]) as (b, c):
            row = b * classes + c
            with ib.for_range(0, many[row], "j") as j:
                own = 0 if onnx else b
                place = total[own].astype("int32")
                numbers = [b, c, chosen[row, j]] if onnx else [c, chosen[row, j]]
                for n, value in enumerate(numbers):
                    ib.emit(result.vstore((place, n) if onnx else (b, place, n), value.astype("int64")))
                if not onnx:
                    ib.emit(outs[1].vstore((b, place), score[row, chosen[row, j]].astype("float32")))
                ib.emit(total.vstore(own, total[own] + te.const(1, "int64")))
        return ib.get()

    inputs = [found, count, scores]
    if onnx:
        shapes = [(batch * classes * number, 3), (1,)]
        return list(te.extern(shapes, inputs, statements, name="collected", dtype="int64"))
    shapes = [(batch, classes * number, 2), (batch, classes * number), (batch,)]
    return list(te.extern(shapes, inputs, statements, name="collected", dtype=["int64", "float32", "int64"]))


def _clear(ib: IRBuilder, buffer: Buffer) -> None:
    with loops(ib, buffer.shape, "z") as at:
        ib.emit(buffer.vstore(tuple(at), te.const(0, buffer.dtype)))


def te_regular_nms(attrs: Attrs, boxes: Tensor, scores: Tensor) -> list[Tensor]:
    """Computes `vision.regular_non_max_suppression`."""
    batch, number, labels = scores.shape
    classes: int = attrs.num_classes
    background = labels - classes
    rows = te.compute(
        (batch * classes, number),
        lambda *i: scores(te.floordiv(i[0], classes), i[1], te.floormod(i[0], classes) + background),
        name="T_rows",
    )
    zero = te.const(0.0, boxes.dtype)

    def excludes(a: Sequence[Expr], b: Sequence[Expr], score: Expr, settings: Sequence[Buffer]) -> Expr:
        threshold = te.const(attrs.iou_threshold, boxes.dtype)
        return te.all(area(a) > zero, area(b) > zero, overlap(a, b) > threshold)

    found, count = Greedy(
        boxes,
        rows,
        classes,
        (),
        lambda score, settings: score >= te.const(attrs.score_threshold, score.dtype),
        excludes,
        lambda settings: te.const(attrs.max_detections_per_class, "int32"),
    ).chosen()

    def candidate(b: Expr, k: Expr) -> Expr:
        row, j = b * classes + te.floordiv(k, divisor(number)), te.floormod(k, divisor(number))
        return te.if_then_else(j < count(row), rows(row, found(row, j)), te.const(LEAST, scores.dtype))

    best = te_order(te.compute((batch, classes * number), candidate, name="T_candidates"), 1, False)
    k = te.reduce_axis((0, classes), name="k")
    all_found = te.compute((batch,), lambda *b: te.sum(count(b[0] * classes + k), axis=k), name="T_count")
    size: int = attrs.max_detections
    total = te.compute((batch,), lambda *b: te.min(all_found(*b), size), name="T_detections")

    def detection(name: str, value: Callable[[Expr, Expr, Expr, tuple[Expr, ...]], Expr], *more: int) -> Tensor:
        def body(b: Expr, d: Expr, *n: Expr) -> Expr:
            place = best(b, te.min(d, classes * number - 1))
            kind = te.floordiv(place, divisor(number))
            inside = value(b, kind, found(b * classes + kind, te.floormod(place, divisor(number))), n)
            return te.if_then_else(d < total(b), inside.astype("float32"), te.const(0.0, "float32"))

        return te.compute((batch, size, *more), body, name=name)

    return [
        detection("T_boxes", lambda b, kind, box, n: boxes(b, box, *n), 4),
        detection("T_classes", lambda b, kind, box, n: kind),
        detection("T_scores", lambda b, kind, box, n: rows(b * classes + kind, box)),
        total,
    ]
