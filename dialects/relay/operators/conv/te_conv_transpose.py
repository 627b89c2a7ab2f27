"""Defines TE computes of transposed convolutions: as convolutions, which schedules know.

With strides the data would be mostly zeros, inserted between its elements. Instead, the elements of the result whose indices
agree modulo the strides (a phase) are a convolution without strides by every strides-th tap of the kernel (Shi et al., "Is the
deconvolution layer the same as a convolutional layer?", 2016).

The inserted zeros are not terms of the sums: an infinite weight makes NaN only of the elements that it multiplies. Where zeros
are multiplied after all, since convolutions are quick, the few NaN results are recomputed without them
(`_Transposed.without_zeros`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

from ...operator import Attrs
from ..common._lazy import te
from ..common.layout_strings import layout
from ..common.te_computes import in_dtype, wide_dtype
from ..sorting.te_sort import is_large, loops
from .col2im import te_conv_transposed, te_conv_transposed_place
from .convolution import SPATIAL, spatial_padding

if TYPE_CHECKING:
    from ....te.builder import Buffer, IRBuilder, Tensor

MOST_PHASES = 4
"""Phases that are convolutions of their own at most: each is code of its own."""

WORTHWHILE = 1.2
"""How many times the products that count are the products, zeros of a lengthened kernel among them, from which phases are
apart."""


def output_padding(attrs: Attrs, rank: int) -> tuple[int, ...]:
    """Returns the zeros after each spatial axis that an operator's attributes ask for."""
    given = tuple(attrs.output_padding)
    return given * rank if len(given) == 1 else given


def transposed_compute(rank: int) -> Callable[[Attrs, Sequence[Tensor], Any], list[Tensor]]:
    """Returns the compute of a transposed convolution over `rank` spatial axes."""

    def compute(attrs: Attrs, xs: Sequence[Tensor], out: Any) -> list[Tensor]:
        dtype = attrs.out_dtype or xs[0].dtype
        return [in_dtype(t, dtype) for t in in_sums(attrs, xs)]

    def in_sums(attrs: Attrs, xs: Sequence[Tensor]) -> list[Tensor]:
        transposed = _Transposed(rank, attrs, *xs)
        every = (*transposed.sizes.values(), *transposed.weights.values())
        one_place = transposed.has_one_place
        if (transposed.has_phases or one_place) and attrs.groups == 1 and all(isinstance(size, int) for size in every):
            layouts = (transposed.data_layout, transposed.kernel_layout, transposed.out_layout)
            steps, cut = list(transposed.strides.values()), list(transposed.cut.values())
            if one_place:
                return [
                    te_conv_transposed_place(
                        xs[0], xs[1], transposed.axes, layouts, cut, transposed.result, transposed.dtype
                    )
                ]
            return [
                te_conv_transposed(
                    xs[0], xs[1], transposed.axes, layouts, steps, cut, transposed.result, transposed.dtype
                )
            ]
        if not transposed.has_phases:
            return [transposed.without_zeros(transposed.over_zeros())]
        return [transposed.without_zeros(transposed.apart() if transposed.wastes else transposed.together())]

    return compute


