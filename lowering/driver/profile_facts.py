"""Defines the facts about kernels that a profile shows, as plain data: call sites, work, schedules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .size_of_json import size_of_json

if TYPE_CHECKING:
    from ..tir.signature import Size


@dataclass(frozen=True)
class CallSite:
    """A call of a kernel in a program.

    `places` are those of its operators in the source, `net.mir:3:7` or `net.onnx: node 'Conv_12'`; `symbols` the names of the sizes that
    it takes.
    """

    kernel: str
    places: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()


@dataclass(frozen=True)
class KernelWork:
    """The work of one call of a kernel, in terms of its sizes; None where it depends on data.

    `operations` counts those on every dtype, `float32` those on float32; `bytes` are those that must be read and written. `rule` names the
    rules of `default-schedule` that changed its loops.
    """

    operations: Size | None = None
    float32: Size | None = None
    bytes: Size | None = None
    rule: str = ""


@dataclass(frozen=True)
class ProfileFacts:
    """The call sites of a program by their numbers, and the work of its kernels by name."""

    sites: tuple[CallSite, ...] = ()
    work: Mapping[str, KernelWork] = field(default_factory=dict[str, KernelWork])

    def to_json(self) -> dict[str, Any]:
        """Returns the facts as `json` can write them."""
        return {
            "sites": [[site.kernel, list(site.places), list(site.symbols)] for site in self.sites],
            "work": {name: list(vars(work).values()) for name, work in self.work.items()},
        }

    @staticmethod
    def of_json(data: Mapping[str, Any]) -> ProfileFacts:
        """Reads facts that `to_json` wrote. Raises KeyError, TypeError or ValueError for other data."""
        sites = [CallSite(str(kernel), _texts(places), _texts(symbols)) for kernel, places, symbols in data["sites"]]
        work = {
            str(name): KernelWork(_open_size(operations), _open_size(float32), _open_size(moved), str(rule))
            for name, (operations, float32, moved, rule) in data["work"].items()
        }
        return ProfileFacts(tuple(sites), work)


def _open_size(data: Any) -> Size | None:
    return None if data is None else size_of_json(data)


def _texts(data: Sequence[Any]) -> tuple[str, ...]:
    return tuple(map(str, data))
