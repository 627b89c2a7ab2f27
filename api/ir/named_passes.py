"""The passes of the registry by TVM's names: `FuseOps(fuse_opt_level=2)`; each is made on first use."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, cast, get_args, get_origin, get_type_hints

from xdsl.passes import ModulePass as XdslPass
from xdsl.utils.hints import isa

from ...passes.pass_info import camel_case, pass_info
from ...passes.registry import PASSES, Entry
from ...support.arguments import shown
from ...support.diagnostics import Diagnostic, MirValueError
from ...support.text import did_you_mean
from .layout_config import LayoutConfig
from .transform import NamedPass, PassContext

PassConstructor = Callable[..., NamedPass]


@cache
def _by_name() -> dict[str, Entry]:
    return {camel_case(entry.name): entry for entry in PASSES}


def pass_names(folders: Iterable[str] = ("",)) -> list[str]:
    """TVM's names of the registered passes whose modules are in one of these folders of the package."""
    starts = tuple(folders)
    return sorted(name for name, entry in _by_name().items() if entry.module.startswith(starts))


def make_pass(name: str) -> NamedPass:
    """Returns a pass with default options by TVM's or `-p`'s name. Raises MirError if there is none."""
    found = pass_constructor(name) or pass_constructor(camel_case(name))
    if found is None:
        raise MirValueError(Diagnostic(f"there is no pass '{name}'{did_you_mean(name, pass_names(), 0.6)}"))
    return found()


@cache
def pass_constructor(name: str) -> PassConstructor | None:
    """Returns the function of its options that makes the pass that TVM calls `name`. Imports the pass."""
    entry = _by_name().get(name)
    return None if entry is None else _constructor(entry, name)


def registered_pass(name: str, options: Mapping[str, object]) -> NamedPass:
    """Returns the pass that TVM calls `name`, which there is, with options."""
    made = pass_constructor(name)
    assert made is not None
    return made(**options)


class ConfiguredPass(NamedPass):
    """A pass some of whose options follow the context where they were not given."""

    def __init__(self, pass_class: type[XdslPass], given: dict[str, Any], entry: Entry):
        made = pass_class(**given)
        super().__init__(made, pass_info(entry.name, str(made)))
        self.given = given

    def configured(self, context: PassContext) -> XdslPass:
        follow = _FOLLOW.get(self.info.name)
        if follow is None:
            return self.module_pass
        options = {field.name for field in dataclasses.fields(self.module_pass)} - {"name"}
        changes = {name: value for name, value in follow(context).items() if name not in self.given}
        for name in changes:
            if name not in options:
                hint = did_you_mean(name, options, 0.6)
                raise MirValueError(Diagnostic(f"the pass {self.info.name} has no option '{name}'{hint}"))
        hints = get_type_hints(type(self.module_pass))
        for name, value in changes.items():
            _check_option(self.info.name, name, value, hints[name])
        return dataclasses.replace(self.module_pass, **changes)


def _fuse_ops(context: PassContext) -> dict[str, Any]:
    depth = context.config.get("relay.FuseOps.max_depth")
    follow: dict[str, Any] = {"fuse_opt_level": min(context.opt_level, 2)}
    return follow if depth is None else {**follow, "max_depth": int(depth)}


def _to_mixed_precision(context: PassContext) -> dict[str, Any]:
    keep = context.config.get("relay.ToMixedPrecision.keep_orig_output_dtype")
    return {} if keep is None else {"keep_orig_output_dtype": bool(keep)}


def _convert_layout(context: PassContext) -> dict[str, Any]:
    layouts = LayoutConfig.current()
    return {} if layouts is None else {"skip_layers": tuple(layouts.skip_layers)}


def _options(key: str) -> Callable[[PassContext], dict[str, Any]]:
    """All options of a pass, from one setting that holds them by name."""

    def follow(context: PassContext) -> dict[str, Any]:
        value = context.config.get(key)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            raise MirValueError(Diagnostic(f"{key} holds options by name, as in {{'{key}': {{…}}}}, not {value!r}"))
        return {str(name): _as_option(option) for name, option in cast("Mapping[str, Any]", value).items()}

    return follow


def _cse_tir(context: PassContext) -> dict[str, Any]:
    config = context.config
    follow: dict[str, Any] = {}
    if "tir.disable_cse_tir" in config:
        follow["enable_cse_tir"] = not config["tir.disable_cse_tir"]
    if "tir.enable_equiv_terms_in_cse_tir" in config:
        follow["identify_equiv_terms"] = bool(config["tir.enable_equiv_terms_in_cse_tir"])
    return follow


