"""`te.hybrid.script`: tensors described by loops, in a subset of Python whose source is parsed."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType
from typing import Any

from ...dialects.te import tensor as te
from ...dialects.tir import node as ex
from ...parser.items import Item
from ...parser.source import Source
from ...parser.te.hybrid import HybridFunction
from ...parser.te.names import Builtin
from ...parser.te.syntax import read_function
from ...support.diagnostics import Diagnostic, MirError, Sources
from ...support.public_names import public_names
from .schedule import at_caller


class Captured(Mapping[str, Any]):
    """The variables around a Python function that a script may use.

    They are numbers, strings, tuples of such, sizes, and scripts.
    """

    def __init__(self, function: FunctionType):
        around = inspect.getclosurevars(function)
        self._found: dict[str, Any] = {
            name: value
            for name, value in {**around.globals, **around.nonlocals}.items()
            if isinstance(value, (int, float, str, tuple, list, ex.Expr, te.Tensor))
        } | {
            name: Builtin(name, value)
            for name, value in {**around.globals, **around.nonlocals}.items()
            if isinstance(value, HybridFunction)
        }

    def __getitem__(self, name: str) -> Any:
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


class Script(HybridFunction):
    """A hybrid script that Python calls; messages show the lines of its file."""

    def __init__(self, source: Source, sources: Sources, function: FunctionType):
        with sources.reading():
            super().__init__(source, read_function(source.item), Captured(function))
        self._sources = sources

    def __call__(self, *args: Any) -> Any:
        """The output tensors. Raises MirError for what is wrong in the script."""
        with self._sources.reading(), at_caller():
            return super().__call__(*args)


def script(pyfunc: Callable[..., object]) -> Script:
    """`@te.hybrid.script`: calls of the function make tensors that its loops compute.

    It takes tensors and numbers; it makes its results by `output_tensor(shape, dtype)`, memory by `allocate(shape, dtype, scope)`, and
    returns its results. Loops run over range, serial, parallel, vectorize, unroll and const_range.
    """
    if not inspect.isfunction(pyfunc):
        raise TypeError(f"@te.hybrid.script decorates a function, not {pyfunc!r}")
    try:
        file = inspect.getsourcefile(pyfunc) or inspect.getfile(pyfunc)
        lines, first = inspect.getsourcelines(pyfunc)
    except (OSError, TypeError):
        raise MirError(
            Diagnostic(f"the source of '{pyfunc.__name__}' cannot be read").with_note(
                "a hybrid script is read from its file: put it in one"
            )
        ) from None
    text = "".join(lines)
    sources = Sources()
    sources.add(file, text, first)
    indent = len(text) - len(text.lstrip(" "))
    return Script(Source(Item("te", "te.hybrid.script", textwrap.dedent(text), file, first, indent)), sources, pyfunc)


__dir__ = public_names(__name__)
