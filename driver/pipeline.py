"""Parses the text after `-p` to passes, and runs them.

Instruments run around each pass, and failures are reported with its name. Errors name the pass, the option and what would be right.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ArgSpec, PipelineLexer, SpecTokenKind, parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError, DiagnosticException, ShrinkException

from ..passes.changes import telling_changes
from ..passes.instruments import Instrument, run_watched
from ..passes.pass_info import camel_case, pass_info
from ..passes.registry import pass_options
from ..support import extensions
from ..support.diagnostics import Diagnostic, MirError
from ..support.stopwatch import timed
from ..support.verify import find_errors
from .errors import InternalError, UsageError, did_you_mean


def read_pipeline(text: str, factories: dict[str, Callable[[], type[ModulePass]]]) -> tuple[ModulePass, ...]:
    """Returns the passes that `text` names, `first,second{option=value}`; only their modules are imported.

    Raises:
        UsageError: for what is not a pipeline, an unknown pass, and an option that is unknown, missing or of a wrong type.
    """
    return tuple(_make_pass(spec, factories) for spec in _parse(text))


_WORD = f"{string.ascii_letters}{string.digits}-_"
"""What the text of an option may have without quotes."""


def _parse(text: str) -> list[ArgSpec]:
    # Blanks after commas read well and mean nothing; xDSL's grammar has no room for them outside of braces.
    tidy = re.sub(r"(\{[^}]*+\}?)|(?<!\s)\s*+,\s*+", lambda found: found[1] or ",", text.strip())
    try:
        specs = list(parse_pipeline(tidy))
        _refuse_repeated_options(tidy)
        return specs
    except ArgSpecParseError as error:
        # Its text is a header, "name:line:column", the pipeline, a caret and the message.
        lines = str(error).rstrip().split("\n")
        column = lines[1].rpartition(":")[2] if len(lines) > 1 else "1"
        message = lines[-1].strip()
        message = "a pass's name is missing here" if message.lower() == "expected pass name here" else message
        if message.lower() == "unknown token" and column.isdigit():
            before, equals, begun = tidy[: int(column) - 1].rpartition("=")
            option = before[len(before.rstrip(_WORD)) :]
            if equals and option and not begun.strip(_WORD):
                value = begun + re.split(r"[\s,}]", tidy[int(column) - 1 :], maxsplit=1)[0]
                message = f'text of other signs than letters, digits, - and _ is quoted: {option}="{value}"'
        caret = " " * (int(column) - 1 if column.isdigit() else 0) + "^"
        raise UsageError(f"-p: {message[:1].lower()}{message[1:]}\n{tidy}\n{caret}") from None


def _refuse_repeated_options(text: str):
    """Raises UsageError for an option that is repeated: xDSL takes the last and ignores the first.

    fuse-ops{max-depth=3 max-depth=4}
    """
    lexer = PipelineLexer(text)
    name, before = "", None
    given: set[str] = set()
    while (token := lexer.lex()).kind is not SpecTokenKind.EOF:
        if token.kind is SpecTokenKind.IDENT:
            option = token.span.text.replace("_", "-")
            if before in (None, SpecTokenKind.COMMA) and not given:
                name = token.span.text
            elif before in (SpecTokenKind.L_BRACE, SpecTokenKind.SPACE):
                if option in given:
                    raise UsageError(f"-p: option '{option}' of pass '{name}' is given twice")
                given.add(option)
        elif token.kind is SpecTokenKind.R_BRACE:
            given.clear()
        before = token.kind


def _near(name: str, factories: Mapping[str, object]) -> str:
    """Returns `; did you mean 'fuse-ops'?` for a name near to a pass's, also for TVM's `FuseOps`."""
    by_tvm = {camel_case(each).lower(): each for each in factories}
    plain = re.sub(r"[-_.]", "", name).lower()
    known = by_tvm.get(plain)
    return f"; did you mean '{known}'?" if known else did_you_mean(name, factories)


def _make_pass(spec: ArgSpec, factories: dict[str, Callable[[], type[ModulePass]]]) -> ModulePass:
    factory = factories.get(spec.name)
    if factory is None:
        raise UsageError(
            f"-p: there is no pass '{spec.name}'{_near(spec.name, factories)} (--list-passes lists them all)"
        )
    try:
        pass_class = factory()
    except ImportError as error:
        raise UsageError(f"-p: pass '{spec.name}' cannot be loaded: {error}") from None
    options = {option.name: option for option in pass_options(pass_class)}
    for name in spec.parameters:
        if name.replace("_", "-") not in options:
            takes = f"it takes {', '.join(map(str, options.values()))}" if options else "it takes none"
            raise UsageError(f"-p: pass '{spec.name}' has no option '{name}'{did_you_mean(name, options)} ({takes})")
    given = {name.replace("_", "-") for name in spec.parameters}
    for option in options.values():
        if option.default is None and option.name not in given:
            raise UsageError(f"-p: pass '{spec.name}' needs its option '{option}'")
    try:
        return pass_class.from_spec(spec)
    except (ValueError, TypeError) as error:
        for name, values in spec.parameters.items():
            if f"given {values}" in str(error):
                option = options[name.replace("_", "-")]
                shown = ",".join(map(str, values)) or "nothing"
                raise UsageError(
                    f"-p: option '{option.name}' of pass '{spec.name}' is of type {option.type}, not '{shown}'"
                ) from None
        raise UsageError(f"-p: pass '{spec.name}': {error}") from None


def run_passes(
    passes: Sequence[ModulePass], context: Context, module: ModuleOp, instruments: Sequence[Instrument] = ()
) -> None:
    """Applies the passes in order.

    Raises:
        MirError: a pass refused the module, or an instrument found fault.
        InternalError: a pass of mirstack failed in a way that it did not foresee.
    """
    for module_pass in passes:
        run_pass(instruments, module_pass, context, module)


@contextmanager
def observing(instruments: Sequence[Instrument]) -> Generator[None]:
    """While inside, instruments observe the passes that run."""
    for instrument in instruments:
        instrument.enter_pass_ctx()
    try:
        yield
    finally:
        for instrument in instruments:
            instrument.exit_pass_ctx()


def run_pass(instruments: Sequence[Instrument], module_pass: ModulePass, context: Context, module: ModuleOp) -> None:
    """Applies a pass with instruments around it; raises as `run_passes` does."""
    info = pass_info(module_pass.name, str(module_pass))
    if "InferType" in info.required and any(op.name == "relay.func" for op in module.ops):
        from ..passes.relay.functional.infer_type import ensure_types

        ensure_types(module)
    run_watched(info, module, instruments, partial(_apply, module_pass, context, module))


def _apply(module_pass: ModulePass, context: Context, module: ModuleOp) -> None:
    try:
        with timed(str(module_pass)), telling_changes(module_pass, module):
            module_pass.apply(context, module)
    except (MirError, ShrinkException, MemoryError):
        raise
    except DiagnosticException as error:
        # xDSL's exceptions from ops print the module around the message, which is the cause's.
        message = " ".join(str(error.__cause__ or error).split())
        raise MirError(Diagnostic(f"pass '{module_pass}' failed: {message}")) from error
    except Exception as error:
        if (whose := _owner(module_pass)) is not None:
            message = f"{whose} '{module_pass}' failed: {type(error).__name__}: {' '.join(str(error).split())}"
            raise MirError(Diagnostic(message)) from error
        raise InternalError(f"pass '{module_pass}'", error) from error


def _owner(module_pass: ModulePass) -> str | None:
    """Returns whose pass it is where it is not mirstack's: "xDSL's pass", "the pass of package my-passes"."""
    found = extensions.find("pass", module_pass.name)
    if found is not None:
        return f"the pass of {found.origin}"
    return "xDSL's pass" if type(module_pass).__module__.partition(".")[0] == "xdsl" else None


def verify_result(module: ModuleOp, passes: Sequence[ModulePass]) -> None:
    """Verifies what a pipeline ended with; `passes` tells how the breach came about."""
    errors = find_errors(module)
    if not errors:
        return
    if not passes:
        raise MirError(errors)
    hint = f"pass '{passes[0]}' left this behind" if len(passes) == 1 else "--verify-each names the pass that left this"
    raise MirError(error.with_note(hint) for error in errors)