class _Transposed:
    """One transposed convolution of `x` by `w` in any layouts; its maps have spatial axes as keys.

    A *phase* is the result elements of one remainder by the strides: all of them use the same taps.
    """

    def __init__(self, rank: int, attrs: Attrs, x: Tensor, w: Tensor):
        axes = SPATIAL[rank]
        self.name = f"conv{rank}d_transpose"
        self.rank, self.axes, self.x, self.w, self.groups = rank, axes, x, w, attrs.groups
        self.dtype = wide_dtype(attrs.out_dtype or x.dtype)
        self.data_layout, self.kernel_layout = layout(attrs.data_layout), layout(attrs.kernel_layout)
        self.out_layout = layout(attrs.out_layout or attrs.data_layout)
        self.sizes, self.weights = self.data_layout.logical(x.shape), self.kernel_layout.logical(w.shape)
        before, after = spatial_padding(attrs.padding, rank) or ((), ())
        extra = output_padding(attrs, rank)
        self.strides = dict(zip(axes, attrs.strides, strict=True))
        self.dilation = dict(zip(axes, attrs.dilation, strict=True))
        self.cut = dict(zip(axes, before, strict=True))
        channels = self.sizes["C"]
        self.per_group = channels // attrs.groups if isinstance(channels, int) else te.floordiv(channels, attrs.groups)
        self.result = {"N": self.sizes["N"], "C": self.weights["O"] * attrs.groups}
        for n, a in enumerate(axes):
            reach = (self.weights[a] - 1) * attrs.dilation[n] + (1 - before[n] - after[n] + extra[n])
            self.result[a] = (self.sizes[a] - 1) * attrs.strides[n] + reach
        self.shape = self.out_layout.physical(self.result)

    def _sum(
        self,
        data: Tensor,
        kernel: Callable[..., Any],
        at: dict[str, Any],
        places: dict[str, Any],
        taps: dict[str, Any],
        reduced: dict[str, Any],
    ) -> Any:
        """Returns the sum over channels and taps of data at `places` times the kernel at `taps`."""
        rc = te.reduce_axis((0, self.per_group), name="dc")
        channel, out_channel = rc, at["C"]
        if self.groups != 1:
            channel = te.floordiv(at["C"], self.weights["O"]) * self.per_group + rc
            out_channel = te.floormod(at["C"], self.weights["O"])
        left = data(*self.data_layout.indices({"N": at["N"], "C": channel, **places}))
        right = kernel(*self.kernel_layout.indices({"I": channel, "O": out_channel, **taps}))
        return te.sum(left.astype(self.dtype) * right.astype(self.dtype), axis=[rc, *reduced.values()])

    def _taps(self, count: dict[str, int]) -> dict[str, Any]:
        return {a: te.reduce_axis((0, count[a]), name=f"d{a.lower()}") for a in self.axes}

    @property
    def has_phases(self) -> bool:
        """Returns whether there is more than one phase, each of a known number of elements."""
        known = all(isinstance(size[a], int) for size in (self.sizes, self.weights) for a in self.axes)
        return known and max(self.strides.values()) > 1 and set(self.dilation.values()) == {1}

    @property
    def has_one_place(self) -> bool:
        """Returns whether the data is one vector of channels, which each tap multiplies once."""
        return all(self.sizes[a] == 1 for a in self.axes) and set(self.dilation.values()) == {1}

    @property
    def most_taps(self) -> dict[str, int]:
        """The taps of the phase that has most."""
        return {a: -(-self.weights[a] // self.strides[a]) for a in self.axes}

    @property
    def wastes(self) -> bool:
        """Returns whether phases padded to equally many taps waste products, and are few enough to separate."""
        lengthened = prod(self.most_taps[a] * self.strides[a] for a in self.axes)
        return prod(self.strides.values()) <= MOST_PHASES and lengthened >= WORTHWHILE * prod(
            self.weights[a] for a in self.axes
        )

    @property
    def turns(self) -> dict[str, int]:
        """The number of result elements of a phase along each axis."""
        return {a: -(-self.result[a] // self.strides[a]) for a in self.axes}

    @property
    def _moved(self) -> dict[str, int]:
        """The element of the data that the padded data begins with."""
        return {a: self.cut[a] // self.strides[a] - self.most_taps[a] + 1 for a in self.axes}

    def _padded(self) -> Tensor:
        """Returns the data with zeros around, as far as any phase reaches."""
        margin = {
            a: self.turns[a] + (self.strides[a] - 1 + self.cut[a]) // self.strides[a] - self._moved[a]
            for a in self.axes
        }

        def element(*i: Any) -> Any:
            at = self.data_layout.logical_indices(i)
            at = {**at, **{a: at[a] + self._moved[a] for a in self.axes}}
            inside = te.all(*(bound for a in self.axes for bound in (at[a] >= 0, at[a] < self.sizes[a])))
            return te.if_then_else(inside, self.x(*self.data_layout.indices(at)), te.const(0, self.x.dtype))

        return te.compute(self.data_layout.physical({**self.sizes, **margin}), element, name="data_pad")

    def _places(self, at: dict[str, Any], r: dict[str, Any], reduced: dict[str, Any]) -> dict[str, Any]:
        """Returns the data elements that the taps `reduced` of phase r multiply for the phase's element `at`.

        Element q of phase r reads, for tap t, data element q + (r + cut) // strides - t.
        """
        return {
            a: at[a] + (te.floordiv(r[a] + self.cut[a], self.strides[a]) - self._moved[a]) - reduced[a]
            for a in self.axes
        }

    def together(self) -> Tensor:
        """Computes all phases as one convolution by kernels padded to equally many taps, then interleaves."""
        count, rank = self.most_taps, self.rank
        data, w, layout = self._padded(), self.w, self.kernel_layout
        steps = tuple(self.strides.values())

        def taps(*i: Any) -> Any:
            r, at = dict(zip(self.axes, i[:rank], strict=True)), layout.logical_indices(i[rank:])
            at = {**at, **{a: te.floormod(r[a] + self.cut[a], s) + at[a] * s for a, s in self.strides.items()}}
            if all(self.weights[a] % s == 0 for a, s in self.strides.items()):
                return w(*layout.indices(at))
            inside = te.all(*(at[a] < self.weights[a] for a in self.axes))
            return te.if_then_else(inside, w(*layout.indices(at)), te.const(0, w.dtype))

        def phase(*i: Any) -> Any:
            r, at = dict(zip(self.axes, i[:rank], strict=True)), self.out_layout.logical_indices(i[rank:])
            reduced = self._taps(count)
            places = self._places(at, r, reduced)
            return self._sum(data, lambda *k: kernel(*i[:rank], *k), at, places, dict(reduced), reduced)

        def joined(*i: Any) -> Any:
            at = self.out_layout.logical_indices(i)
            turn = {a: te.floordiv(at[a], s) for a, s in self.strides.items()}
            r = [te.floormod(at[a], s) for a, s in self.strides.items()]
            return phases(*r, *self.out_layout.indices({**at, **turn}))

        kernel = te.compute((*steps, *layout.physical({**self.weights, **count})), taps, name="kernel_phases")
        turns = self.out_layout.physical({**self.result, **self.turns})
        phases = te.compute((*steps, *turns), phase, name=f"{self.name}_phases")
        return te.compute(self.shape, joined, name=self.name)

    def apart(self) -> Tensor:
        """Computes each phase as a convolution by its own taps, then interleaves them."""
        data = self._padded()
        turns = self.out_layout.physical({**self.result, **self.turns})

        def phase(r: dict[str, int]) -> Tensor | None:
            first = {a: (r[a] + self.cut[a]) % s for a, s in self.strides.items()}
            count = {a: len(range(first[a], self.weights[a], s)) for a, s in self.strides.items()}
            if not all(count.values()):
                return None

            def body(*i: Any) -> Any:
                at, reduced = self.out_layout.logical_indices(i), self._taps(count)
                taps = {a: first[a] + reduced[a] * s for a, s in self.strides.items()}
                fixed = {a: te.const(r[a], "int32") for a in self.axes}
                return self._sum(data, self.w, at, self._places(at, fixed, reduced), taps, reduced)

            return te.compute(turns, body, name=f"{self.name}_phase_{'_'.join(map(str, r.values()))}")

        numbers = [dict(zip(self.axes, r, strict=True)) for r in product(*map(range, self.strides.values()))]
        phases = [(r, phase(r)) for r in numbers]

        def joined(*i: Any) -> Any:
            at = self.out_layout.logical_indices(i)
            turn = {a: te.floordiv(at[a], s) for a, s in self.strides.items()}
            value: Any = None
            for r, part in phases:
                element = te.const(0, self.dtype) if part is None else part(*self.out_layout.indices({**at, **turn}))
                here = te.all(*(te.floormod(at[a], s).equal(r[a]) for a, s in self.strides.items() if s > 1))
                value = element if value is None else te.if_then_else(here, element, value)
            return value

        return te.compute(self.shape, joined, name=self.name)

    def over_zeros(self) -> Tensor:
        """Returns a convolution of the data with its elements `strides` apart and zeros between and around."""
        reach = {a: (self.weights[a] - 1) * self.dilation[a] for a in self.axes}
        spread = {**self.sizes, **{a: self.result[a] + reach[a] for a in self.axes}}

        def element(*i: Any) -> Any:
            at = self.data_layout.logical_indices(i)
            inside: list[Any] = []
            for a in self.axes:
                reached = at[a] + (self.cut[a] - reach[a])
                place = te.floordiv(reached, self.strides[a])
                inside += [place >= 0, place < self.sizes[a]]
                if self.strides[a] != 1:
                    inside.append(te.floormod(reached, self.strides[a]) == 0)
                at = {**at, a: place}
            return te.if_then_else(te.all(*inside), self.x(*self.data_layout.indices(at)), te.const(0, self.x.dtype))

        data = te.compute(self.data_layout.physical(spread), element, name="data_dilate_pad")

        def body(*i: Any) -> Any:
            at, reduced = self.out_layout.logical_indices(i), self._taps(self.weights)
            places = {a: at[a] + (self.weights[a] - 1 - reduced[a]) * self.dilation[a] for a in self.axes}
            return self._sum(data, self.w, at, places, dict(reduced), reduced)

        return te.compute(self.shape, body, name=self.name)

    def without_zeros(self, sums: Tensor) -> Tensor:
        """Returns the sums with NaNs recomputed from the data's own elements: a zero may have met an infinity."""
        if not self.dtype.startswith(("float", "bfloat")):
            return sums

        def statements(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Any:
            (found, x, w), (stored,) = ins, outs
            ib = te.ir_builder.create()
            kind = "parallel" if is_large(self.shape) else "serial"
            with loops(ib, self.shape[:-1], first=kind) as outer:
                has_nan, total = (
                    ib.allocate(d, (1,), n, scope="local") for d, n in (("int32", "nan"), (self.dtype, "total"))
                )
                has_nan[0] = 0
                with ib.for_range(0, self.shape[-1], "k") as k:
                    value = found[(*outer, k)]
                    has_nan[0] = te.bitwise_or(has_nan[0], te.isnan(value).astype("int32"))
                    ib.emit(stored.vstore((*outer, k), value))
                with (
                    ib.if_scope(has_nan[0] > 0),
                    ib.for_range(0, self.shape[-1], "k") as k,
                    ib.if_scope(te.isnan(found[(*outer, k)])),
                ):
                    total[0] = te.const(0, self.dtype)
                    self._add(ib, total, x, w, self.out_layout.logical_indices((*outer, k)))
                    ib.emit(stored.vstore((*outer, k), total[0]))
            return ib.get()

        return te.extern(self.shape, [sums, self.x, self.w], statements, name=f"{self.name}_sums", dtype=self.dtype)

    def _add(self, ib: IRBuilder, total: Any, x: Buffer, w: Buffer, at: dict[str, Any]) -> None:
        """Adds the products of data and weights of a result element to `total`."""
        taps, places = {**self.weights}, {}
        inside: list[Any] = []
        with loops(ib, [self.weights[a] for a in self.axes], "d") as offsets:
            for a, offset in zip(self.axes, offsets, strict=True):
                taps[a] = offset
                reached = at[a] + self.cut[a] - offset * self.dilation[a]
                places[a] = te.floordiv(reached, self.strides[a])
                inside += [te.floormod(reached, self.strides[a]).equal(0), places[a] >= 0, places[a] < self.sizes[a]]
            with ib.if_scope(te.all(*inside)), ib.for_range(0, self.per_group, "dc") as rc:
                channel, filters = rc, at["C"]
                if self.groups != 1:
                    channel = te.floordiv(at["C"], self.weights["O"]) * self.per_group + rc
                    filters = te.floormod(at["C"], self.weights["O"])
                left = x[tuple(self.data_layout.indices({"N": at["N"], "C": channel, **places}))]
                right = w[tuple(self.kernel_layout.indices({**taps, "I": channel, "O": filters}))]
                total[0] = total[0] + left.astype(self.dtype) * right.astype(self.dtype)
