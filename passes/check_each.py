"""`CheckEach`: the meaning of the module before and after each pass.

The module is interpreted on inputs drawn from a seed; the first pass after which a result differs is named. A module that cannot be
interpreted, such as one lowered to MLIR's own dialects, is an error unless that is allowed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TextIO

from xdsl.dialects.builtin import ModuleOp

from ..support.diagnostics import Diagnostic, MirError
from ..support.text import counted
from .instruments import Instrument
from .pass_info import PassInfo

if TYPE_CHECKING:
    import numpy as np

    Results = dict[str, np.ndarray]
    RunModule = Callable[[ModuleOp, int], Results]

# What reordering sums may change, by the bytes of a float.
RELATIVE_TOLERANCE = {2: 2e-2, 4: 1e-4, 8: 1e-9}


@dataclass
class CheckEach(Instrument):
    """Interprets the module around each pass and raises where results differ.

    `run(module, seed)` returns the results by name, or raises `MirError`. A module that cannot be interpreted is an error; with
    `allow_unchecked` that is reported on `stream`, and the pass is not checked.
    """

    run: RunModule = field(repr=False)
    seed: int = 0
    allow_unchecked: bool = False
    stream: TextIO = field(default_factory=lambda: sys.stderr, repr=False)
    results: Results | None = None
    module: ModuleOp | None = field(default=None, repr=False)  # The module of the results.

    def run_before_pass(self, mod: ModuleOp, info: PassInfo) -> None:
        if self.results is None or self.module is not mod:
            self.results = self._interpret(mod, f"before {info}")

    def run_after_pass(self, mod: ModuleOp, info: PassInfo) -> None:
        self.module = mod
        before, self.results = self.results, self._interpret(mod, f"after {info}")
        if before is None or self.results is None:
            return
        difference = first_difference(before, _comparable(before, self.results, info), halves=info.halves)
        if difference is not None:
            raise MirError(
                Diagnostic(f"pass '{info}' changed the meaning: {difference}").with_note(
                    f"seen with --inputs {self.seed}; --print-ir-after-change shows what the pass did"
                )
            )

    def _interpret(self, module: ModuleOp, when: str) -> Results | None:
        try:
            results = self.run(module, self.seed)
            for name, value in results.items():
                if not hasattr(value, "dtype"):
                    raise MirError(Diagnostic(f"{name} is {value!r}, which is not a tensor"))
            return results
        except MirError as error:
            cause = error.diagnostics[0]
            if not self.allow_unchecked:
                raise MirError(
                    Diagnostic(f"not checked {when}: {cause.message}", cause.location).with_note(
                        "--allow-unchecked goes on without checking what cannot be interpreted"
                    )
                ) from None
            print(f"// not checked {when}: {cause.message}", file=self.stream)
            return None


def _comparable(before: Results, after: Results, info: PassInfo) -> Results:
    """Returns the part of `after` to compare: no added results, the types before if it uses halves."""
    if info.adds_results:
        after = {name: after[name] for name in before if name in after}
    if info.halves:
        after = {name: _as_float(value, before.get(name)) for name, value in after.items()}
    return after


def _as_float(value: np.ndarray, like: np.ndarray | None) -> np.ndarray:
    both_floats = like is not None and like.dtype.kind not in "biu" and value.dtype.kind not in "biu"
    return value.astype(like.dtype) if like is not None and both_floats else value


def first_difference(before: Results, after: Results, halves: bool = False) -> str | None:
    """Describes where two sets of results differ by more than rounding; None where they agree.

    With `halves`, floats are taken to be rounded to 16 bits, and sums carry these errors in proportion to their largest element.
    """
    if list(before) != list(after):
        return f"the results were {', '.join(before) or 'none'}, now they are {', '.join(after) or 'none'}"
    for name, old in before.items():
        new = _overflowed_alike(old, after[name])
        difference = array_difference(old, new, *_tolerance(old, halves))
        if difference is not None and halves and _is_rounded(old, new):
            continue
        if difference is not None:
            return f"{name}{difference}"
    return None


def _tolerance(old: np.ndarray, halves: bool) -> tuple[float, float]:
    """Returns the relative and absolute deviation that is rounding.

    Where a sum cancels, its terms have rounded: as these are about as large as other results are, the absolute deviation grows with
    the largest.
    """
    import numpy as np

    wide = np.abs(old.astype(np.float64))
    largest = float(wide.max(initial=0.0, where=np.isfinite(wide)))
    if halves:
        return RELATIVE_TOLERANCE[2], RELATIVE_TOLERANCE[2] * largest
    rtol = RELATIVE_TOLERANCE.get(old.dtype.itemsize, RELATIVE_TOLERANCE[2])
    return rtol, rtol * 1e-2 * max(1.0, largest)


def _overflowed_alike(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Returns `new` with `old`'s infinities at its own or NaNs: reordered sums overflow elsewhere."""
    import numpy as np

    if old.dtype.kind in "biu" or old.dtype != new.dtype or old.shape != new.shape:
        return new
    return np.where(np.isinf(old) & ~np.isfinite(new), old, new)


def _is_rounded(old: np.ndarray, new: np.ndarray) -> bool:
    """Returns whether integers differ only as rounded 16-bit floats do."""
    if old.dtype.kind not in "iu" or old.dtype != new.dtype or old.shape != new.shape:
        return False
    difference = array_difference(old.astype("float64"), new.astype("float64"), RELATIVE_TOLERANCE[2], 1.0)
    return difference is None


def array_difference(
    old: np.ndarray, new: np.ndarray, rtol: float | None = None, atol: float | None = None
) -> str | None:
    """Describes how `new` differs from `old`, in words to follow the array's name; None when they agree.

    Integers and booleans must be equal. Floats may differ by `atol + rtol * abs(old)`, by default what reordering a sum of
    their type explains; NaN equals NaN.
    """
    import numpy as np

    if old.shape != new.shape or old.dtype != new.dtype:
        return f" was {old.dtype}{list(old.shape)}, now it is {new.dtype}{list(new.shape)}"
    if old.dtype.kind in "biu":
        wrong = old != new
    else:
        # bfloat16 and the like are not numpy floats: compare the values as floats.
        size = old.dtype.itemsize
        rtol = RELATIVE_TOLERANCE.get(size, 2e-2) if rtol is None else rtol
        wide_old, wide_new = old.astype(np.float64), new.astype(np.float64)
        atol = rtol * 1e-2 if atol is None else atol
        wrong = ~np.isclose(wide_new, wide_old, rtol=rtol, atol=atol, equal_nan=True)
    if not wrong.any():
        return None
    first = tuple(int(i) for i in np.argwhere(wrong)[0])
    place = f"[{', '.join(map(str, first))}]" if first else ""
    count = int(wrong.sum())
    more = f" ({count} of {counted(wrong.size, 'element')} differ)" if wrong.size > 1 else ""
    return f"{place} was {old[first]}, now it is {new[first]}{more}"
