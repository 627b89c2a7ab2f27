"""`mirstack.quantize`: calibrates a graph on sample inputs, and computes its layers on bytes.

result = mirstack.quantize("model.mir", {"x": images}, labels=labels, max_drop=0.005)
result.module, result.drop, result.layers[0].error
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, get_args

from ..support.arguments import check, integer
from ..support.deep_stack import in_deep_stack
from ..support.diagnostics import MirError, error_at
from ..support.stages import steps
from ..support.stopwatch import timed
from ..support.text import counted, did_you_mean
from ..support.xdsl_patches import apply

apply()

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from xdsl.dialects.builtin import ModuleOp

    from ..lowering.driver.loading.executable import Executable, Param
    from ..passes.relay.quantize.calibration import Affine8, Method
    from ..passes.relay.quantize.quantized_layers import Graph
    from .ir.module import IRModule

    Array = NDArray[Any]

Weights = Literal["int8", "int4"]
WIDTHS = {"int8": 8, "int4": 4}
Metric = Literal["accuracy", "agreement", "error"]
METRICS: tuple[Metric, ...] = get_args(Metric)
MOST_SAMPLES = 64
"""Samples by which layers are compared; the drop is measured on all of them."""
MOST_TRIES = 8
"""Programs that are compiled at most until one meets the drop: the simulation is nearly exact, and the first one mostly does."""


@dataclass(frozen=True)
class LayerError:
    """The error that quantizing one layer alone adds."""

    operator: str
    place: str
    """The layer's place in its source: `file:line:column`, or the node, `model.onnx: node 'Conv_12'`."""
    error: float
    """The norm of the change of the graph's results, as a part of their norm."""
    kept: bool
    """Whether the layer stays in floats."""


@dataclass(frozen=True)
class Quantized:
    """A quantized graph and what quantizing it cost."""

    module: ModuleOp
    layers: tuple[LayerError, ...]
    """Every layer, worst first."""
    metric: Metric
    drop: float
    """By how much the metric fell for the samples; of `error`, the relative error itself."""
    error: float
    """The norm of the change of the results, as a part of their norm."""
    samples: int


def quantize(
    source: str | PathLike[str] | ModuleOp | IRModule,
    data: Mapping[str, Any] | None = None,
    *,
    labels: Any = None,
    max_drop: float | None = None,
    metric: Metric | None = None,
    calibrate: Method = "minmax",
    weights: Weights | None = None,
    group: int = 32,
    entry: str | None = None,
) -> Quantized:
    """Quantizes the convolutions and dense layers of a graph, calibrated on sample inputs.

    `data` holds an array of samples for each parameter, along a leading axis. Layers are computed on bytes; with `weights`, "int8" or
    "int4", only weights of dense layers are stored in so many bits, with a scale for each `group` of numbers, and `data` may be left
    out. `calibrate` chooses how ranges follow from samples: "minmax", "percentile", "entropy" or "mse".

    With `max_drop` the fewest layers stay in floats for which the drop is at most that. The drop is measured by `metric`: of "accuracy"
    (by default where there are `labels`) how much smaller the part of rightly classified samples is, of "agreement" (by default for
    results (N, classes)) the part of samples whose largest class differs from that of the float graph, of "error" the norm of the change
    of all results as a part of their norm. The source is not changed. Raises MirError where the data do not fit, or no layer can be
    quantized.
    """
    from ..passes.relay.quantize.calibration import METHODS

    if calibrate not in METHODS:
        raise ValueError(
            f"there is no calibration '{calibrate}'{did_you_mean(calibrate, METHODS)}: {', '.join(METHODS)}"
        )
    if weights is not None and weights not in WIDTHS:
        raise ValueError(f"weights are int8 or int4, not '{weights}'")
    if metric is not None and metric not in METRICS:
        raise ValueError(f"there is no metric '{metric}'{did_you_mean(metric, METRICS)}: {', '.join(METRICS)}")
    if max_drop is not None and not max_drop >= 0:
        raise ValueError(f"max_drop is a part, such as 0.005, not {max_drop}")
    if data is not None:
        check(data, "data", "a dictionary of arrays by the names of parameters", Mapping)
    group = integer(group, "group", 1)
    if data is None and (weights is None or max_drop is not None or labels is not None):
        raise MirError(error_at(None, "there are no samples to calibrate on", "give data={'x': array}").diagnostics)
    return in_deep_stack(lambda: _quantize(source, data, labels, max_drop, metric, calibrate, weights, group, entry))


