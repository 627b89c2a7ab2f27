"""A kernel as text that tells it from all others."""

from __future__ import annotations

from xdsl.ir import Attribute, Operation
from xdsl.printer import Printer


class KernelText:
    """Texts of ops in MLIR's generic form, without indentation. Each attribute is put into words once: many ops share it."""

    def __init__(self) -> None:
        # By identity: attributes that are equal may read differently, as 0.0 and -0.0 do. They are kept, so that no other gets their
        # place in memory.
        self._known: dict[int, tuple[Attribute, str]] = {}

    def __call__(self, op: Operation) -> str:
        """The text of an op and all that is in it."""
        printer = _Printer(self._known)
        printer.print_op(op)
        return "".join(printer.parts)


class _Printer(Printer):
    def __init__(self, known: dict[int, tuple[Attribute, str]]):
        super().__init__(print_generic_format=True)
        self.parts: list[str] = []
        self._known = known

    def print_string(self, text: str, *, indent: int | None = None) -> None:
        self.parts.append(text)

    def _print_new_line(self, indent: int | None = None, print_message: bool = True) -> None:
        self.parts.append("\n")

    def print_attribute(self, attribute: Attribute) -> None:
        known = self._known.get(id(attribute))
        if known is not None:
            self.parts.append(known[1])
            return
        start = len(self.parts)
        super().print_attribute(attribute)
        text = "".join(self.parts[start:])
        self.parts[start:] = [text]
        self._known[id(attribute)] = attribute, text


__all__ = ["KernelText"]
