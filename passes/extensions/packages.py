"""Finds the packages that extend mirstack, by their entry points, and loads them.

`importlib.metadata` parses every package's metadata, which takes a tenth of a start-up; here each directory of `sys.path` is listed, and of
the entry points only the text is searched for the two groups.

    [project.entry-points."mirstack.extensions"]        [project.entry-points."xdsl.universe"]
    my-package = "my_package:EXTENSION"                 my-package = "my_package.universe:UNIVERSE"
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from ...support.diagnostics import Diagnostic, MirError

GROUPS = ("mirstack.extensions", "xdsl.universe")
"""The groups of entry points that are looked for."""


@dataclass(frozen=True)
class EntryPoint:
    """An entry point of a package: `name = where`, in one of the groups."""

    package: str
    group: str
    name: str
    where: str

    @property
    def origin(self) -> str:
        """Returns the package as messages and lists call it."""
        return f"package {self.package}"


def entry_points() -> list[EntryPoint]:
    """Returns the entry points of installed packages in the two groups, without mirstack's and xDSL's own."""
    found: dict[tuple[str, str, str], EntryPoint] = {}
    for folder in sys.path:
        for point in _points_in(folder or os.curdir):
            # The first on the path is the one that is imported.
            found.setdefault((point.package, point.group, point.name), point)
    return [point for point in found.values() if point.package not in ("mirstack", "xdsl")]


def _points_in(folder: str) -> Iterator[EntryPoint]:
    try:
        names = [name for name in os.listdir(folder) if name.endswith((".dist-info", ".egg-info"))]
    except OSError:
        return
    for name in sorted(names):
        try:
            with open(f"{folder}/{name}/entry_points.txt", "rb") as file:
                text = file.read()
        except OSError:
            continue
        if any(group.encode() in text for group in GROUPS):
            package = name.rpartition(".")[0].partition("-")[0]
            yield from _parse(package.replace("_", "-").lower(), text.decode("utf-8", "replace"))


def _parse(package: str, text: str) -> Iterator[EntryPoint]:
    group = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            group = line.strip("[]").strip()
        elif group in GROUPS and "=" in line and not line.startswith("#"):
            name, _, where = line.partition("=")
            yield EntryPoint(package, group, name.strip(), where.partition("[")[0].strip())


_LOADED: list[EntryPoint] = []
_LOOKED: list[bool] = []


def load_packages() -> bool:
    """Loads the packages that extend mirstack, once; returns whether there were some to load.

    Raises MirError, with the package's name, for one that cannot be imported, and one that is not what its group takes.
    """
    if _LOOKED:
        return False
    _LOOKED.append(True)
    # Rules are of the dialects that xDSL's universes have.
    for point in sorted(entry_points(), key=lambda point: point.group == GROUPS[0]):
        _LOADED.append(point)
        _load(point)
    return bool(_LOADED)


def loaded_packages() -> list[EntryPoint]:
    """Returns the entry points of the packages that were loaded."""
    return list(_LOADED)


def _load(point: EntryPoint) -> None:
    from .extension import Extension
    from .load import register_dialect, register_extension, register_pass

    value = _value(point)
    if point.group == GROUPS[0]:
        if not isinstance(value, Extension):
            raise _refuse(point, f"{point.where} is not a mirstack.Extension")
        register_extension(value, point.origin)
        return
    from xdsl.universe import Universe

    if not isinstance(value, Universe):
        raise _refuse(point, f"{point.where} is not an xdsl.universe.Universe")
    for name, dialect in value.all_dialects.items():
        register_dialect(name, dialect, point.origin)
    for name, module_pass in value.all_passes.items():
        register_pass(name, module_pass, point.origin)


def _value(point: EntryPoint) -> Any:
    module, _, attribute = point.where.partition(":")
    try:
        found: Any = import_module(module)
        for part in attribute.split(".") if attribute else ():
            found = getattr(found, part)
    except MirError:
        raise
    except Exception as error:
        message = str(error).splitlines()[0] if str(error) else "no message"
        raise _refuse(point, f"{point.where} cannot be imported: {type(error).__name__}: {message}") from error
    return found


def _refuse(point: EntryPoint, reason: str) -> MirError:
    diagnostic = Diagnostic(f"{point.origin} cannot be loaded: {reason}")
    return MirError(
        diagnostic.with_note(
            f"it extends mirstack by its entry point '{point.name}' in {point.group}; uninstall or repair it"
        )
    )
