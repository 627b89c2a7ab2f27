"""Patches xDSL's classes, here only: each patch with its reason, its gain, and versions of xDSL.

`apply()` puts them in place; mir-opt, mir-run and the functions of the API call it, importing a dialect does not, so that a host such
as stock `xdsl-opt` keeps xDSL as it is. Everything works without the patches, but slower, and ops are shown by their addresses. They are left off

- where xDSL has another version than a patch was written for;
- with `MIRSTACK_XDSL_PATCHES=0`; `MIRSTACK_XDSL_PATCHES=identity,direct` applies only those that are named;
- `identity` where the process already holds IR: it changes hashes, and values may be keys of dictionaries.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path

from ..settings import meaningless, setting

SETTING = "MIRSTACK_XDSL_PATCHES"


@dataclass(frozen=True)
class Patch:
    """One change of xDSL's classes: `apply` makes it; `gain` is what was measured, `unless` tells why it
    cannot be made where xDSL was imported before."""

    reason: str
    gain: str
    apply: Callable[[], None]
    written_for: tuple[str, ...] = ("0.74.0",)
    unless: Callable[[], str | None] = lambda: None


PATCHES = (
    "lazy_methods",
    "op_formats",
    "identity",
    "direct",
    "isolation",
    "symbol_index",
    "verification",
    "short_repr",
)
"""The modules beside this one that hold a `PATCH`, in the order in which they are applied."""

_applied: dict[str, bool] = {}
"""The patches that were asked for, and whether they were applied."""


def apply() -> None:
    """Applies the patches that fit this version of xDSL and are not switched off; once in a process."""
    if _applied:
        return
    _applied.update(dict.fromkeys(PATCHES, False))
    wanted = _wanted()
    early = "xdsl.ir.core" not in sys.modules
    for name in PATCHES:
        if name not in wanted:
            continue
        patch = patch_of(name)
        if installed(patch.written_for) and (early or patch.unless() is None):
            patch.apply()
            _applied[name] = True


def patch_of(name: str) -> Patch:
    """Returns the patch of a module of this package."""
    patch: Patch = import_module(f"{__name__}.{name}").PATCH
    return patch


def applied(name: str) -> bool:
    """Returns whether a patch is in place."""
    return _applied.get(name, False)


@cache
def switched_on() -> bool:
    """Returns whether the environment allows patches."""
    return bool(_wanted())


def _wanted() -> tuple[str, ...]:
    text = setting(SETTING)
    if text is None or text == "1":
        return PATCHES
    names = tuple(text.split(","))
    if text != "0" and not set(names) <= set(PATCHES):
        meaningless(SETTING, text, f"0, 1 or some of {','.join(PATCHES)}")
        return PATCHES
    return () if text == "0" else names


@cache
def installed(versions: tuple[str, ...]) -> bool:
    """Returns whether the version of xDSL that is installed is one of these."""
    import xdsl

    # To ask `importlib.metadata` takes longer than all patches.
    folder = Path(xdsl.__file__).parents[1]
    if any((folder / f"xdsl-{version}.dist-info").is_dir() for version in versions):
        return True
    return str(xdsl.__version__) in versions


def ir_exists() -> str | None:
    """Returns a reason to keep the hashes of IR: existing values, ops, blocks or regions; None without."""
    import gc

    from xdsl.ir import IRNode, SSAValue, Use

    if any(issubclass(kind, SSAValue | Use | IRNode) for kind in set(map(type, gc.get_objects()))):
        return "the process holds IR already"
    return None


__all__ = ["PATCHES", "SETTING", "Patch", "applied", "apply", "installed", "ir_exists", "patch_of", "switched_on"]
