"""Sequences whose length is known at run time only, as a scripted loop that appends to a list makes them; against onnxruntime."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest
from extras import library
from mirstack.api.compile import TargetName

pytestmark = pytest.mark.extra
onnx = library("onnx", "onnx")
onnxruntime = library("onnxruntime", "onnx")

TRUE = "t = Constant <value = bool {1}> () "
AT = "r = Gather <axis = 0> (x, i) "
ROWS: tuple[Any, ...] = (
    ("one tensor is appended in each iteration",
     "g (float[n,3] x, int64 m) => (float[p,3] y) { " + TRUE + "e = SequenceEmpty () "
     "s = Loop (m, t, e) <body = b (int64 i, bool c, seq(float[3]) q) => (bool c2, seq(float[3]) q2) { "
     + AT + "c2 = Identity (c) q2 = SequenceInsert (q, r) }> y = ConcatFromSequence <axis = 0, new_axis = 1> (s) }"),
    ("two are appended to one that is there, and joined along the last axis",
     "g (float[n,3] x, int64 m) => (float[p] y, int64 l) { " + TRUE + "z = Constant <value_int = 0> () "
     "f = Gather <axis = 0> (x, z) e = SequenceConstruct (f) "
     "s = Loop (m, t, e) <body = b (int64 i, bool c, seq(float[3]) q) => (bool c2, seq(float[3]) q2) { "
     + AT + "c2 = Identity (c) a = Neg (r) q1 = SequenceInsert (q, r) q2 = SequenceInsert (q1, a) }> "
     "l = SequenceLength (s) y = ConcatFromSequence <axis = -1> (s) }"),
    ("one is appended under a condition",
     "g (float[n,3] x, int64 m) => (float[p,3] y, int64 l) { " + TRUE + "e = SequenceEmpty () k = Constant <value_int = 2> () "
     "z = Constant <value_int = 1> () "
     "s = Loop (m, t, e) <body = b (int64 i, bool c, seq(float[3]) q) => (bool c2, seq(float[3]) q2) { "
     + AT + "c2 = Identity (c) d = Mod (i, k) o = Equal (d, z) "
     "q2 = If (o) <then_branch = u () => (seq(float[3]) v) { v = Identity (q) }, "
     "else_branch = w () => (seq(float[3]) v2) { v2 = SequenceInsert (q, r) }> }> "
     "l = SequenceLength (s) y = ConcatFromSequence <axis = 0, new_axis = 1> (s) }"),
    ("the last one is used to compute the next",
     "g (float[n,3] x, int64 m) => (float[3,p] y) { " + TRUE + "z = Constant <value_int = 0> () h = Constant <value_int = -1> () "
     "f = Gather <axis = 0> (x, z) e = SequenceConstruct (f) "
     "s = Loop (m, t, e) <body = b (int64 i, bool c, seq(float[3]) q) => (bool c2, seq(float[3]) q2) { "
     + AT + "c2 = Identity (c) a = SequenceAt (q, h) d = Add (a, r) q2 = SequenceInsert (q, d) }> "
     "y = ConcatFromSequence <axis = 1, new_axis = 1> (s) }"),
    ("a sequence of open length is read in a loop, in which it does not change",
     "g (float[n,3] x, int64 m) => (float[3] y) { " + TRUE + "z = Constant <value = float {0}> () "
     "p = SplitToSequence <axis = 0, keepdims = 0> (x) "
     "y, s = Loop (m, t, z, p) <body = b (int64 i, bool c, float a, seq(float[3]) q) => (bool c2, float a2, seq(float[3]) q2) { "
     "r = SequenceAt (q, i) c2 = Identity (c) h = ReduceSum <keepdims = 0> (r) a2 = Add (a, h) q2 = Identity (q) }> }"),
    ("rows and columns of an open tensor",
     "g (float[n,3] x, int64 m) => (float[n,3] y, float[3,n] v, float[3] w, int64 l) { p = SplitToSequence (x) "
     "y = ConcatFromSequence <axis = 0> (p) l = SequenceLength (p) o = Transpose (x) "
     "k = SplitToSequence <axis = 1, keepdims = 1> (o) v = ConcatFromSequence <axis = 1> (k) "
     "j = SplitToSequence <axis = 1, keepdims = 0> (o) w = SequenceAt (j, m) }"),
    ("branches return sequences of other lengths",
     "g (float[n,3] x, int64 m) => (float[p,3] y) { z = Constant <value_int = 2> () o = Less (m, z) "
     "s = If (o) <then_branch = u () => (seq(float[n,3]) v) { v = SequenceConstruct (x) }, "
     "else_branch = w () => (seq(float[n,3]) v2) { a = Neg (x) v2 = SequenceConstruct (x, a, x) }> "
     "y = ConcatFromSequence <axis = 0> (s) }"),
    ("a loop inside of a loop appends to the sequence of the outer one",
     "g (float[n,3] x, int64 m) => (float[p,3] y) { " + TRUE + "e = SequenceEmpty () "
     "s = Loop (m, t, e) <body = b (int64 j, bool c, seq(float[3]) q) => (bool c2, seq(float[3]) q2) { c2 = Identity (c) "
     "q2 = Loop (m, c, q) <body = d (int64 i, bool c3, seq(float[3]) q3) => (bool c4, seq(float[3]) q4) { "
     + AT + "c4 = Identity (c3) q4 = SequenceInsert (q3, r) }> }> y = ConcatFromSequence <axis = 0, new_axis = 1> (s) }"),
)  # fmt: skip
X = np.random.default_rng(0).random((5, 3), "float32")


@pytest.mark.parametrize("target", ["cpu", "interp"])
@pytest.mark.parametrize("text", [row[1] for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_sequence_of_open_length(text: str, target: TargetName) -> None:
    model = parsed(text)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    made = mirstack.compile(mirstack.from_onnx(model), target=target)
    for rows in (5, 3):
        for trips in (1, 2):
            x, m = X[:rows], np.array(trips)
            found: Any = made(x, m)
            wanted = session.run(None, {"x": x, "m": m})
            for a, b in zip(found if isinstance(found, tuple) else (found,), wanted, strict=True):
                assert np.asarray(a).shape == b.shape
                np.testing.assert_allclose(np.asarray(a), b, rtol=1e-5)


def test_tensors_of_other_shapes_end_a_program() -> None:
    text = (
        "g (float[n,3] x, int64 m) => (float[p,3] y) { "
        + TRUE
        + "e = SequenceEmpty () k = Constant <value_ints = [0]> () "
        "s = Loop (m, t, e) <body = b (int64 i, bool c, seq(float[o,3]) q) => (bool c2, seq(float[o,3]) q2) { "
        "c2 = Identity (c) h = Unsqueeze (i, k) r = Slice (x, k, h) q2 = SequenceInsert (q, r) }> "
        "y = ConcatFromSequence <axis = 0> (s) }"
    )
    made: Any = mirstack.compile(mirstack.from_onnx(parsed(text)))
    with pytest.raises(mirstack.MirError, match="concatenate"):
        made(X, np.array(3))


def test_a_sequence_of_open_length_is_no_output() -> None:
    with pytest.raises(mirstack.MirError, match="output 'y' is a sequence whose length is known only at run time"):
        mirstack.from_onnx(parsed("g (float[n,3] x) => (seq(float[1,3]) y) { y = SplitToSequence (x) }"))


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (
            "k = Constant <value_int = 0> () y = SequenceInsert (s, x, k)",
            "a sequence whose length is known only at run time takes tensors at its end alone",
        ),
        ("y = SequenceErase (s)", "SequenceErase: the length of the sequence must be known, not computed at run time"),
        ("a = SequenceInsert (s, m) y = ConcatFromSequence <axis = 0> (a)", "must then be of one rank and dtype"),
    ],
)
def test_what_needs_the_length_is_refused(nodes: str, message: str) -> None:
    with pytest.raises(mirstack.MirError, match=message):
        mirstack.from_onnx(
            parsed("g (float[n,3] x, int64 m) => (float[p] y) { s = SplitToSequence (x) " + nodes + " }")
        )


def parsed(text: str) -> Any:
    return onnx.parser.parse_model('<ir_version: 10, opset_import: ["" : 18]> ' + text)
