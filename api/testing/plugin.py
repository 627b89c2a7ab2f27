"""A plugin of pytest: tests that take `target` and `dev`, and values of `testing.parameters`."""

from __future__ import annotations

from typing import Any, cast

import pytest

from ..device import Device, device
from ..target.target import Target
from . import _GROUP, enabled_targets  # pyright: ignore[reportPrivateUsage]


@pytest.fixture
def dev(target: str | Target) -> Device:
    """The device of the test's target."""
    return device(Target(target).kind.name)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs a test with each target that is enabled, and with each tuple of grouped values."""
    names = metafunc.fixturenames
    marked = {name for mark in metafunc.definition.iter_markers("parametrize") for name in _names_of(mark.args[0])}
    if "target" in names and "target" not in marked:
        metafunc.parametrize("target", [name for name, _ in enabled_targets()])
    groups: dict[object, dict[str, tuple[Any, Any]]] = {}
    for name in names:
        made: object = getattr(cast("object", metafunc.module), name, None)  # pyright: ignore[reportUnknownMemberType]
        if name not in marked and hasattr(made, _GROUP):
            group, values, ids = getattr(made, _GROUP)
            groups.setdefault(group, {})[name] = (values, ids)
    for taken in groups.values():
        rows = list(zip(*(values for values, _ in taken.values()), strict=True))
        ids = next(iter(taken.values()))[1]
        metafunc.parametrize(list(taken), rows, ids=ids, indirect=True)


def _names_of(names: str | list[str] | tuple[str, ...]) -> list[str]:
    return [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
