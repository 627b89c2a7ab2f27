"""Passes in Python, as TVM has them: contexts, passes of the registry, passes made of functions.

A pass takes a module and returns a new one. The passes of the registry are made by `named_passes`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar, Token
from importlib import import_module
from types import NoneType
from typing import Any, cast

from xdsl.context import Context
from xdsl.passes import ModulePass as XdslPass

from ...passes.changes import telling_changes
from ...passes.instruments import Instrument
from ...passes.pass_info import EXPLAINED, PassInfo, camel_case, explanation, pass_info
from ...passes.registry import PASSES
from ...passes.relay.functional.infer_type import InferType, ensure_types
from ...support.arguments import check, integer, items
from ...support.deep_stack import in_deep_stack
from ...support.diagnostics import Diagnostic, MirValueError
from ...support.garbage import no_collection
from ...support.public_names import public_names
from ...support.short_tracebacks import short_traceback
from ...support.text import did_you_mean
from ...support.trace import listening, to_stderr
from ...universe import every_dialect
from ..relay.expr import Function
from .instrument import PassInstrument
from .module import IRModule
from .pass_config import CONFIG, WITHOUT_EFFECT, check_config


class PassContext:
    """The options of passes that run inside `with PassContext(…):`.

    A `Sequential` runs a pass whose level is at most `opt_level`, or that is among `required_pass`, unless it is among
    `disabled_pass`. `instruments` watch every pass. `config` holds settings of passes, see `PassContext.list_configs()`.
    """

    def __init__(
        self,
        opt_level: int = 2,
        required_pass: Iterable[str] | None = None,
        disabled_pass: Iterable[str] | None = None,
        instruments: Sequence[PassInstrument | Instrument] | None = None,
        config: Mapping[str, Any] | None = None,
    ):
        self.opt_level = integer(opt_level, "opt_level", 0)
        self.required_pass = _names("required_pass", required_pass)
        self.disabled_pass = _names("disabled_pass", disabled_pass)
        self.instruments: list[PassInstrument | Instrument] = _instruments(instruments)
        check(config, "config", "a dictionary of settings by name", Mapping, NoneType)
        self.config = dict(config or {})
        check_config(self.config)
        self._traced = _topics("mirstack.trace", self.config.get("mirstack.trace", ()), _registered())
        self._explained = _topics("mirstack.explain", self.config.get("mirstack.explain", ()), EXPLAINED)
        self._tokens: list[Token[PassContext | None]] = []

    def __repr__(self) -> str:
        parts = [f"opt_level={self.opt_level}"]
        parts += [f"required_pass={sorted(self.required_pass)}"] if self.required_pass else []
        parts += [f"disabled_pass={sorted(self.disabled_pass)}"] if self.disabled_pass else []
        parts += [f"instruments={self.instruments}"] if self.instruments else []
        parts += [f"config={self.config}"] if self.config else []
        return f"PassContext({', '.join(parts)})"

    @staticmethod
    def current() -> PassContext:
        """The context of the innermost `with`, or the one of defaults."""
        return _CURRENT.get() or _DEFAULT

    @staticmethod
    def list_configs() -> dict[str, dict[str, str]]:
        """The settings that `config` may hold, with their types and what they mean."""
        idle = {name: (type, f"no effect here: {why}") for name, (type, why) in WITHOUT_EFFECT.items()}
        return {name: {"type": type, "doc": doc} for name, (type, doc) in {**CONFIG, **idle}.items()}

    def __enter__(self) -> PassContext:
        self._begin_instruments()
        self._tokens.append(_CURRENT.set(self))
        return self

    def __exit__(self, *_: object) -> None:
        _CURRENT.reset(self._tokens.pop())
        self._end_instruments()

    def override_instruments(self, instruments: Sequence[PassInstrument | Instrument] | None) -> None:
        """Ends the instruments of the context, and begins with others."""
        given = _instruments(instruments)
        self._end_instruments()
        self.instruments = given
        self._begin_instruments()

    def _begin_instruments(self) -> None:
        """Enters each instrument; if one fails, those before it exit and the list is emptied, as in TVM."""
        entered: list[PassInstrument | Instrument] = []
        try:
            for instrument in self.instruments:
                instrument.enter_pass_ctx()
                entered.append(instrument)
        except BaseException:
            self.instruments = entered
            self._end_instruments()
            self.instruments = []
            raise

    def _end_instruments(self) -> None:
        """Exits each instrument; if one fails, the list is emptied, as in TVM."""
        try:
            for instrument in self.instruments:
                instrument.exit_pass_ctx()
        except BaseException:
            self.instruments = []
            raise

    def enables(self, info: PassInfo) -> bool:
        """Returns whether a `Sequential` runs the pass."""
        if info.name in self.disabled_pass:
            return False
        return info.name in self.required_pass or info.opt_level <= self.opt_level

    def topics(self) -> tuple[str, ...]:
        """Returns the topics that are reported on standard error while passes run."""
        return (*self._traced, *map(explanation, self._explained))


_CURRENT: ContextVar[PassContext | None] = ContextVar("pass_context", default=None)


def _instruments(given: Iterable[PassInstrument | Instrument] | None) -> list[PassInstrument | Instrument]:
    return items(given, "instruments", "pass instruments", PassInstrument, Instrument)


def _names(what: str, names: Iterable[str] | None) -> frozenset[str]:
    """Names of passes, TVM's or those of `-p`, as TVM has them."""
    given = items([names] if isinstance(names, str) else names, what, "names of passes", str)
    return frozenset(camel_case(name) if name[:1].islower() and "." not in name else name for name in given)