def _quantize(
    source: str | PathLike[str] | ModuleOp | IRModule,
    data: Mapping[str, Any] | None,
    labels: Any,
    max_drop: float | None,
    metric: Metric | None,
    calibrate: Method,
    weights: Weights | None,
    group: int,
    entry: str | None,
) -> Quantized:
    from xdsl.context import Context

    from ..lowering.driver.entry import find_entry, name_of
    from ..passes.relay.algebra.fold_constant import FoldConstant
    from ..passes.relay.functional.infer_type import ensure_types
    from ..passes.relay.quantize.quantize_weights import check_group
    from ..passes.relay.quantize.quantized_layers import Graph, prepare
    from .compile import _copied, load  # pyright: ignore[reportPrivateUsage]

    bits = 0 if weights is None else WIDTHS[weights]
    if bits:
        check_group(bits, group)
    module = load(source) if isinstance(source, str | PathLike) else _copied(source)
    function = find_entry(module, entry)
    if function.name != "relay.func":
        raise error_at(function, f"'{name_of(function)}' is not a function of Relay", "only graphs are quantized")
    if bits:
        # Weights may be computed from constants.
        ensure_types(module)
        FoldConstant().apply(Context(), module)
    else:
        prepare(module)
    graph = Graph(module, name_of(function), bits, group)
    if not graph.layers:
        what = "dense layer" if bits else "convolution or dense layer"
        raise error_at(
            function, f"no layer of '{graph.entry}' can be quantized: it has no {what} with a constant weight"
        )
    if data is None:
        module = graph.quantized((), range(len(graph.layers)))
        layers = tuple(_row(graph, k, 0.0, kept=False) for k in range(len(graph.layers)))
        return Quantized(module, layers, metric or "error", 0.0, 0.0, 0)
    return _Search(graph, data, labels, metric, calibrate).run(max_drop)


def _row(graph: Graph, number: int, error: float, *, kept: bool) -> LayerError:
    layer = graph.layers[number]
    return LayerError(layer.op.OPERATOR.name, layer.place, error, kept)


