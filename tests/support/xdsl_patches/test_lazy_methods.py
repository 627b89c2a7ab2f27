"""Methods of dataclasses that are created at their first call do what dataclasses' own do."""

from __future__ import annotations

import dataclasses
import sys
from dataclasses import FrozenInstanceError
from types import FunctionType

import pytest
from mirstack.support.xdsl_patches import lazy_methods

pytestmark = pytest.mark.skipif(
    sys.version_info >= (3, 13), reason="dataclasses compile all methods of a class at once from Python 3.13 on"
)

CLASSES = """
from dataclasses import dataclass

@dataclass(frozen=True)
class Point:
    x: int
    y: int = 2

@dataclass(frozen=True)
class Place(Point):
    name: str = ""

@dataclass(frozen=True, slots=True)
class Slotted:
    x: int
"""


def classes(monkeypatch: pytest.MonkeyPatch, module: str) -> dict[str, type]:
    """Creates the classes in a module of this name, with the patch in place."""
    create = vars(dataclasses)["_create_fn"]
    monkeypatch.setattr(dataclasses, "_create_fn", lazy_methods.create_later(create))
    monkeypatch.setitem(sys.modules, module, type(sys)(module))
    names = vars(sys.modules[module])
    exec(compile(CLASSES, module, "exec", dont_inherit=True), names)
    return names


def test_methods_are_created_at_their_first_call(monkeypatch: pytest.MonkeyPatch) -> None:
    names = classes(monkeypatch, "mirstack.made_here")
    point, place = names["Point"], names["Place"]
    stub = vars(point)["__hash__"]
    one = point(1)
    assert repr(one) == "Point(x=1, y=2)" and repr(place(1)) == "Place(x=1, y=2, name='')"
    assert vars(point)["__hash__"] is stub and hash(one) == hash((1, 2))
    method = vars(point)["__hash__"]
    assert method is not stub and isinstance(method, FunctionType) and method.__qualname__ == "Point.__hash__"
    assert one == point(1, 2) and one != point(2) and one != place(1) and one != 1
    assert hash(one) == hash(point(1)) and {one: 5}[point(1)] == 5
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
        one.x = 3
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'y'"):
        del one.y
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'name'"):
        place(1).name = "a"


def test_a_method_of_a_base_class_that_is_called_for_a_derived_one_is_put_into_the_base(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = classes(monkeypatch, "xdsl.made_here")
    point = names["Point"]
    derived = type("Derived", (point,), {})
    stub = vars(point)["__eq__"]
    assert derived(1) == derived(1)
    assert "__eq__" not in vars(derived) and vars(point)["__eq__"] is not stub


def test_classes_with_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    slotted = classes(monkeypatch, "mirstack.made_here")["Slotted"]
    assert slotted(1) == slotted(1) and repr(slotted(3)) == "Slotted(x=3)" and len({slotted(1), slotted(1)}) == 1


def test_classes_of_other_packages_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    names = classes(monkeypatch, "someone.else")
    method = vars(names["Point"])["__repr__"]
    assert repr(names["Point"](1)) == "Point(x=1, y=2)" and vars(names["Point"])["__repr__"] is method
