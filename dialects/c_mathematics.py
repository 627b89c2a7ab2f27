"""Lists the signatures of C's mathematical functions on numbers (<math.h> and glibc's).

    sinf(float32) -> float32        sin(float64) -> float64        ldexpf(float32, int32) -> float32

A call with other types reads registers that are not set, so both the interpreter and lowering look here first. Functions of long
double, which end in `l`, have no signature: no dtype holds their numbers.

Source: ISO C 2018, 7.12; the GNU C Library, "Mathematics".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

# By result and parameters: x is the function's own float, i int, j a long integer, q long double.
_FUNCTIONS = {
    "x x": """acos asin atan cos sin tan acosh asinh atanh cosh sinh tanh exp exp2 exp10 expm1 log log10 log1p log2 logb cbrt fabs
        sqrt erf erfc lgamma tgamma ceil floor nearbyint rint round roundeven trunc significand gamma j0 j1 y0 y1""",
    "x x x": "atan2 hypot pow fmod remainder copysign nextafter fdim fmax fmin drem",
    "x x x x": "fma",
    "x x i": "ldexp scalbn",
    "x x j": "scalbln",
    "x i x": "jn yn",
    "x x q": "nexttoward",
    "i x": "ilogb",
    "j x": "lrint llrint lround llround",
}
_OF_INTEGERS = {"abs": "i i", "labs": "j j", "llabs": "j j"}
_DTYPES = {"i": "int32", "j": "int64"}


class CSignature(NamedTuple):
    """The dtypes of a function's result and parameters."""

    result: str
    parameters: tuple[str, ...]

    def __str__(self) -> str:
        """Writes `float32 ldexpf(float32, int32)` without the name: `(float32, int32) -> float32`."""
        return f"({', '.join(self.parameters)}) -> {self.result}"


_FORMS = {name: form for form, names in _FUNCTIONS.items() for name in names.split()}
OF_NUMBERS = frozenset(name + ending for name in _FORMS for ending in ("", "f", "l"))
"""C's mathematics on floats alone, long doubles included."""
OF_INTEGERS = frozenset(_OF_INTEGERS)


def signature(name: str) -> CSignature | None:
    """Returns the signature of C's mathematical function `name`; None for others, and for long doubles."""
    form, own = _OF_INTEGERS.get(name) or _FORMS.get(name), "float64"
    if form is None and name.endswith("f"):
        form, own = _FORMS.get(name[:-1]), "float32"
    if form is None or "q" in form:
        return None
    result, *parameters = (_DTYPES.get(code, own) for code in form.split())
    return CSignature(result, tuple(parameters))


def why_not_called(name: str, result: str, arguments: Sequence[str]) -> str | None:
    """Returns why dtypes do not fit C's mathematical function `name`; None if they do, or for others.

    `sinf` with `("float64",)`: "'sinf' is (float32) -> float32, not (float64) -> float32".
    """
    known = signature(name)
    if known is None:
        takes = "long double, which no dtype holds"
        return f"the C function '{name}' takes {takes}" if name in OF_NUMBERS else None
    given = CSignature(result, tuple(arguments))
    return None if given == known else f"the C function '{name}' is {known}, not {given}"
