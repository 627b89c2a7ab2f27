"""`CallGraph`: which functions of a module use which, by TVM's names."""

from __future__ import annotations

from collections import Counter

from ...support.arguments import check
from ...support.public_names import public_names
from ..ir.module import IRModule
from .expr import GlobalVar
from .graph import parts, post_order


class CallGraph:
    """The uses of a module's functions by each other, as they were when the graph was made."""

    def __init__(self, module: IRModule):
        check(module, "module", "an IRModule", IRModule)
        self.module = module
        self._uses: dict[str, Counter[str]] = {}
        """For each function, how often it uses each other one."""
        for variable, function in module.relay_functions.items():
            uses = self._uses[variable.name_hint] = Counter()
            for node in post_order(function):
                uses.update(part.name_hint for part in parts(node) if isinstance(part, GlobalVar))

    def _name(self, var: GlobalVar | str) -> str:
        return self.module.get_global_var(var if isinstance(var, str) else var.name_hint).name_hint

    def print_var(self, var: GlobalVar | str) -> str:
        """Returns the lines on one function: its references, then what it uses."""
        name = self._name(var)
        uses = self._uses.get(name, Counter())
        lines = [f"Call graph node: {name} at: {hex(id(self))},  #refs = {self.ref_count(name)}"]
        lines += [f"    call site: <{name}> calls {other}" for other, count in uses.items() for _ in range(count)]
        return "\n".join(lines) + "\n"

    def ref_count(self, var: GlobalVar | str) -> int:
        """Returns how often functions use this one, itself included."""
        name = self._name(var)
        return sum(uses[name] for uses in self._uses.values())

    def global_call_count(self, var: GlobalVar | str) -> int:
        """Returns how often a function uses functions of the module."""
        return sum(self._uses.get(self._name(var), Counter()).values())

    def is_recursive(self, var: GlobalVar | str) -> bool:
        """Returns whether a function uses itself, directly."""
        name = self._name(var)
        return self._uses.get(name, Counter())[name] > 0

    def __str__(self) -> str:
        return "\n".join(self.print_var(name) for name in self._uses)

    __repr__ = __str__


__all__ = ["CallGraph"]


__dir__ = public_names(__name__)