# Options that follow the context, as in TVM.
_FOLLOW: dict[str, Callable[[PassContext], dict[str, Any]]] = {
    "CommonSubexprElimTIR": _cse_tir,
    "ConvertLayout": _convert_layout,
    "FuseOps": _fuse_ops,
    **{
        name: _options(f"tir.{name}")
        for name in ("HoistIfThenElse", "InjectDoubleBuffer", "LoopPartition", "RemoveNoOp", "Simplify", "UnrollLoop")
    },
    "ToMixedPrecision": _to_mixed_precision,
}


def _layouts(desired: Any) -> Any:
    """`{"nn.conv2d": ["NHWC", "default"]}` as the option has it: `nn.conv2d:NHWC,default`."""
    if not isinstance(desired, Mapping):
        return desired
    layouts = cast("Mapping[str, Sequence[str]]", desired)
    return ";".join(f"{operator}:{','.join(names)}" for operator, names in layouts.items())


# Options that TVM calls otherwise, and what becomes of their values.
_RENAMED: dict[tuple[str, str], tuple[str, Callable[[Any], Any]]] = {
    ("ConvertLayout", "layouts"): ("desired_layouts", _layouts),
}
# Values by which TVM says that an option is not given; the defaults that are shown.
_UNSET: dict[tuple[str, str], object] = {
    ("FuseOps", "fuse_opt_level"): -1,
    ("FakeQuantizationToInteger", "optional_qnn_ops"): None,
    ("RemoveUnusedFunctions", "entry_functions"): None,
}
# The types of options that are converted; signatures show them.
_ACCEPTED: dict[str, Any] = {"layouts": Mapping[str, Sequence[str]] | str}


def _as_sequence(hint: Any) -> Any:
    """Returns the type of what an option takes: any sequence for a tuple."""
    items = get_args(hint)
    return Sequence[items[0]] if get_origin(hint) is tuple and items[1:] == (...,) else hint


def _as_option(value: Any) -> Any:
    """Options are hashable: lists become tuples."""
    return tuple(cast("list[Any]", value)) if isinstance(value, list) else value


def _check_option(name: str, option: str, value: Any, hint: Any) -> None:
    """Raises TypeError unless the value of an option of a pass is of the option's type."""
    if not isa(value, hint):
        kind = hint.__name__ if isinstance(hint, type) else str(hint)
        raise TypeError(f"{name}: the option {option} is of type {kind}, not {shown(value)}")


def _constructor(entry: Entry, name: str) -> PassConstructor:
    pass_class = entry.load()
    hints = get_type_hints(pass_class)
    fields = [field for field in dataclasses.fields(pass_class) if field.init and field.name != "name"]
    parameters: list[inspect.Parameter] = []
    targets: dict[str, tuple[str, Callable[[Any], Any]]] = {}
    for field in fields:
        default = inspect.Parameter.empty
        if field.default is not dataclasses.MISSING:
            default = field.default
        elif field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        default = _UNSET.get((name, field.name), default)
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameter, convert = _RENAMED.get((name, field.name), (field.name, _as_option))
        targets[parameter] = (field.name, convert)
        accepted = _ACCEPTED.get(field.name) or _as_sequence(hints[field.name])
        accepted = accepted | None if default is None else accepted
        parameters.append(inspect.Parameter(parameter, kind, default=default, annotation=accepted))
    signature = inspect.Signature(parameters, return_annotation=NamedPass)

    def make(*args: Any, **kwargs: Any) -> NamedPass:
        given: dict[str, Any] = {}
        try:
            arguments = signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise TypeError(f"{name}: {error}") from None
        for parameter, value in arguments.items():
            option, convert = targets[parameter]
            # None, or a value that TVM has for it, says that an option is not given.
            if value is not None and _UNSET.get((name, option), given) != value:
                given[option] = convert(value)
                _check_option(name, parameter, given[option], hints[option])
        return ConfiguredPass(pass_class, given, entry)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = (
        f"{entry.doc[:1].upper()}{entry.doc[1:]}. The pass `{entry.name}`.\n\n{inspect.getdoc(pass_class) or ''}"
    )
    make.__signature__ = signature  # type: ignore[attr-defined]
    return make
