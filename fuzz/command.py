"""`python -m mirstack.fuzz KIND`: draws cases, runs them in processes, reduces what fails, and counts."""

from __future__ import annotations

import argparse
import importlib
import json
import shlex
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..driver.errors import UsageError, guarded
from ..support.text import counted
from .case import Case, Failure, Fuzzer, Verdict
from .pool import Limits, Pool
from .reduce import Effort, Shrinker, reduce

KINDS = {
    "relay": ("relay.fuzzer", "Relay programs of every operator, natively in several ways against the interpreter"),
    "tir": ("tir.fuzzer", "TIR functions of every statement and intrinsic, natively against the interpreter"),
    "schedules": ("schedules.fuzzer", "schedule primitives on TIR functions, which must keep the results"),
    "te": ("te.fuzzer", "TE programs under schedules, against the interpreter without one"),
    "rules": ("rules.fuzzer", "rule sets with planted wrong rules for --check-rules to find"),
    "passes": ("pipelines.fuzzer", "pipelines of passes on programs of every level, checked after each pass"),
    "onnx": ("onnx_models.fuzzer", "ONNX models, imported and compiled, against onnxruntime"),
    "text": ("text.fuzzer", "damaged texts of every format: read, or refused with a message"),
}


def fuzzer_of(kind: str) -> Any:
    """Returns the fuzzer of a kind. Raises ImportError where a package that it needs is missing."""
    return importlib.import_module(f".{KINDS[kind][0]}", __package__).FUZZER


@dataclass
class Summary:
    """The counts of a campaign."""

    kind: str
    seed: int
    programs: int = 0
    compared: int = 0
    refused: Counter[str] = field(default_factory=Counter[str])
    counts: Counter[str] = field(default_factory=Counter[str])
    draws: Counter[str] = field(default_factory=Counter[str])
    failures: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    seconds: float = 0.0

    def add(self, case: Case | None, verdict: Verdict) -> None:
        """Counts what came of a case."""
        self.programs += 1
        self.compared += verdict.compared
        self.counts += verdict.counts
        if case is not None:
            self.draws.update(case.draws)
        if verdict.refused is not None:
            self.refused[verdict.refused] += 1

    def line(self) -> str:
        """Returns the last line of the report."""
        also = "".join(f", {name} {count}" for name, count in sorted(self.counts.items()))
        refused = self.refused.total()
        return (
            f"{self.kind}, seed {self.seed}: {counted(self.programs, 'program')}, {refused} refused, {self.compared} compared{also}, "
            f"{counted(len(self.failures), 'failure')} in {self.seconds:.0f} s"
        )

    def as_json(self) -> dict[str, Any]:
        """Returns all counts as plain data."""
        return {
            "kind": self.kind,
            "seed": self.seed,
            "programs": self.programs,
            "compared": self.compared,
            "refused": dict(self.refused.most_common()),
            "counts": dict(self.counts),
            "draws": dict(self.draws.most_common()),
            "failures": self.failures,
            "seconds": round(self.seconds, 2),
        }


