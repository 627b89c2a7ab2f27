"""`target.Target`: what a program is compiled for, by TVM's texts, dictionaries and tags.

    Target("llvm -mcpu=skylake-avx512 -num-cores=4")
    Target({"kind": "cuda", "arch": "sm_80"}, host="llvm")
    Target("nvidia/nvidia-a100")

A target describes; making one compiles nothing. `mirstack.build` says where it cannot compile for one (`native_options`).
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from ...support.diagnostics import Diagnostic, MirTypeError, MirValueError
from ...support.text import did_you_mean
from ..device import Device
from .kinds import ALIASES, COMMON, KINDS, Attribute, TargetKind
from .tags import tags

Value: TypeAlias = "str | int | bool | list[str]"

TargetLike: TypeAlias = "str | Mapping[str, Any] | Target"
"""What a target is made of: a text, a dictionary, or a target."""

_CURRENT: ContextVar[tuple[Target, ...]] = ContextVar("targets", default=())


class Target:
    """A kind of target with its attributes; immutable, and equal to one of the same."""

    __slots__ = ("_tokens", "attrs", "host", "keys", "kind", "tag")

    kind: TargetKind
    attrs: dict[str, Any]
    """The attributes that were given, and the kind's defaults."""
    keys: list[str]
    tag: str
    host: Target | None
    """The target of the code that calls this one's."""

    def __init__(self, target: TargetLike, host: TargetLike | None = None):
        """Reads a text, JSON, a dictionary or a tag. Raises MirValueError for what is not a target."""
        self._tokens: list[Token[tuple[Target, ...]]] = []
        if isinstance(target, Target):
            self.kind, self.attrs, self.keys = target.kind, dict(target.attrs), list(target.keys)
            self.tag, self.host = target.tag, target.host
        else:
            self._configure(_config_of(target))
        if host is not None:
            if self.host is not None:
                raise MirValueError(Diagnostic(f"the target '{self}' has the host '{self.host}' already"))
            self.host = Target(host)

    def _configure(self, config: Mapping[str, Any]) -> None:
        name = config.get("kind")
        kind = KINDS.get(ALIASES.get(name, name)) if isinstance(name, str) else None
        if kind is None:
            hint = did_you_mean(name, KINDS) if isinstance(name, str) else ""
            raise MirValueError(
                Diagnostic(f"there is no target '{name}'{hint}").with_note(f"there are {', '.join(KINDS)}")
            )
        self.kind = kind
        given: dict[str, Value] = {}
        for key, value in config.items():
            if key not in ("kind", "host"):
                given[key] = _checked(kind, key, value)
        self.tag = str(given.pop("tag", ""))
        keys = given.pop("keys", None)
        device = [str(given["device"])] if "device" in given else []
        architecture = _architecture_keys(kind.name, given)
        if keys is None:
            wanted = [*device, *architecture, *kind.default_keys]
        else:
            wanted = [*cast("list[str]", keys), *device, *architecture]
        self.keys = list(dict.fromkeys(wanted))
        defaults = {key: default for key, (_, default) in kind.attributes.items() if default is not None}
        self.attrs = dict(sorted({**defaults, **given}.items()))
        host = config.get("host")
        self.host = None if host is None else Target(host)

    # Attributes by their names

    @property
    def device_name(self) -> str:
        """The attribute `device`, "" where it is not given."""
        return str(self.attrs.get("device", ""))

    @property
    def model(self) -> str:
        """The model of the device, "unknown" where it is not given."""
        return str(self.attrs.get("model", "unknown"))

    @property
    def mcpu(self) -> str:
        """LLVM's name of the processor, "" where it is not given."""
        return str(self.attrs.get("mcpu", ""))

    @property
    def mattr(self) -> list[str]:
        """LLVM's names of instruction sets, each with `+` or `-`."""
        return list(self.attrs.get("mattr", ()))

    @property
    def mtriple(self) -> str:
        """LLVM's triple, "" where it is not given."""
        return str(self.attrs.get("mtriple", ""))

    @property
    def arch(self) -> str:
        """The architecture of a GPU, such as sm_80; "" where there is none."""
        return str(self.attrs.get("arch", ""))

    @property
    def libs(self) -> list[str]:
        """The names of libraries that may be called."""
        return list(self.attrs.get("libs", ()))

    @property
    def num_cores(self) -> int | None:
        """The number of cores; None where it is not given."""
        return self.attrs.get("num-cores")

    @property
    def features(self) -> TargetFeatures:
        """The features of the processor, as far as the target says: `target.features.has_sve`."""
        return TargetFeatures(self)

    def _number(self, name: str) -> int:
        found = self.attrs.get(name)
        if found is None:
            raise MirValueError(
                Diagnostic(f"the target '{self.kind.name}' says no {name}").with_note(f"give it: -{name}=NUMBER")
            )
        return int(found)

    @property
    def max_num_threads(self) -> int:
        """The most threads of a block. Raises MirValueError where it is not given, as the numbers below."""
        return self._number("max_num_threads")

    @property
    def thread_warp_size(self) -> int:
        """The threads that run in lockstep."""
        return self._number("thread_warp_size")

    @property
    def max_block_size_x(self) -> int:
        """The most threads of a block along x."""
        return self._number("max_block_size_x")

    @property
    def max_block_size_y(self) -> int:
        """The most threads of a block along y."""
        return self._number("max_block_size_y")

    @property
    def max_shared_memory_per_block(self) -> int:
        """The bytes of memory that the threads of a block share."""
        return self._number("max_shared_memory_per_block")

    @property
    def max_function_args(self) -> int:
        """The most arguments of a kernel; 0 where it is not given."""
        return int(self.attrs.get("max_function_args", 0))

    @property
    def texture_spatial_limit(self) -> int:
        """The largest extent of a texture."""
        return self._number("texture_spatial_limit")

    @property
    def vtcm_capacity(self) -> int:
        """The bytes of Hexagon's tightly coupled memory; 0 where it is not given."""
        return int(self.attrs.get("vtcm-capacity", 0))

    @property
    def supports_integer_dot_product(self) -> bool:
        """Returns whether dot products of integers are said to be instructions."""
        return bool(self.attrs.get("supports_integer_dot_product", False))

    @property
    def supports_cooperative_matrix(self) -> bool:
        """Returns whether products of small matrices are said to be instructions."""
        return bool(self.attrs.get("supports_cooperative_matrix", False))

    def get_kind_attr(self, attr_name: str) -> Any:
        """Returns an attribute of the kind, such as its device type; None for what it does not have."""
        return getattr(self.kind, attr_name, None)

    def get_target_device_type(self) -> int:
        """The number of the device's kind."""
        return int(self.attrs.get("target_device_type", self.kind.device_type))

    # Changes

    def with_host(self, host: TargetLike | None = None) -> Target:
        """Returns the target with another host, or without one."""
        made = Target(self)
        made.host = None if host is None else Target(host)
        return made

    def without_host(self) -> Target:
        """Returns the target without its host."""
        return self.with_host(None)

    def export(self) -> dict[str, Any]:
        """Returns the dictionary that a target is made from again."""
        config: dict[str, Any] = {"kind": self.kind.name, "tag": self.tag, "keys": list(self.keys), **self.attrs}
        if self.host is not None:
            config["host"] = self.host.export()
        return config

    # The current target

    def __enter__(self) -> Target:
        self._tokens.append(_CURRENT.set((*_CURRENT.get(), self)))
        return self

    def __exit__(self, *error: object) -> None:
        _CURRENT.reset(self._tokens.pop())

    @staticmethod
    def current(allow_none: bool = True) -> Target | None:
        """Returns the target of the innermost `with`.

        Raises MirValueError where there is none, unless `allow_none`.
        """
        entered = _CURRENT.get()
        if not entered and not allow_none:
            raise MirValueError(
                Diagnostic("no target is current").with_note("write with Target('llvm'): around what needs one")
            )
        return entered[-1] if entered else None

    @staticmethod
    def target_or_current(target: TargetLike | None) -> Target:
        """Returns the target that is given, otherwise the current one. Raises MirValueError for neither."""
        found = Target.current() if target is None else Target(target)
        if found is None:
            raise MirValueError(Diagnostic("a target is not given, and none is current"))
        return found

    # Other forms

    @staticmethod
    def list_kinds() -> list[str]:
        """Returns the names of all kinds."""
        return sorted(KINDS)

    @staticmethod
    def from_device(device: Device | str) -> Target:
        """Returns the target of a device. Raises MirValueError for one that this machine does not have."""
        device = Device.of(device)
        if not device.exist:
            raise MirValueError(Diagnostic(f"there is no device {device} here").with_note("there is cpu()"))
        return Target("llvm")

    @staticmethod
    def canon_target(target: TargetLike | None) -> Target | None:
        """Returns a target of what one is made of; None for None."""
        return None if target is None else target if isinstance(target, Target) else Target(target)

    @staticmethod
    def canon_target_and_host(
        target: TargetLike | None, target_host: TargetLike | None = None
    ) -> tuple[Target | None, Target | None]:
        """Returns a target with its host, and the host."""
        found = Target.canon_target(target)
        if found is None:
            return None, Target.canon_target(target_host)
        if target_host is not None:
            found = found.with_host(target_host)
        return found, found.host

    @staticmethod
    def canon_multi_target(multi_targets: TargetLike | Sequence[TargetLike] | None) -> list[Target]:
        """Returns the targets of one, of several, or of a dictionary by devices."""
        if multi_targets is None:
            return []
        if isinstance(multi_targets, Mapping) and "kind" not in multi_targets:
            return [Target(each) for each in multi_targets.values()]
        if isinstance(multi_targets, str | Mapping | Target) or not isinstance(cast("object", multi_targets), Sequence):
            return [Target(cast("TargetLike", multi_targets))]
        return [Target(each) for each in multi_targets]

    def __str__(self) -> str:
        parts = [self.kind.name]
        if self.keys:
            parts.append(f"-keys={','.join(self.keys)}")
        parts += [f"-{key}={_text(value)}" for key, value in self.attrs.items()]
        return " ".join(parts)

    def __repr__(self) -> str:
        return str(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Target) and str(self) == str(other) and self.host == other.host

    def __hash__(self) -> int:
        return hash((str(self), self.host))


