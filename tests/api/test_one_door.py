"""`mirstack.compile` takes a program in any form; what is wrong is said shortly."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack import relay, te, tir

TEXT = "def @main(%A: Tensor[(4), float32]) { add(%A, %A) }"


def _relay() -> Any:
    A = relay.var("A", shape=(4,))
    return relay.Function([A], relay.add(A, A))


def _tir_schedule() -> Any:
    schedule = tir.Schedule(_twice())
    schedule.vectorize(schedule.get_loops("B")[0])
    return schedule


def _tensors() -> tuple[Any, list[Any]]:
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] * 2.0, name="B")
    return te.create_schedule(B.op), [A, B]


def _twice() -> Any:
    return te.create_prim_func(_tensors()[1])


FORMS: dict[str, Callable[[], Any]] = {
    "text": lambda: TEXT,
    "module of xDSL": lambda: mirstack.parse(TEXT),
    "IRModule": lambda: mirstack.IRModule.from_expr(_relay()),
    "Relay function": _relay,
    "Relay expression": lambda: _relay().body,
    "PrimFunc": _twice,
    "schedule of TIR": _tir_schedule,
}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_is_compiled_and_called_by_names(form: str) -> None:
    program = FORMS[form]()
    net = mirstack.compile(program, "interp")
    given = np.arange(4, dtype="float32")
    out = np.zeros(4, "float32")
    result = net(A=given) if len(net.params) == 1 else net(A=given, B=out)
    np.testing.assert_array_equal(out if result is None else result, given * 2)


def test_a_path_is_compiled(tmp_path: Path) -> None:
    path = tmp_path / "net.mir"
    path.write_text(TEXT)
    for source in (path, str(path)):
        assert mirstack.compile(source, "interp")(np.ones(4, "float32")).tolist() == [2.0] * 4


def test_a_schedule_of_te_is_compiled_with_its_parameters() -> None:
    schedule, args = _tensors()
    out = np.zeros(4, "float32")
    mirstack.compile(schedule, args=args)(A=np.ones(4, "float32"), B=out)
    assert out.tolist() == [2.0] * 4


def _torch_module() -> object:
    return type("Linear", (), {"__module__": "torch.nn"})()


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (3, "compile takes a path, a text, a module, a function of Relay or TIR, or a schedule, not int"),
        (_tensors, r"not function\nnote: a Python function becomes one of TIR by the decorator @T\.prim_func"),
        (_torch_module(), r"note: import it first: mirstack\.compile\(mirstack\.from_torch\(model, example_inputs\)\)"),
        (
            _tensors()[0],
            r"parameters\nnote: name them in order, outputs last: mirstack\.compile\(s, args=\[A, B, C\]\)",
        ),
    ],
)
def test_what_is_no_program_is_refused(program: Any, message: str) -> None:
    with pytest.raises(mirstack.error.MirTypeError, match=message):
        mirstack.compile(program)


@pytest.mark.parametrize("program", [TEXT, "net.mir", _twice()])
def test_only_a_schedule_of_te_takes_parameters(program: Any) -> None:
    with pytest.raises(TypeError, match="args are the parameters of a schedule of te, not of "):
        mirstack.compile(program, args=_tensors()[1])


WRONG = """\
import mirstack
mirstack.{function}("def @main(%x: Tensor[(2), float32]) {{ nn.relux(%x) }}")
"""


@pytest.mark.parametrize("function", ["compile", "parse", "relay.parse"])
def test_what_is_wrong_is_said_in_few_lines(function: str) -> None:
    program = WRONG.format(function=function)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    first = done.stderr.index("mirstack.MirError: ")
    lines = done.stderr[:first].splitlines()
    assert len(lines) <= 5 and "short_tracebacks.py" in lines[-2], done.stderr
    assert done.stderr[first:].splitlines()[1] == "def @main(%x: Tensor[(2), float32]) { nn.relux(%x) }"


def test_tracebacks_are_whole_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def depth() -> int:
        with pytest.raises(mirstack.MirError) as caught:
            mirstack.parse("def @main() {")
        return len(caught.traceback)

    short = depth()
    monkeypatch.setenv("MIRSTACK_TRACEBACK", "full")
    assert short == 2 and depth() > 6


def test_modules_of_the_package_are_no_programs() -> None:
    module: ModuleType = relay
    with pytest.raises(TypeError, match="not module"):
        mirstack.compile(module)  # type: ignore[arg-type]
