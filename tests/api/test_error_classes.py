"""Errors as TVM's programs catch them: RuntimeError, and ValueError or TypeError besides."""

from __future__ import annotations

import mirstack
import pytest
from mirstack import error, relay, tir
from mirstack.support.diagnostics import Diagnostic, MirError, MirTypeError, MirValueError, Sources, diagnostic_at


def test_one_class_by_many_names() -> None:
    assert mirstack.TVMError is mirstack.MirError is error.DiagnosticError and issubclass(MirError, RuntimeError)
    assert all(issubclass(getattr(error, name), RuntimeError) for name in error.__all__)
    assert issubclass(MirTypeError, TypeError) and issubclass(MirValueError, ValueError)
    for raised in (mirstack.TVMError("the text"), error.OpNotImplemented("the text"), MirError(Diagnostic("the text"))):
        assert str(raised) == "error: the text" and raised.diagnostics[0].message == "the text"
    assert mirstack.TVMError().diagnostics == ()


def test_values_and_types() -> None:
    module = mirstack.IRModule()
    for wrong in (lambda: module["f"], lambda: module.get_global_var("f"), lambda: module.get_type("List")):
        with pytest.raises(ValueError, match="the module has no") as caught:
            wrong()
        assert isinstance(caught.value, mirstack.TVMError)
    with pytest.raises(ValueError, match="a dimension is not negative"):
        relay.TensorType((-1,))
    with pytest.raises(TypeError, match="a dimension is an integer"):
        relay.TensorType((1.5,))
    with pytest.raises(ValueError, match=r"there is no operator 'nn\.den'"):
        relay.op.get("nn.den")
    with pytest.raises(RuntimeError, match=r"^<\w*>|from_string:1:"):
        relay.parse("def @main(")


def test_lines_are_added_to_errors_of_values() -> None:
    sources = Sources()
    sources.add("a.mir", "def @main()")
    from mirstack.support.diagnostics import file_loc

    raised = MirValueError(diagnostic_at(file_loc("a.mir", 1, 5), "what is wrong", "the rule"))
    raised.show_in(sources)
    assert str(raised) == "a.mir:1:5: error: what is wrong\ndef @main()\n    ^\nnote: the rule"


def test_the_errors_of_schedules_are_errors() -> None:
    assert issubclass(tir.ScheduleError, RuntimeError)