def argument_parser() -> argparse.ArgumentParser:
    """Returns the options of the command."""
    parser = argparse.ArgumentParser(
        prog="python -m mirstack.fuzz",
        description="Draw programs at random, run each in several ways, and reduce what fails.",
        epilog="kinds: " + "; ".join(f"{kind}: {doc}" for kind, (_, doc) in KINDS.items()),
    )
    parser.add_argument("kind", choices=KINDS, metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("--seed", type=_natural, default=0, metavar="S", help="what all programs follow from (0)")
    parser.add_argument(
        "--count", type=_natural, metavar="N", help="how many programs (100 where --minutes is not given)"
    )
    parser.add_argument("--first", type=_natural, default=0, metavar="K", help="the number of the first program (0)")
    parser.add_argument("--minutes", type=float, metavar="M", help="stop after so many minutes")
    parser.add_argument("--only", type=_natural, metavar="K", help="program K alone")
    parser.add_argument("--file", type=Path, metavar="FILE", help="the case in a file that a campaign wrote, alone")
    parser.add_argument("--jobs", type=_natural, default=1, metavar="J", help="processes at work (1)")
    parser.add_argument("--limit", type=float, default=10.0, metavar="SECONDS", help="what a program may compute (10)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where the reduced programs that fail are written")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the counts to a file, - for standard output")
    parser.add_argument(
        "--no-reduce", dest="reduce", action="store_false", help="show failing programs as they were drawn"
    )
    parser.add_argument(
        "--tell",
        type=_natural,
        default=5,
        metavar="N",
        help="failures of one kind and key that are reduced and printed (5)",
    )
    parser.add_argument("--show", action="store_true", help="print the program of --only or --file, and do not run it")
    return parser


def _natural(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from 0 on")
    return int(text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; 1 when something was found, 2 where the command line is wrong."""
    return guarded("mirstack.fuzz", lambda: _begin(argument_parser().parse_args(arguments)))


def _begin(args: argparse.Namespace) -> int:
    try:
        fuzzer = fuzzer_of(args.kind)
    except ModuleNotFoundError as error:
        if error.name not in ("hypothesis", "onnx", "onnxruntime"):
            raise
        raise UsageError(
            f"{args.kind} programs need {error.name}, which is not installed\nnote: pip install 'mirstack[fuzz]'"
        ) from None
    try:
        case = Case.of_file(args.file) if args.file is not None else None
    except OSError as error:
        raise UsageError(f"{args.file} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(str(error)) from None
    if args.show and (case is not None or args.only is not None):
        print((case or fuzzer.draw(args.seed, args.only)).text)
        return 0
    return run(fuzzer, args, case)


def run(fuzzer: Fuzzer, args: argparse.Namespace, case: Case | None = None) -> int:
    """Runs the campaign that the command line asks for."""
    summary = Summary(args.kind, args.seed)
    pool = Pool(fuzzer, 1 if case is not None or args.only is not None else max(1, args.jobs), Limits(args.limit))
    helper: list[Pool] = []
    began = time.monotonic()
    known: Counter[tuple[str, str]] = Counter()
    try:
        for number, drawn, verdict in _outcomes(pool, args, case, began):
            summary.add(drawn, verdict)
            for failure in verdict.failures:
                known[failure.kind, failure.key] += 1
                if known[failure.kind, failure.key] > args.tell:
                    summary.failures.append({"number": number, "kind": failure.kind, "key": failure.key})
                    continue
                if not helper:
                    helper.append(Pool(fuzzer, 1, Limits(args.limit)))
                summary.failures.append(_report(fuzzer, helper[0], args, number, drawn, failure))
    except KeyboardInterrupt:
        pass
    finally:
        for each in (pool, *helper):
            each.close()
    summary.seconds = time.monotonic() - began
    if args.json is not None:
        text = json.dumps(summary.as_json(), indent=1)
        if str(args.json) == "-":
            print(text)
        else:
            args.json.write_text(text)
    for why, count in summary.refused.most_common(12):
        print(f"refused {count}: {why}")
    print(summary.line())
    return 1 if summary.failures else 0


def _outcomes(
    pool: Pool, args: argparse.Namespace, case: Case | None, began: float
) -> Iterator[tuple[int, Case | None, Verdict]]:
    if case is not None:
        yield -1, case, pool.check(case)
        return
    yield from pool.run(_tasks(args, began))


def _tasks(args: argparse.Namespace, began: float) -> Iterator[tuple[int, int]]:
    if args.only is not None:
        yield args.seed, args.only
        return
    count = args.count if args.count is not None else 100 if args.minutes is None else None
    number = args.first
    while (count is None or number < args.first + count) and (
        args.minutes is None or time.monotonic() - began < 60 * args.minutes
    ):
        yield args.seed, number
        number += 1


def _reduced(case: Case, failure: Failure, helper: Pool, shrinkers: Sequence[Shrinker]) -> Case:
    """Reduces the case, unless no shrinker can work on it."""
    try:
        return reduce(case, failure, helper.check, shrinkers, Effort())
    except Exception as error:
        print(f"not reduced: {type(error).__name__}: {error}")
        return case


def _report(
    fuzzer: Fuzzer, helper: Pool, args: argparse.Namespace, number: int, case: Case | None, failure: Failure
) -> dict[str, Any]:
    """Prints a failure, reduced; what the summary holds of it."""
    command = ["python", "-m", "mirstack.fuzz", args.kind]
    command += ["--seed", str(args.seed), "--only", str(number)] if args.file is None else ["--file", str(args.file)]
    found: dict[str, Any] = {"number": number, "kind": failure.kind, "key": failure.key, "what": failure.what}
    which = f"program {number} of seed {args.seed}" if args.file is None else str(args.file)
    print(f"{which}: {failure.kind}: {failure.what}")
    if case is not None:
        if args.reduce:
            shrinkers: Sequence[Shrinker] = getattr(fuzzer, "shrinkers", ())
            small = _reduced(case, failure, helper, shrinkers)
            # What it says now speaks of the small program.
            now = next((f for f in helper.check(small).failures if f.is_like(failure)), None)
            if now is not None:
                case = small
                print(f"reduced: {now.what}")
                found["what"] = now.what
        if args.out is not None:
            args.out.mkdir(parents=True, exist_ok=True)
            file = args.out / f"{args.kind}_{args.seed}_{number}_{failure.kind}.mir"
            file.write_text(case.as_file(), encoding="utf-8", errors="surrogateescape")
            found["file"] = str(file)
            print(f"repeat the reduced program by: python -m mirstack.fuzz {args.kind} --file {shlex.quote(str(file))}")
        print(case.text.rstrip("\n") if args.out is None else case.as_file().rstrip("\n"))
        found["text"] = case.text
    found["command"] = shlex.join(command)
    print(f"repeat by: {shlex.join(command)}", flush=True)
    return found
