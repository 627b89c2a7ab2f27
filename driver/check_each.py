"""`--check-each --inputs SEED`: how a module is run to be checked.

The module's entry (its only function, else `main`) is interpreted on inputs drawn from the seed, as by `mir-run --random`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp

from ..passes.check_each import CheckEach, array_difference, first_difference
from ..support.diagnostics import Diagnostic, MirError
from .errors import UsageError

if TYPE_CHECKING:
    from ..passes.check_each import Results

__all__ = ["CheckEach", "array_difference", "first_difference", "interpret"]

# What a symbolic size is when a module is interpreted to be checked.
SIZE = 8


def interpret(module: ModuleOp, seed: int) -> Results:
    """The results of the module's entry, interpreted on inputs drawn from `seed`; raises `MirError` when it cannot be."""
    from ..api.compile import compile
    from .run_inputs import draw, size_names

    executable = compile(module, target="interp")
    try:
        inputs = draw(executable.params, dict.fromkeys(size_names(executable.params), SIZE), seed)
    except UsageError as error:
        raise MirError(Diagnostic(str(error))) from None  # A size that nobody tells.
    return executable.run(inputs)