class TargetFeatures:
    """The features of a processor, by TVM's names: `is_aarch64`, `has_sve`, `has_dotprod`, `has_mve`, …"""

    __slots__ = ("_target",)

    def __init__(self, target: Target):
        self._target = target

    def __getattr__(self, name: str) -> bool | None:
        if name.startswith("__"):
            raise AttributeError(name)
        return _features(self._target).get(name)


def _features(target: Target) -> dict[str, bool]:
    """Returns the features that follow from triple, processor and `mattr`."""
    given = {each[1:]: each.startswith("+") for each in target.mattr}
    triple, mcpu = target.mtriple, target.mcpu
    if target.kind.name in ("llvm", "c") and mcpu.startswith("cortex-m"):
        return {"has_dsp": mcpu in _DSP and given.get("dsp", True), "has_mve": mcpu in _MVE and given.get("mve", True)}
    if target.kind.name != "llvm" or not triple.startswith(("aarch64", "arm64", "arm")):
        return {}
    from ...support.target import family_of

    family = family_of(mcpu)
    known = family.features if family is not None else frozenset[str]()
    long = not triple.startswith("arm") or triple.startswith("arm64")
    return {
        "is_aarch64": long,
        "has_asimd": given.get("neon", long),
        "has_sve": given.get("sve", "sve" in known),
        "has_dotprod": given.get("dotprod", "dotprod" in known),
        "has_matmul_i8": given.get("i8mm", "i8mm" in known),
        "has_fp16_simd": given.get("fullfp16", "fp16" in known),
    }


