"""`relay.backend`: TVM's executors and runtimes by name with their options; modules of executors."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from ....support.arguments import check
from ....support.diagnostics import Diagnostic, MirTypeError, MirValueError
from ....support.public_names import public_names
from ....support.text import did_you_mean

if TYPE_CHECKING:
    from . import interpreter as interpreter
    from . import vm as vm


class _Named:
    """A name with options, which are checked."""

    KINDS: ClassVar[Mapping[str, Mapping[str, type]]] = {}
    WHAT: ClassVar[str] = ""

    def __init__(self, name: str, options: Mapping[str, Any] | None = None):
        """Raises MirValueError for an unknown name or option, MirTypeError for an option's wrong type."""
        known = self.KINDS.get(name)
        if known is None:
            raise MirValueError(
                Diagnostic(f"there is no {self.WHAT} '{name}'").with_note(f"there are {', '.join(self.KINDS)}")
            )
        check(options, "options", "a dictionary", Mapping, type(None))
        self.name = name
        self.options: dict[str, Any] = dict(options or {})
        for key, value in self.options.items():
            if key not in known:
                hint = did_you_mean(key, known) or f"; it has {', '.join(known) or 'none'}"
                raise MirValueError(Diagnostic(f"the {self.WHAT} '{name}' has no option '{key}'{hint}"))
            if not isinstance(value, known[key]):
                wanted = known[key].__name__
                raise MirTypeError(
                    Diagnostic(f"the option '{key}' of the {self.WHAT} '{name}' is {wanted}, not {value!r}")
                )

    @classmethod
    def list_registered(cls) -> list[str]:
        """Returns the names."""
        return sorted(cls.KINDS)

    @classmethod
    def list_registered_options(cls, name: str) -> dict[str, str]:
        """Returns the types of a name's options."""
        return {key: kind.__name__ for key, kind in cls(name).KINDS[name].items()}

    def __contains__(self, key: str) -> bool:
        return key in self.options

    def __getitem__(self, key: str) -> Any:
        """Returns the value of an option; None for one that is not given."""
        return self.options.get(key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and (self.name, self.options) == (other.name, other.options)

    def __hash__(self) -> int:
        return hash((self.name, repr(sorted(self.options.items()))))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.options!r})"


class Executor(_Named):
    """An executor of TVM's by name: `Executor("graph", {"link-params": True})`.

    Programs run the same whichever it is.
    """

    KINDS: ClassVar[Mapping[str, Mapping[str, type]]] = {
        "aot": {
            "constant-byte-alignment": int,
            "interface-api": str,
            "link-params": bool,
            "unpacked-api": bool,
            "workspace-byte-alignment": int,
        },
        "graph": {"link-params": bool},
    }
    WHAT: ClassVar[str] = "executor"


class Runtime(_Named):
    """A runtime of TVM's by name: `Runtime("cpp")`. Programs have the runtime of this project."""

    KINDS: ClassVar[Mapping[str, Mapping[str, type]]] = {"cpp": {"system-lib": bool}, "crt": {"system-lib": bool}}
    WHAT: ClassVar[str] = "runtime"


__all__ = ["Executor", "Runtime", "interpreter", "vm"]


def __getattr__(name: str) -> object:
    if name in ("interpreter", "vm"):
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module 'mirstack.relay.backend' has no attribute '{name}'")


__dir__ = public_names(__name__)