def _registered() -> list[str]:
    return [entry.name for entry in PASSES]


def _topics(setting: str, names: Iterable[str], known: Sequence[str]) -> list[str]:
    """The names of `-p` of passes called so or as in TVM. Raises MirError for one that is not known."""
    by_name = {**{name: name for name in known}, **{camel_case(name): name for name in known}}
    given = [names] if isinstance(names, str) else list(names)
    for name in given:
        if name not in by_name:
            hint = did_you_mean(name, by_name, 0.6)
            message = f"{setting}: there is no pass '{name}' to tell something{hint}"
            raise MirValueError(Diagnostic(message).with_note(f"it names some of {', '.join(map(camel_case, known))}"))
    return [by_name[name] for name in given]


_DEFAULT = PassContext()


class Pass:
    """A pass: called on a module, it returns a new one. `info` is its name, level and requirements."""

    info: PassInfo

    @short_traceback
    def __call__(self, mod: IRModule) -> IRModule:
        if not isinstance(cast("object", mod), IRModule):
            raise TypeError(
                f"a pass runs on an IRModule, not on {mod!r}; IRModule.from_expr makes one of an expression"
            )
        return self.run(mod, owned=False)

    def run(self, mod: IRModule, *, owned: bool) -> IRModule:
        """The pass with the instruments of the context around it; an `owned` module may be changed in place."""
        context = PassContext.current()
        instruments = context.instruments
        if self.info.name not in context.required_pass and not all(
            [instrument.should_run(*_seen_by(instrument, mod), self.info) for instrument in instruments]
        ):
            return mod
        for instrument in instruments:
            if self._is_shown_to(instrument):
                instrument.run_before_pass(*_seen_by(instrument, mod), self.info)
        result = self.transform(mod, context, owned=owned and not _are_shown_modules(instruments))
        for instrument in instruments:
            if self._is_shown_to(instrument):
                instrument.run_after_pass(*_seen_by(instrument, result), self.info)
        return result

    def transform(self, mod: IRModule, context: PassContext, *, owned: bool) -> IRModule:
        """Returns the module that the pass makes of `mod`; each kind of pass defines it."""
        raise TypeError(f"{type(self).__name__} does not say what it does: it needs a method transform")

    def _is_shown_to(self, instrument: PassInstrument | Instrument) -> bool:
        return True

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.info})"


def _seen_by(instrument: PassInstrument | Instrument, mod: IRModule) -> tuple[Any]:
    """The module as an instrument takes it: those of Python see an IRModule."""
    return (mod.op if isinstance(instrument, Instrument) else mod,)


def _are_shown_modules(instruments: Sequence[PassInstrument | Instrument]) -> bool:
    """Returns whether an instrument may keep the module that a pass is about to change."""
    return not all(isinstance(instrument, Instrument) for instrument in instruments)


