"""The signature of every schedule primitive, one line each, as TVM 0.16's `tir.Schedule` has them.

`omit_padding` is mirstack's own. Those of TVM's `te.Schedule` and `te.Stage` follow.

From here come the ops of the dialects, the checks of texts and of calls from Python, the methods of schedules and their types, and the
printed form of traces.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import cast

from ...support.text import counted, did_you_mean, nearest
from .kinds import Kinds, fits, parse_kind, spoken, spoken_value

# `name(parameter: kind = default, …) -> result`; a star marks the parameter that takes all positional arguments.
# `-> list[loop] = factors`: as many results as the argument `factors` is long (or, where it is a number, as it says).
_TABLE = """
get_block(name: str, func_name: str | none = None) -> block
get_loops(block: block | str) -> list[loop]
get_child_blocks(block_or_loop: block | loop | str) -> list[block]
get_producers(block: block | str) -> list[block]
get_consumers(block: block | str) -> list[block]
get_output_blocks(scope_block: block | str) -> list[block]
split(loop: loop, factors: list[expr | none], preserve_unit_iters: bool = True, disable_predication: bool = False) -> list[loop] = factors
loop_partition(loop: loop, factors: list[expr | none], preserve_unit_iters: bool = True) -> list[loop]
merge(*loops: loop) -> loop
fuse(*loops: loop, preserve_unit_iters: bool = True) -> loop
reorder(*ordered_loops: loop) -> none
reorder_block_iter_var(block: block | str, new_order: list[int]) -> none
add_unit_loop(block_or_loop: block | loop) -> loop
parallel(loop: loop) -> none
vectorize(loop: loop) -> none
unroll(loop: loop) -> none
bind(loop: loop, thread_axis: str) -> none
cache_read(block: block | str, read_buffer_index: int | str, storage_scope: str, consumer_blocks: list[block | str] | none = None) -> block
cache_write(block: block | str, write_buffer_index: int | str, storage_scope: str, consumer_blocks: list[block | str] | none = None) -> block
reindex_cache_read(block: block | str, read_buffer_index: int | str, storage_scope: str, index_map: lambda) -> block
reindex_cache_write(block: block | str, write_buffer_index: int | str, storage_scope: str, index_map: lambda) -> block
cache_inplace(block: block | str, read_buffer_index: int | str, storage_scope: str) -> list[block]
cache_index(block: block | str, storage_scope: str, cse_thresh: int = 0) -> list[block]
reindex(block: block | str, buffer: pair[str, int] | str) -> block
read_at(loop: loop, block: block | str, read_buffer_index: int | str, storage_scope: str) -> block
write_at(loop: loop, block: block | str, write_buffer_index: int | str, storage_scope: str) -> block
compute_at(block: block | str, loop: loop, preserve_unit_loops: bool = False, index: int = -1) -> none
reverse_compute_at(block: block | str, loop: loop, preserve_unit_loops: bool = False, index: int = -1) -> none
compute_inline(block: block | str) -> none
reverse_compute_inline(block: block | str) -> none
decompose_reduction(block: block | str, loop: loop) -> block
rfactor(loop: loop, factor_axis: int) -> block
storage_align(block: block | str, buffer_index: int | str, axis: int, factor: int, offset: int) -> none
set_scope(block: block | str, buffer_index: int | str, storage_scope: str) -> none
unsafe_set_dtype(block: block | str, buffer_index: int | str, dtype: str) -> none
blockize(target: block | loop | list[block], preserve_unit_iters: bool = True) -> block
tensorize(block_or_loop: block | loop, tensor_intrin: str, preserve_unit_iters: bool = True) -> none
annotate(block_or_loop: block | loop, ann_key: str, ann_val: any) -> none
unannotate(block_or_loop: block | loop, ann_key: str) -> none
transform_layout(block: block | str, buffer: pair[str, int] | str, index_map: lambda, pad_value: int | float | bool | lambda | none = None, assume_injective_transform: bool = False) -> none
transform_block_layout(block: block | str, index_map: lambda) -> none
set_axis_separator(block: block | str, buffer: pair[str, int] | str, axis_separators: list[int] | none) -> none
decompose_padding(block: block | str, loop: loop) -> block
omit_padding(block: block | str, loop: loop) -> none
pad_einsum(block: block | str, padding: list[int]) -> none
rolling_buffer(block: block | str, write_buffer_index: int | str) -> none
sample_categorical(candidates: list[int], probs: list[float], decision: int | none = None) -> expr
sample_perfect_tile(loop: loop, n: int, max_innermost_factor: int = 16, decision: list[int] | none = None) -> list[expr] = n
sample_partitioned_tile(loop: loop, n: int, partition_pos: int = 0, innerpart_factor: int = 1, decision: list[int] | none = None) -> list[expr] = n
sample_compute_location(block: block | str, decision: int | none = None) -> loop
work_on(func_name: str) -> none
enter_postproc() -> none
"""

# Of TE's schedules, each before the dot what it is a method of. `expr` is a number, a size, an axis or arithmetic on them.
_TE_TABLE = """
stage.split(parent: axis, factor: expr = None, nparts: expr = None) -> axis, axis
stage.fuse(*args: axis) -> axis
stage.reorder(*args: axis) -> none
stage.tile(x_parent: axis, y_parent: axis, x_factor: expr, y_factor: expr) -> axis, axis, axis, axis
stage.bind(ivar: axis, thread_ivar: axis) -> none
stage.env_threads(threads: list[axis]) -> none
stage.set_scope(scope: str) -> none
stage.set_store_predicate(predicate: expr) -> none
stage.compute_at(parent: stage, scope: axis) -> none
stage.compute_inline() -> none
stage.compute_root() -> none
stage.vectorize(var: axis) -> none
stage.unroll(var: axis) -> none
stage.parallel(var: axis) -> none
stage.pragma(var: axis, pragma_type: str, pragma_value: literal = None) -> none
stage.prefetch(tensor: tensor, var: axis, offset: expr) -> none
stage.storage_align(axis: axis, factor: int, offset: int) -> none
stage.double_buffer() -> none
schedule.create_group(outputs: list[tensor], inputs: list[tensor], include_inputs: bool = False) -> stage
schedule.cache_read(tensor: tensor, scope: str, readers: list[tensor]) -> tensor
schedule.cache_write(tensor: list[tensor], scope: str) -> list[tensor]
schedule.rfactor(tensor: tensor, axis: axis, factor_axis: int = 0) -> list[tensor]
"""

_LINE = re.compile(r"(?:(\w+)\.)?(\w+)\((.*)\) -> ([a-z\[\], ]+?)(?: = (\w+))?")
_PARAMETER = re.compile(r"(\*?)(\w+): ((?:\[[^]]*\]|[^,=\[])+?)(?: = ([^,]+))?(?:, |$)")
_DEFAULTS: Mapping[str, object] = {"None": None, "True": True, "False": False}


class Required:
    """The default of a parameter that must be given."""

    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED = Required()


@dataclass(frozen=True)
class Parameter:
    """A parameter of a primitive; `variadic` takes all positional arguments, each of the kind."""

    name: str
    kind: str
    default: object = REQUIRED
    variadic: bool = False

    @property
    def kinds(self) -> Kinds:
        """Returns the kinds of values that it takes."""
        return parse_kind(self.kind)

    @property
    def is_required(self) -> bool:
        """Returns whether a call must pass the parameter."""
        return isinstance(self.default, Required)

    @property
    def is_list(self) -> bool:
        """Returns whether the parameter takes a list."""
        return self.kind.startswith("list[")

    @property
    def element(self) -> str:
        """Returns the kind of its value, or of the elements of its list."""
        return self.kind.removeprefix("list[").removesuffix("]")

    def __str__(self) -> str:
        star = "*" if self.variadic else ""
        return f"{star}{self.name}" + ("" if isinstance(self.default, Required) else f"={self.default!r}")


class SignatureError(Exception):
    """A call that does not fit a primitive. `argument` is the wrong argument's name or position, if known."""

    def __init__(self, message: str, note: str, argument: str | int | None = None):
        super().__init__(message)
        self.message, self.note, self.argument = message, note, argument


