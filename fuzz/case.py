"""`Case`, a program with its inputs, and `Verdict`, the outcome of running it.

Generators, checks and the reducer share both.
"""

from __future__ import annotations

import json
import re
import traceback
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..dialects.array import numpy_dtype
from ..support.diagnostics import MirError

Options = Mapping[str, Any]
"""What JSON can hold: how a case is to be run."""

HEAD = "// fuzz: "
"""How the first line of a file begins that holds a case: the rest of the line is JSON."""


@dataclass(frozen=True)
class Case:
    """A program, its inputs by name, how it is run, and `draws`: the operators and primitives drawn."""

    kind: str
    text: str
    inputs: Mapping[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    options: Options = field(default_factory=dict[str, Any])
    draws: frozenset[str] = frozenset()

    def with_options(self, **changed: Any) -> Case:
        """Returns the case with other options."""
        return replace(self, options={**self.options, **changed})

    def as_file(self) -> str:
        """Returns the text after a line that holds everything else."""
        inputs = {name: _array_as_json(array) for name, array in self.inputs.items()}
        head = {"kind": self.kind, "options": dict(self.options), "inputs": inputs}
        return f"{HEAD}{json.dumps(head)}\n{self.text}"

    @staticmethod
    def of_file(path: Path) -> Case:
        """Reads what `as_file` wrote. Raises ValueError for another file."""
        head, _, text = path.read_text(encoding="utf-8", errors="surrogateescape").partition("\n")
        if not head.startswith(HEAD):
            raise ValueError(f"{path} is not a case of the fuzzer: its first line must begin with '{HEAD}'")
        data = json.loads(head.removeprefix(HEAD))
        inputs = {name: _array_of_json(array) for name, array in data["inputs"].items()}
        return Case(data["kind"], text, inputs, data["options"])


def _array_as_json(array: np.ndarray) -> dict[str, Any]:
    flat = array.reshape(-1)
    numbers = flat.tolist() if array.dtype.kind in "iub" else flat.astype(np.float64).tolist()
    return {"dtype": array.dtype.name, "shape": list(array.shape), "data": numbers}


def _array_of_json(data: Any) -> np.ndarray:
    dtype = numpy_dtype(data["dtype"])
    wide = dtype if dtype.kind in "iub" else np.dtype(np.float64)
    with np.errstate(all="ignore"):
        return np.array(data["data"], wide).astype(dtype).reshape(data["shape"])


@dataclass(frozen=True)
class Failure:
    """A defect that a case showed.

    `kind` is "results", "exception", "invalid", "text", "death", "hang" or one of the fuzzer's own; failures of one `key` are
    taken for the same defect while a case is reduced.
    """

    kind: str
    key: str
    what: str

    def is_like(self, other: Failure) -> bool:
        """Tells whether both are the same defect."""
        return (self.kind, self.key) == (other.kind, other.key)


@dataclass
class Verdict:
    """The outcome of a case: refused for a reason, or compared; its failures, and further counts."""

    refused: str | None = None
    compared: int = 0
    failures: list[Failure] = field(default_factory=list[Failure])
    counts: Counter[str] = field(default_factory=Counter[str])

    def fail(self, kind: str, key: str, what: str) -> None:
        """Notes a failure."""
        self.failures.append(Failure(kind, key, what))

    def fail_by(self, error: BaseException, doing: str) -> None:
        """Notes an exception that no user should see."""
        self.failures.append(failure_of(error, doing))


class Fuzzer(Protocol):
    """One kind of fuzzing. All cases follow from the seed and their number."""

    def draw(self, seed: int, number: int) -> Case:
        """Draws the case of a number."""
        ...

    def check(self, case: Case) -> Verdict:
        """Runs a case in all the ways that its options name."""
        ...


def failure_of(error: BaseException, doing: str) -> Failure:
    """Returns an exception as a failure, keyed by its type and the innermost function of this package."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "mirstack" in frame.filename or "/fuzz" not in frame.filename]
    place = ours[-1] if ours else frames[-1] if frames else None
    where = "" if place is None else f"{Path(place.filename).name}:{place.name}"
    first = (str(error).splitlines() or [""])[0]
    return Failure(
        "exception", f"{type(error).__name__} {where}", f"{doing}: {type(error).__name__}: {first} ({where})"
    )


_DETAIL = re.compile(r"'[^']*'|\"[^\"]*\"|\([^()]*\)|\[[^][]*\]|\b(?:u?int|float|bfloat|bool)\d*\b|-?\b\d[\w.]*")


def reason(error: MirError, who: str) -> str:
    """Returns the class of a refusal: the first message without names and numbers."""
    message = error.diagnostics[0].message.splitlines()[0]
    return f"{who}: {_DETAIL.sub('…', message)[:100]}"