class NamedPass(Pass):
    """A pass of the registry, with its options."""

    def __init__(self, module_pass: XdslPass, info: PassInfo):
        self.module_pass = module_pass
        self.info = info

    def transform(self, mod: IRModule, context: PassContext, *, owned: bool) -> IRModule:
        op = mod.op if owned else mod.copy_op()
        module_pass = self.configured(context)

        def work() -> None:
            if self.info.name != "InferType":
                ensure_types(op)
            with telling_changes(module_pass, op):
                module_pass.apply(self.context(), op)

        with no_collection(), listening(context.topics(), to_stderr):
            in_deep_stack(work)
        return IRModule.of_op(op, mod)

    def context(self) -> Context:
        """Returns what the pass finds dialects in: those of the registry need none."""
        return Context()

    def configured(self, context: PassContext) -> XdslPass:
        """The pass with the settings of the context in place of what was not said when it was made."""
        return self.module_pass


class ForeignPass(NamedPass):
    """A pass of xDSL, or of one's own; it finds all dialects in its context."""

    def context(self) -> Context:
        context = Context()
        for name, factory in every_dialect().items():
            context.register_dialect(name, factory)
        return context


def as_pass(value: Pass | XdslPass | type[object]) -> Pass:
    """Returns a pass of xDSL as one of ours. Raises TypeError for what is none."""
    if isinstance(value, Pass):
        return value
    if isinstance(value, type):
        if not issubclass(value, XdslPass):
            raise TypeError(
                f"a pass is one of mirstack.transform or a subclass of xDSL's ModulePass, not {value.__name__}"
            )
        try:
            value = value()
        except TypeError as error:
            raise TypeError(f"the pass {value.__name__} has options that must be given: {error}") from None
    return ForeignPass(value, pass_info(value.name, str(value)))


class ModulePass(Pass):
    """A pass made of a function of a module (`module_pass`)."""

    def __init__(self, function: Callable[[IRModule, PassContext], IRModule], info: PassInfo):
        self.pass_func = function
        self.info = info

    def transform(self, mod: IRModule, context: PassContext, *, owned: bool) -> IRModule:
        result = self.pass_func(mod, context)
        if not isinstance(cast("object", result), IRModule):
            raise TypeError(f"the pass {self.info.name} must return an IRModule, not {result!r}")
        return result


class FunctionPass(Pass):
    """A pass made of a function of a Relay function (`function_pass`), run on each function of a module.

    Types are inferred again where it changed one.
    """

    def __init__(self, function: Callable[[Function, IRModule, PassContext], Function], info: PassInfo):
        self.pass_func = function
        self.info = info

    def transform(self, mod: IRModule, context: PassContext, *, owned: bool) -> IRModule:
        changed: dict[str, Function] = {}
        for variable, function in mod.relay_functions.items():
            if int(function.attrs.get("SkipOptimization", 0)):
                continue
            new = self.pass_func(function, mod, context)
            if not isinstance(cast("object", new), Function):
                raise TypeError(f"the pass {self.info.name} must return a relay.Function, not {new!r}")
            if new is not function:
                changed[variable.name_hint] = new
        if not changed:
            return mod
        result = IRModule.of_op(mod.copy_op(), mod)
        for name, function in changed.items():
            result[name] = function
        return infer_types(result)


def infer_types(mod: IRModule) -> IRModule:
    """Returns a module of its own with its types inferred again. Raises MirError where they do not fit."""
    op = mod.op
    with no_collection():
        in_deep_stack(lambda: InferType().apply(Context(), op))
    return IRModule.of_op(op, mod)


