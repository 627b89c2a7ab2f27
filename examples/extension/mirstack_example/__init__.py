"""Extends mirstack by a dialect, an operator, a pass, rules and a schedule rule."""

from pathlib import Path

from mirstack import Extension
from xdsl.universe import Universe

from .dialect import SAT
from .remove_copies import RemoveCopies

_HERE = Path(__file__).parent

EXTENSION = Extension(files=[_HERE / "operators.mir", _HERE / "rules.mir", _HERE / "schedules.mir"])
"""What mirstack loads, by the entry point in `mirstack.extensions`."""

UNIVERSE = Universe(all_dialects={"sat": lambda: SAT}, all_passes={RemoveCopies.name: lambda: RemoveCopies})
"""What xDSL and mirstack find, by the entry point in `xdsl.universe`."""
