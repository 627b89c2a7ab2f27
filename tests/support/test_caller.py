"""The line of the program that called into mirstack."""

from mirstack import te
from mirstack.api.ir.node import span_of_caller
from mirstack.dialects.te.caller_location import caller
from mirstack.support.caller import caller_place
from mirstack.support.diagnostics import source_position


def test_relay_and_te_name_the_line_that_calls() -> None:
    place, span, position = caller_place(), span_of_caller(), source_position(caller())
    assert place is not None and place[0] == __file__
    assert span is not None and (span.source_name, span.line) == place
    assert position == (*place, 1)


def test_what_te_makes_stands_at_the_programs_line() -> None:
    position = source_position(te.placeholder((4,), name="A").op.location)
    assert position is not None and position[0] == __file__