class _Search:
    """Calibrates a graph, and chooses the layers that stay in floats."""

    def __init__(
        self, graph: Graph, data: Mapping[str, Any], labels: Any, metric: Metric | None, calibrate: Method
    ) -> None:
        import numpy as np

        self.graph = graph
        exact = _compiled(graph.module.clone(), graph.entry)
        self.samples = _samples(exact.params, data)
        self.labels = None if labels is None else np.asarray(labels).reshape(-1)
        self.exact = [_results(exact, sample) for sample in steps("samples", self.samples)]
        self.metric: Metric = metric or self._metric()
        if self.labels is not None and len(self.labels) != sum(len(_classes(each)) for each in self.exact):
            raise error_at(
                None, f"there are {counted(len(self.labels), 'label')} for {counted(len(self.samples), 'sample')}"
            )
        if self.metric == "accuracy" and self.labels is None:
            raise error_at(
                None,
                "accuracy is measured by labels, and there are none",
                "the metrics without are agreement and error",
            )
        if graph.bits:
            self.affine: list[Affine8] = []
        else:
            with timed("calibrate"):
                self.affine = _calibrate(graph, self.samples, calibrate)
        self._simulated = _compiled(graph.simulated(self.affine), graph.entry)

    def _metric(self) -> Metric:
        if self.labels is not None:
            return "accuracy"
        first = self.exact[0][0]
        return "agreement" if first.ndim == 2 and first.shape[1] > 1 else "error"

    def run(self, max_drop: float | None) -> Quantized:
        """Returns the graph with as many layers quantized as `max_drop` allows."""
        count = len(self.graph.layers)
        few = range(0, len(self.samples), -(-len(self.samples) // MOST_SAMPLES))
        exact, chosen = [self.exact[k] for k in few], [self.samples[k] for k in few]
        with timed("measure layers"):
            errors = [_difference(exact, self._simulate({k}, chosen)) for k in steps("layers", range(count))]
        order = sorted(range(count), key=lambda k: -errors[k])
        with timed("choose layers"):
            kept = self._fewest(order, max_drop)
        tries = 0
        while True:
            module = self.graph.quantized(self.affine, [k for k in range(count) if k not in kept])
            found = _compiled(module.clone(), self.graph.entry)
            results = [_results(found, sample) for sample in self.samples]
            drop, tries = self._drop(results), tries + 1
            if max_drop is None or drop <= max_drop or len(kept) == count:
                break
            # What is simulated in floats rounds a little otherwise than integers do.
            left = [k for k in order if k not in kept]
            kept |= set(left if tries >= MOST_TRIES else left[:1])
        layers = tuple(_row(self.graph, k, errors[k], kept=k in kept) for k in order)
        return Quantized(module, layers, self.metric, drop, _difference(self.exact, results), len(self.samples))

    def _fewest(self, order: Sequence[int], max_drop: float | None) -> set[int]:
        """Returns the layers to keep in floats: the worst ones, without those that need not stay."""
        if max_drop is None:
            return set()
        everything = set(order)

        def meets(kept: Collection[int]) -> bool:
            return self._drop(self._simulate(everything - set(kept), self.samples)) <= max_drop

        low, high = 0, len(order)
        while low < high:
            middle = (low + high) // 2
            if meets(order[:middle]):
                high = middle
            else:
                low = middle + 1
        kept = list(order[:high])
        for layer in reversed(order[: max(high - 1, 0)]):
            without = [k for k in kept if k != layer]
            if meets(without):
                kept = without
        return set(kept)

    def _simulate(self, layers: Collection[int], samples: Sequence[Sequence[Array]]) -> list[list[Array]]:
        """Returns the results with these layers quantized, computed in floats."""
        import numpy as np

        from ..passes.relay.quantize.quantized_layers import UNSIGNED_CODE

        switches = np.zeros(len(self.graph.points) + len(self.graph.layers), np.int32)
        switches[self.graph.points_of(layers)] = UNSIGNED_CODE
        switches[[len(self.graph.points) + k for k in layers]] = 1
        return [_results(self._simulated, [*sample, switches]) for sample in samples]

    def _drop(self, results: Sequence[Sequence[Array]]) -> float:
        import numpy as np

        if self.metric == "error":
            return _difference(self.exact, results)
        exact, found = (np.concatenate([_classes(r) for r in each]) for each in (self.exact, results))
        if self.metric == "agreement" or self.labels is None:
            return float((exact != found).mean())
        return float((exact == self.labels).mean() - (found == self.labels).mean())


def _difference(exact: Sequence[Sequence[Array]], results: Sequence[Sequence[Array]]) -> float:
    """Returns the norm of the difference from the float graph's results, as a part of their norm."""
    import numpy as np

    apart = total = 0.0
    for wanted, found in zip(exact, results, strict=True):
        for a, b in zip(wanted, found, strict=True):
            a64 = a.astype(np.float64)
            apart += float(((a64 - b) ** 2).sum())
            total += float((a64**2).sum())
    return (apart / total) ** 0.5 if total else float(apart > 0)


def _classes(results: Sequence[Array]) -> Array:
    """Returns the largest class of each row of the first result."""
    first = results[0]
    return first.reshape(-1, first.shape[-1] if first.ndim else 1).argmax(1)


def _compiled(module: ModuleOp, entry: str) -> Executable:
    from .compile import compile

    return compile(module, entry=entry, cache=False)


def _results(program: Executable, sample: Sequence[Array]) -> list[Array]:
    import numpy as np

    from ..lowering.driver.loading.executable import flatten

    return [np.asarray(each) for each in flatten(program(*sample))]


def _calibrate(graph: Graph, samples: Sequence[Sequence[Array]], method: Method) -> list[Affine8]:
    """Returns the scale and zero point of each point."""
    from ..passes.relay.quantize.calibration import Calibration

    observed = _compiled(graph.observed(), graph.entry)
    found = [Calibration(method) for _ in graph.points]

    def each(use: Callable[[Calibration, Array], None]) -> None:
        for sample in steps("samples", samples):
            values = _results(observed, sample)
            for calibration, value in zip(found, values[len(values) - len(found) :], strict=True):
                use(calibration, value)

    each(Calibration.add)
    if method != "minmax":
        each(lambda calibration, value: calibration.count(value) if calibration.needs_counts else None)
    affine = [calibration.finish() for calibration in found]
    kept = graph.kept_ranges()
    for point in range(len(affine)):
        source = point
        while source in kept:
            source = kept[source]
        affine[point] = affine[source]
    return affine


def _samples(params: Sequence[Param], data: Mapping[str, Any]) -> list[list[Array]]:
    """Returns the arguments of each run. Raises MirError where the samples do not fit the parameters."""
    import numpy as np

    names = [param.name for param in params]
    for name in data:
        if name not in names:
            raise error_at(
                None, f"there is no parameter '{name}'{did_you_mean(name, names)}", f"there are {', '.join(names)}"
            )
    missing = [name for name in names if name not in data]
    if missing:
        raise error_at(
            None, f"there are no samples for parameter '{missing[0]}'", f"the data are for {', '.join(data) or 'none'}"
        )
    runs = {param.name: list(_runs(param, np.asarray(data[param.name]))) for param in params}
    counts = {name: len(each) for name, each in runs.items()}
    if len(set(counts.values())) > 1:
        shown = ", ".join(f"{count} for '{name}'" for name, count in counts.items())
        raise error_at(None, f"parameters have different numbers of samples: {shown}")
    if not names or not all(counts.values()):
        raise error_at(None, "the data have no samples")
    return [list(sample) for sample in zip(*(runs[name] for name in names), strict=True)]


def _runs(param: Param, array: Array) -> Iterator[Array]:
    """Yields a parameter's values: slices along its leading axis, or along one before its own."""
    import numpy as np

    shape = param.shape
    fits = [
        array.ndim == len(shape) + 1 and _fits(array.shape[1:], shape),
        array.ndim == len(shape) and bool(shape) and _fits(array.shape[1:], shape[1:]),
    ]
    step = shape[0] if fits[1] and isinstance(shape[0], int) else 1
    if not any(fits) or (not fits[0] and array.shape[0] % max(step, 1)):
        wanted = ", ".join(["samples", *map(str, shape)])
        raise error_at(None, f"the samples of '{param.name}' are of shape {list(array.shape)}, not ({wanted})")
    typed = _typed(param, array)
    if fits[0]:
        yield from (np.ascontiguousarray(each) for each in typed)
    else:
        yield from (np.ascontiguousarray(typed[k : k + step]) for k in range(0, len(typed), max(step, 1)))


def _typed(param: Param, array: Array) -> Array:
    """Returns the samples of a parameter in its dtype.

    Raises MirError where they are not finite, of another kind of dtype, or integers that it does not represent.
    """
    import numpy as np

    from ..dialects.array import numpy_dtype

    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise error_at(None, f"the samples of '{param.name}' hold numbers that are not finite")
    dtype = numpy_dtype(param.dtype)
    # bfloat16 is of numpy's kind V.
    is_number = array.dtype.kind in "biufV"
    if not is_number or (dtype.kind in "biu" and not np.can_cast(array.dtype, dtype, "same_kind")):
        raise error_at(
            None,
            f"the samples of '{param.name}' are of dtype {array.dtype}, not {param.dtype}",
            f"convert them: samples.astype('{param.dtype}')",
        )
    typed = array.astype(dtype, copy=False)
    if array.dtype.kind in "iu" and dtype.kind in "iu" and (typed != array).any():
        raise error_at(None, f"the samples of '{param.name}' hold numbers that {param.dtype} does not represent")
    return typed


def _fits(given: Sequence[int], wanted: Sequence[int | str]) -> bool:
    pairs = zip(given, wanted, strict=False)
    return len(given) == len(wanted) and all(isinstance(w, str) or g == w for g, w in pairs)


__all__ = ["LayerError", "Quantized", "quantize"]
