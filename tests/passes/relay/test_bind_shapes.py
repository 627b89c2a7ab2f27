"""Open dimensions of parameters are fixed by `shapes=` and `--shape`; what cannot be fixed is told."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, cast

import mirstack
import numpy as np
import pytest
from mirstack.driver import mir_run
from mirstack.support.diagnostics import MirError

DENSE = "def @main(%x: Tensor[(?, 8), float32], %w: Tensor[(?, ?), float32]) { nn.dense(%x, %w, units=None) }"
SHAPE_ARITHMETIC = """def @main(%x: Tensor[(?, 6), float32]) {
  dyn.reshape(%x, concatenate((multiply(strided_slice(shape_of(%x), begin=[0], end=[1]), 2), full(3, shape=[1], dtype="int32"))))
}"""
TARGETS: tuple[Literal["cpu", "interp"], ...] = ("cpu", "interp")


def _compile(text: str, target: Literal["cpu", "interp"] = "interp", **named: Any) -> mirstack.Executable:
    return mirstack.compile(mirstack.parse(text), target, **named)


@pytest.mark.parametrize("target", TARGETS)
def test_fixed_parameters_take_one_size(target: Literal["cpu", "interp"]) -> None:
    net = _compile(DENSE, target, shapes={"x": (3, None), "w": ("?", 8)})
    assert [param.shape for param in net.params] == [(3, 8), ("?", 8)]
    for columns in (0, 1, 5):
        assert np.asarray(net(np.ones((3, 8), "float32"), np.ones((columns, 8), "float32"))).shape == (3, columns)
    with pytest.raises(Exception, match=r"3"):
        net(np.ones((2, 8), "float32"), np.ones((4, 8), "float32"))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("rows", [0, 1, 4])
def test_computed_shapes_become_known(target: Literal["cpu", "interp"], rows: int) -> None:
    x = np.arange(rows * 6, dtype="float32").reshape(rows, 6)
    for shapes in (None, {"x": (rows, 6)}):
        assert np.array_equal(np.asarray(_compile(SHAPE_ARITHMETIC, target, shapes=shapes)(x)), x.reshape(rows * 2, 3))


def test_shapes_are_part_of_the_key_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIRSTACK_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "dense.mir"
    file.write_text(DENSE)
    for rows in (2, 3, 2):
        net = mirstack.compile(file, shapes={"x": (rows, 8)})
        assert net.params[0].shape == (rows, 8)
    assert mirstack.compile(file).params[0].shape == ("?", 8)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"y": (3, 8)}, "a shape is given for 'y', which is not a parameter"),
        ({"xx": (3, 8)}, "note: @main takes x, w"),
        ({"rows.0": (3, 8)}, "a shape is given for 'rows.0', which is not a parameter; did you mean 'rows'?"),
        ({"x": (3,)}, "the shape (3) of %x has 1 dimension, but %x has 2"),
        ({"x": (3,)}, "note: %x is Tensor[(?, 8), float32]"),
        ({"x": (3, 9)}, "the shape (3, 9) contradicts dimension 1 of %x, which is 8, not 9"),
        ({"w": (4, 7)}, "nn.dense: argument 'weight' must be Tensor[(4, 8), float32], not Tensor[(4, 7), float32]"),
    ],
)
def test_shapes_that_do_not_fit(shapes: dict[str, tuple[int, ...]], message: str) -> None:
    for target in TARGETS:
        with pytest.raises(MirError) as raised:
            _compile(DENSE.replace("%w", "%rows") if "rows.0" in shapes else DENSE, target, shapes=shapes)
        assert message in str(raised.value)


def test_only_tensors_of_relay_have_shapes() -> None:
    with pytest.raises(MirError, match=r"a shape is given for %f, which is not a tensor but fn \(int32\) -> int32"):
        _compile("def @main(%f: fn (int32) -> int32) { %f(1) }", shapes={"f": (1,)})
    function = "@T.prim_func\ndef main(A: T.Buffer((4,), 'float32')):\n    A[0] = T.float32(1)\n"
    with pytest.raises(MirError, match=r"shapes are given, but the entry is not a Relay function"):
        _compile(function, shapes={"A": (4,)})


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (3, "shapes is a dictionary of shapes by the names of parameters, such as {'x': (1, 3)}, not 3"),
        ({1: (1, 3)}, "a name in shapes is the name of a parameter, not 1"),
        ({"x": 3}, "the shape of x takes a list of sizes, not 3"),
        ({"x": ("n", 8)}, "a size of x is an integer from 0 on, not 'n'"),
    ],
)
def test_wrong_kinds(shapes: object, message: str) -> None:
    with pytest.raises(TypeError) as raised:
        _compile(DENSE, shapes=cast("Any", shapes))
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--shape", "x=3,8", "--shape", "w=?,8", "--size", "w.0=2"], 0, "out0: float32[3, 2]"),
        (["--shape", "x=3,8", "--size", "x.0=3"], 2, "--size x.0=3: no parameter has a size 'x.0'"),
        (["--shape", "x"], 2, "'x' is not NAME=SIZE,…, as in x=1,3,224,224 or x=?,8"),
        (["--shape", "x=3,-1"], 2, "'x=3,-1' is not NAME=SIZE,…"),
        (["--shape", "x=3x8"], 2, "'x=3x8' is not NAME=SIZE,…"),
        (["--shape", "x=3,8", "--shape", "x=4,8"], 2, "the shape of x is given twice"),
        (["--shape", "x=3,8,1"], 1, "dense.mir:1:11: error: the shape (3, 8, 1) of %x has 3 dimensions, but %x has 2"),
    ],
)
def test_on_the_command_line(
    arguments: Sequence[str],
    code: int,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("dense.mir").write_text(DENSE)
    try:
        ended = mir_run.main(["dense.mir", "--target", "interp", "--random", "1", *arguments])
    except SystemExit as exit:
        ended = exit.code
    assert ended == code
    captured = capsys.readouterr()
    assert message in captured.out + captured.err