def ApplyPassToFunction(
    transform: Pass, func_name_regex: str, error_if_no_function_matches_regex: bool = False
) -> Pass:
    """Returns a pass that changes only functions whose name begins with a match of the expression.

    Functions that the pass adds are added. Raises MirValueError where none matches, if that is an error.
    """
    check(transform, "transform", "a pass", Pass)
    try:
        pattern = re.compile(func_name_regex)
    except re.error as error:
        message = f"'{func_name_regex}' is not a regular expression: {error}"
        raise MirValueError(Diagnostic(message)) from None

    def change(mod: IRModule, _: PassContext) -> IRModule:
        before = {var.name_hint for var in mod.get_global_vars()}
        chosen = {name for name in before if pattern.match(name)}
        if not chosen:
            if error_if_no_function_matches_regex:
                names = ", ".join(sorted(before))
                raise MirValueError(Diagnostic(f"no function matches '{func_name_regex}'; there are {names}"))
            return mod
        new = transform(mod)
        result = IRModule.of_op(mod.copy_op(), mod)
        for var, function in new.functions.items():
            if var.name_hint in chosen or var.name_hint not in before:
                result.update_func(var, function)
        return result

    return ModulePass(change, PassInfo(0, "ApplyPassToFunction"))


def PrintIR(header: str = "", show_meta_data: bool = False) -> Pass:
    """A pass that prints the module and leaves it as it is."""

    def show(mod: IRModule, _: PassContext) -> IRModule:
        if header:
            print(header)
        print(mod.astext() if show_meta_data else mod)
        return mod

    return ModulePass(show, PassInfo(0, "PrintIR"))


# Passes from functions ---------------------------------------------------------------------------------------------


Decorated = Any
"""A pass, or a class whose instances are passes."""


def module_pass(
    pass_func: Callable[..., Any] | None = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] | None = None,
    traceable: bool = False,
) -> Decorated:
    """Makes a pass of a function `(mod, ctx) -> mod`, or of a class with `transform_module`.

    Used as a decorator: `@transform.module_pass(opt_level=1)`. Of a class it makes one whose instances are passes.
    """
    return decorate_pass(pass_func, opt_level, name, required, "transform_module", ModulePass)


def function_pass(
    pass_func: Callable[..., Any] | None = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] | None = None,
    traceable: bool = False,
) -> Decorated:
    """Makes a pass of a function `(func, mod, ctx) -> func`, or of a class with `transform_function`.

    The pass runs on every Relay function of a module.
    """
    return decorate_pass(pass_func, opt_level, name, required, "transform_function", FunctionPass)


def decorate_pass(
    function: Callable[..., Any] | None,
    opt_level: int | None,
    name: str | None,
    required: Sequence[str] | None,
    method: str,
    kind: Any,
) -> Decorated:
    """Makes a pass of some kind of a function, or of a class that has `method`."""
    if opt_level is None:
        raise ValueError("say from which optimization level the pass runs: opt_level=…")
    level = integer(opt_level, "opt_level", 0)
    check(name, "name", "the name of the pass", str, NoneType)
    names = tuple(items(required, "required", "names of passes", str))

    def decorate(subject: Callable[..., Any]) -> Decorated:
        check(subject, "what becomes a pass", "a function or a class", cast("type", Callable))
        info = PassInfo(level, name or subject.__name__, names)
        if not inspect.isclass(subject):
            return kind(subject, info)
        if not callable(getattr(subject, method, None)):
            raise TypeError(f"the class {subject.__name__} needs a method {method}")
        made: type[Any] = subject

        def init(self: Any, *args: Any, **kwargs: Any) -> None:
            self.__dict__["subject"] = made(*args, **kwargs)
            kind.__init__(self, getattr(self.__dict__["subject"], method), info)

        def getattribute(self: Any, attribute: str) -> Any:
            # What is not the pass's own is the object's.
            if "subject" not in self.__dict__:
                raise AttributeError(attribute)
            return getattr(self.__dict__["subject"], attribute)

        members = {
            "__init__": init,
            "__getattr__": getattribute,
            "__doc__": made.__doc__,
            "__module__": made.__module__,
        }
        return type(made.__name__, (kind,), members)

    return decorate if function is None else decorate(function)


def __getattr__(name: str) -> Any:
    if name != "Sequential":
        raise AttributeError(f"module 'mirstack.ir.transform' has no attribute '{name}'")
    # A Sequential is a pass, so that its module imports this one.
    return import_module(".sequential", __package__).Sequential


_NAMES = public_names(__name__)


def __dir__() -> list[str]:
    return sorted([*_NAMES(), "Sequential"])
