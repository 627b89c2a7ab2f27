"""Interprets a module for `--check-each --inputs SEED`.

The module's entry (its only function, otherwise `main`) is interpreted on inputs drawn from the seed, as by `mir-run --random`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp

from ..passes.check_each import CheckEach, array_difference, first_difference
from ..support.diagnostics import Diagnostic, MirError
from .errors import UsageError

if TYPE_CHECKING:
    from ..passes.check_each import Results
    from .run_inputs import Parameter

__all__ = ["CheckEach", "array_difference", "first_difference", "interpret"]

SIZE = 8
"""What symbolic sizes are first taken to be, when a module is interpreted to be checked."""
ATTEMPTS = 24
"""How often sizes are drawn again for a module that does not run with those before."""


def interpret(module: ModuleOp, seed: int) -> Results:
    """Returns the results of the module's entry, interpreted on inputs drawn from `seed`.

    In a module of several functions without a main, each is an entry, and results are named `f.out0`; halves of tensor
    intrinsics are no program's. Sizes known only at run time are all 8, or, where the program refuses those, drawn from the
    numbers that its parameters' shapes have, and 1 to 8. Raises MirError when the entry cannot be interpreted.
    """
    from ..dialects import tir
    from ..lowering.driver.entry import functions_of
    from ..passes.schedule.engine.tensor_intrinsics import is_half

    functions = [
        name for name, op in functions_of(module).items() if not (isinstance(op, tir.PrimFuncOp) and is_half(op))
    ]
    if len(functions) < 2 or "main" in functions:
        return _interpret_entry(module, functions[0] if len(functions) == 1 else None, seed)
    return {f"{name}.{key}": value for name in functions for key, value in _interpret_entry(module, name, seed).items()}


def _interpret_entry(module: ModuleOp, entry: str | None, seed: int) -> Results:
    from ..api.compile import compile
    from .run_inputs import draw, named, size_names

    executable = compile(module, target="interp", entry=entry)
    parameters = named(executable.params)
    names = size_names(parameters)
    refused: MirError | None = None
    for sizes in _sizes(parameters, names, seed):
        try:
            return executable.run(draw(parameters, sizes, seed))
        except UsageError as error:
            raise MirError(Diagnostic(str(error))) from None  # A size that nobody tells.
        except MirError as error:
            refused = refused or error
    assert refused is not None
    raise refused


def _sizes(parameters: Sequence[Parameter], names: Sequence[str], seed: int) -> Iterator[dict[str, int]]:
    """Iterates over sizes to try, the same ones for the same parameters and seed."""
    yield dict.fromkeys(names, SIZE)
    if not names:
        return
    generator = Random(seed)
    known = {size for parameter in parameters for size in parameter.shape if isinstance(size, int)}
    for _ in range(ATTEMPTS):
        yield {name: generator.choice([*sorted(known), *range(1, SIZE + 1)]) for name in names}