_DSP = frozenset({"cortex-m4", "cortex-m7", "cortex-m33", "cortex-m35p", "cortex-m55", "cortex-m85"})
_MVE = frozenset({"cortex-m55", "cortex-m85"})


def _architecture_keys(kind: str, given: Mapping[str, Value]) -> list[str]:
    """Returns the keys that follow from an Arm processor's triple or name."""
    triple, mcpu = str(given.get("mtriple", "")), str(given.get("mcpu", ""))
    arm = kind == "llvm" and triple.startswith(("aarch64", "arm"))
    return ["arm_cpu", "cpu"] if arm or (kind in ("llvm", "c") and mcpu.startswith("cortex-m")) else []


def _config_of(target: object) -> Mapping[str, Any]:
    """Returns the dictionary that a text means. Raises MirError for what is not a target."""
    if isinstance(target, Mapping):
        return cast("Mapping[str, Any]", target)
    if not isinstance(target, str):
        raise MirTypeError(
            Diagnostic(f"a target is a text or a dictionary, not {target!r}").with_note(
                "write 'llvm -mcpu=haswell', {'kind': 'llvm'} or 'nvidia/nvidia-a100'"
            )
        )
    text = target.strip()
    if text.startswith("{"):
        try:
            return cast("Mapping[str, Any]", json.loads(text))
        except (ValueError, RecursionError) as error:
            raise MirValueError(Diagnostic(f"the target is not JSON: {error}")) from None
    known = tags()
    if text in known:
        return {**known[text], "tag": text}
    if "/" in text.split(" ", 1)[0]:
        raise MirValueError(
            Diagnostic(f"there is no tag '{text}'{did_you_mean(text, known)}").with_note(
                "target.list_tags() returns the tags"
            )
        )
    return _words(text)