@dataclass(frozen=True)
class Signature:
    """A primitive's parameters and its result.

    The result is `none`, a kind of handle, several with commas between, or a list of one kind. `counted_by` names the argument that
    determines the number of results; `owner` is the class that it is a method of, in TE.
    """

    name: str
    parameters: tuple[Parameter, ...]
    result: str
    counted_by: str | None = None
    owner: str = ""

    @cached_property
    def by_name(self) -> dict[str, Parameter]:
        """Returns the parameters by name."""
        return {p.name: p for p in self.parameters}

    @property
    def variadic(self) -> Parameter | None:
        """Returns the parameter that takes all positional arguments, if there is one; it is the first."""
        first = self.parameters[0] if self.parameters else None
        return first if first is not None and first.variadic else None

    @property
    def element(self) -> str | None:
        """Returns the kind of the list's elements; None when the result is not a list."""
        return self.result[len("list[") : -1] if self.result.startswith("list[") else None

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.parameters))})"

    @property
    def _usage(self) -> str:
        """Returns the form of a call, as a note."""
        return f"it is called as sch.{self}"

    def bind(self, positional: Sequence[object], keywords: Mapping[str, object]) -> dict[str, object]:
        """Binds arguments to parameters, variadic ones as a list; raises SignatureError where they do not fit.

        Defaults are not filled in. Kinds are not checked, see `check`.
        """
        bound: dict[str, object] = {}
        plain = [p for p in self.parameters if not p.variadic]
        if self.variadic is not None:
            bound[self.variadic.name] = list(positional)
        elif len(positional) > len(plain):
            raise SignatureError(
                f"{self.name} takes {counted(len(plain), 'argument')} at most, but {len(positional)} are given",
                self._usage,
                len(plain),
            )
        else:
            bound.update(zip((p.name for p in plain), positional, strict=False))
        for name, value in keywords.items():
            if name in bound and not (self.variadic and name == self.variadic.name):
                raise SignatureError(f"{self.name} is given the argument '{name}' twice", self._usage, name)
            if name not in self.by_name or self.by_name[name].variadic:
                also = did_you_mean(name, [p.name for p in plain], 0.6)
                raise SignatureError(f"{self.name} has no parameter '{name}'{also}", self._usage, name)
            bound[name] = value
        for parameter in plain:
            if parameter.name not in bound and isinstance(parameter.default, Required):
                raise SignatureError(
                    f"{self.name} needs the argument '{parameter.name}', {spoken(parameter.kinds)}", self._usage
                )
        return bound

    def check(self, bound: Mapping[str, object]) -> None:
        """Raises SignatureError for an argument of another kind than its parameter's."""
        for name, value in bound.items():
            parameter = self.by_name[name]
            values = cast("list[object]", value) if parameter.variadic and isinstance(value, list) else [value]
            for place, item in enumerate(values):
                if not fits(parameter.kinds, item):
                    raise SignatureError(
                        f"{self.name}: '{name}' must be {spoken(parameter.kinds)}, not {spoken_value(item)}",
                        self._usage,
                        place if parameter.variadic else name,
                    )

    def with_defaults(self, bound: Mapping[str, object]) -> dict[str, object]:
        """Returns all arguments in the order of the parameters, defaults filled in."""
        return {p.name: bound.get(p.name, [] if p.variadic else p.default) for p in self.parameters}

    def result_count(self, bound: Mapping[str, object]) -> int | None:
        """Returns the number of results if the arguments determine it (0, 1, a list's length), otherwise None."""
        if self.element is None:
            return 0 if self.result == "none" else 1
        value = bound.get(self.counted_by) if self.counted_by else None
        if isinstance(value, int):
            return value
        return len(value) if isinstance(value, list | tuple) else None  # pyright: ignore[reportUnknownArgumentType]


@cache
def signatures() -> Mapping[str, Signature]:
    """Returns the table, by name."""
    return {found.name: found for found in map(_read, _TABLE.strip().splitlines())}


@cache
def te_signatures() -> Mapping[str, Signature]:
    """Returns the table of TE's primitives, by name."""
    return {found.name: found for found in map(_read, _TE_TABLE.strip().splitlines())}


def signature(name: str) -> Signature | None:
    """Returns the signature of the primitive called so, or None."""
    return signatures().get(name)


def nearest_primitive(name: str) -> str | None:
    """Returns the primitive whose name is nearest to one that is none."""
    return nearest(name, signatures(), 0.5)


def _read(line: str) -> Signature:
    match = _LINE.fullmatch(line)
    if match is None:
        raise ValueError(f"'{line}' is not a signature")
    parameters = [
        Parameter(name, kind.strip(), _default(default), star == "*")
        for star, name, kind, default in _PARAMETER.findall(match[3])
    ]
    return Signature(match[2], tuple(parameters), match[4], match[5], match[1] or "")


def _default(text: str) -> object:
    if not text:
        return REQUIRED
    return _DEFAULTS[text] if text in _DEFAULTS else int(text)
