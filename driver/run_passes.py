"""Running a pipeline: instruments around each pass, and failures told with the pass's name."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import DiagnosticException, ShrinkException

from ..passes.changes import telling_changes
from ..passes.instruments import Instrument, run_watched
from ..passes.pass_info import pass_info
from ..support.diagnostics import Diagnostic, MirError
from ..support.verify import find_errors
from .errors import InternalError


def run_passes(
    passes: Sequence[ModulePass], context: Context, module: ModuleOp, instruments: Sequence[Instrument] = ()
) -> None:
    """Applies the passes in order.

    Raises:
        MirError: a pass refused the module, or an instrument found fault.
        InternalError: a pass of mirstack failed in a way that it did not foresee.
    """
    for instrument in instruments:
        instrument.enter_pass_ctx()
    try:
        for module_pass in passes:
            info = pass_info(module_pass.name, str(module_pass))
            if "InferType" in info.required and any(op.name == "relay.func" for op in module.ops):
                from ..passes.relay.functional.infer_type import ensure_types

                ensure_types(module)
            run_watched(info, module, instruments, partial(_apply, module_pass, context, module))
    finally:
        for instrument in instruments:
            instrument.exit_pass_ctx()


def _apply(module_pass: ModulePass, context: Context, module: ModuleOp) -> None:
    try:
        with telling_changes(module_pass, module):
            module_pass.apply(context, module)
    except (MirError, ShrinkException, MemoryError):
        raise
    except DiagnosticException as error:
        # xDSL's exceptions from ops print the module around the message, which is the cause's.
        message = " ".join(str(error.__cause__ or error).split())
        raise MirError(Diagnostic(f"pass '{module_pass}' failed: {message}")) from error
    except Exception as error:
        if type(module_pass).__module__.partition(".")[0] == "xdsl":
            message = f"xDSL's pass '{module_pass}' failed: {type(error).__name__}: {' '.join(str(error).split())}"
            raise MirError(Diagnostic(message)) from error
        raise InternalError(f"pass '{module_pass}'", error) from error


def verify_result(module: ModuleOp, passes: Sequence[ModulePass]) -> None:
    """Verifies what a pipeline ended with; `passes` tells how the breach came about."""
    errors = find_errors(module)
    if not errors:
        return
    if not passes:
        raise MirError(errors)
    hint = f"pass '{passes[0]}' left this behind" if len(passes) == 1 else "--verify-each names the pass that left this"
    raise MirError(error.with_note(hint) for error in errors)