def _words(text: str) -> dict[str, Any]:
    """Returns the dictionary of a text `kind -name=value --flag`."""
    try:
        kind, *options = shlex.split(text)
    except ValueError as error:
        message = "the text of a target is empty" if not text else f"'{text}' is not a target: {error}"
        raise MirValueError(Diagnostic(message)) from None
    config: dict[str, Any] = {"kind": kind}
    pending = list(reversed(options))
    while pending:
        option = pending.pop()
        name, equals, value = option.lstrip("-").partition("=")
        if not option.startswith("-") or not name:
            raise MirValueError(
                Diagnostic(f"'{option}' is not an option of a target").with_note("an option is -name=value")
            )
        if not equals and pending and not pending[-1].startswith("-"):
            value = pending.pop()
        elif not equals:
            value = "1"
        if name in config:
            raise MirValueError(Diagnostic(f"the target '{kind}' is given '-{name}' twice"))
        config[name] = value
    return config


def _checked(kind: TargetKind, name: str, value: object) -> Value:
    """Returns an attribute's value as its kind wants it.

    Raises MirError for an unknown name and a wrong value.
    """
    attribute: Attribute | None = kind.attributes.get(name) or COMMON.get(name)
    if attribute is None:
        known = kind.options
        raise MirValueError(
            Diagnostic(f"the target '{kind.name}' has no option '-{name}'{did_you_mean(name, known)}").with_note(
                f"it takes {', '.join(f'-{each}' for each in known)}"
            )
        )
    wanted = attribute[0]
    if wanted is list:
        parts = value.split(",") if isinstance(value, str) else value
        if isinstance(parts, Sequence) and all(isinstance(part, str) for part in cast("Sequence[object]", parts)):
            return [part.strip() for part in cast("Sequence[str]", parts)]
    elif wanted is str:
        if isinstance(value, str):
            return value
    elif wanted is bool:
        if str(value).lower() in _TRUTHS:
            return _TRUTHS[str(value).lower()]
    elif isinstance(value, int) and not isinstance(value, bool):
        return value
    elif isinstance(value, str) and value.lstrip("-").isdecimal():
        return int(value)
    what = {list: "texts", str: "a text", bool: "true or false", int: "an integer"}[wanted]
    raise MirTypeError(Diagnostic(f"the option '-{name}' of the target '{kind.name}' is {what}, not {value!r}"))


_TRUTHS = {"1": True, "true": True, "0": False, "false": False}


def _text(value: Value) -> str:
    """Returns an attribute as the text of a target has it."""
    if isinstance(value, bool):
        return str(int(value))
    text = ",".join(value) if isinstance(value, list) else str(value)
    return shlex.quote(text) if " " in text or '"' in text else text


@dataclass(frozen=True)
class NativeOptions:
    """The options of `mirstack.compile` that a target means."""

    target: Literal["cpu", "interp"]
    cpu: str | None
    caches: str
    threads: int | None


def chosen_target(target: TargetLike | Sequence[TargetLike] | None) -> Target:
    """Returns the target to compile for: for None the current one, otherwise this processor.

    Raises MirValueError for several different ones.
    """
    given = Target.canon_multi_target(target)
    if len(set(given)) > 1:
        shown = " and ".join(str(each) for each in given)
        raise MirValueError(Diagnostic(f"a program is compiled for one target, not for {shown}"))
    return given[0] if given else Target.current() or Target("llvm")


def native_options(target: TargetLike | Sequence[TargetLike] | None) -> NativeOptions:
    """Returns how code for a target is compiled. None is the current target, otherwise this processor.

    Raises MirValueError for a target that this project has no code for.
    """
    found = chosen_target(target)
    kind = found.kind.name
    if kind not in ("llvm", "c", "interp"):
        raise MirValueError(
            Diagnostic(f"there is no code for the target '{kind}'").with_note(
                "programs are compiled for llvm (this processor, or -mcpu=NAME) and run by interp, the interpreters"
            )
        )
    _check_triple(found.mtriple)
    threads = found.num_cores
    if threads is not None:
        from ...support.target import processors

        threads = max(1, min(threads, processors()))
    return NativeOptions(
        "interp" if kind == "interp" else "cpu", found.mcpu or None, str(found.attrs.get("caches", "")), threads
    )


def _check_triple(triple: str) -> None:
    """Raises MirValueError for a triple of other machines than this one."""
    if not triple:
        return
    from ...support.target import host

    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(triple.split("-")[0], triple.split("-")[0])
    here = host(1).arch
    if machine != here:
        raise MirValueError(
            Diagnostic(f"'-mtriple={triple}' is another machine, whose code does not run here").with_note(
                f"this one is {here}; mir-build FILE --triple {triple} compiles for the other one"
            )
        )


__all__ = ["NativeOptions", "Target", "TargetFeatures", "TargetKind", "TargetLike", "chosen_target", "native_options"]
