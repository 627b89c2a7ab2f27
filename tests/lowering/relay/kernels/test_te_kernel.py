"""What is said of operators that have no tensor expression for what they are given."""

from pathlib import Path

import mirstack
import pytest
from mirstack.support.diagnostics import MirError


def refused(folder: Path, call: str, dtype: str) -> str:
    program = folder / "program.mir"
    program.write_text(f'#[version = "0.0.5"]\ndef @main(%x: Tensor[(3, 100), {dtype}]) {{ {call} }}\n')
    with pytest.raises(MirError) as caught:
        mirstack.compile(program, cache=False)
    return str(caught.value)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("nn.softmax(%x)", "integer division by '/' is ambiguous"),
        ("mean(%x)", "300 does not fit dtype int8, which holds -128 to 127"),
        ("nn.l2_normalize(%x, eps=0.001f, axis=[1])", "0.001 cannot be a constant of dtype int8"),
    ],
)
def test_integers_where_floats_are_needed(tmp_path: Path, call: str, reason: str) -> None:
    message = refused(tmp_path, call, "int8")
    name = call.partition("(")[0]
    assert (
        f"program.mir:2:41: error: {name} of int8 has no tensor expression, so it cannot be compiled: {reason}"
        in message
    )
    assert 'note: compute it in floats, such as cast(%x, dtype="float32"), or run it with `--target interp`' in message


def test_an_intrinsic_of_integers(tmp_path: Path) -> None:
    message = refused(tmp_path, "nn.log_softmax(%x)", "int32")
    assert "error: 'T.exp' takes floats, not int32" in message
    assert "note: cast it to floats first: T.Cast in TIR, cast in Relay" in message
