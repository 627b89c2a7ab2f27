"""`relay.quantize`: TVM's door to `mirstack.quantize` (docs/quantize.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextvars import ContextVar, Token
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from ....support.arguments import check, items
from ....support.diagnostics import Diagnostic, MirValueError
from ....support.public_names import public_names
from ....support.text import did_you_mean
from ...ir.module import IRModule
from ...nd import as_numpy
from ..build_module import bind_params_by_name


@dataclass
class QConfig:
    """TVM's settings of quantization; layers are computed on bytes by the range of each tensor.

    `calibrate_mode` chooses the range: "kl_divergence" by entropy, "percentile", any other by the extremes of the samples. Settings of
    widths, fixed scales and skipped layers do not apply: `mirstack.quantize(…, max_drop=…)` chooses the layers that stay in floats.
    """

    nbit_input: int = 8
    nbit_weight: int = 8
    nbit_activation: int = 32
    dtype_input: str = "int8"
    dtype_weight: str = "int8"
    dtype_activation: str = "int32"
    calibrate_mode: str = "global_scale"
    global_scale: float = 8.0
    weight_scale: str = "power2"
    skip_dense_layer: bool = True
    skip_conv_layers: list[int] | None = field(default_factory=lambda: [0])
    do_simulation: bool = False
    round_for_shift: bool = True
    debug_enabled_ops: list[str] | None = None
    rounding: str = "UPWARD"
    calibrate_chunk_by: int = -1
    partition_conversions: str = "disabled"
    _tokens: list[Token[QConfig | None]] = field(default_factory=list, init=False, repr=False)

    def __enter__(self) -> QConfig:
        self._tokens.append(_CURRENT.set(self))
        return self

    def __exit__(self, *_: object) -> None:
        _CURRENT.reset(self._tokens.pop())


_CURRENT: ContextVar[QConfig | None] = ContextVar("qconfig", default=None)
_METHODS = {"kl_divergence": "entropy", "percentile": "percentile"}


def current_qconfig() -> QConfig:
    """Returns the settings of the innermost `with qconfig(…)`, or the defaults."""
    return _CURRENT.get() or QConfig()


def qconfig(**kwargs: Any) -> QConfig:
    """Returns settings, which hold inside `with qconfig(calibrate_mode="kl_divergence"):`."""
    names = [each.name for each in fields(QConfig) if each.init]
    for name in kwargs:
        if name not in names:
            raise MirValueError(Diagnostic(f"qconfig has no setting '{name}'{did_you_mean(name, names)}"))
    return QConfig(**kwargs)


def quantize(
    mod: IRModule, params: Mapping[str, Any] | None = None, dataset: Iterable[Mapping[str, Any]] | None = None
) -> IRModule:
    """Quantizes convolutions and dense layers of `main`, calibrated on samples.

    `params` are weights by name, which become constants; `dataset` holds a dictionary of inputs by name for each sample. Raises
    MirError without samples, and where no layer can be quantized.
    """
    from ...quantize import quantize as quantize_on_bytes

    check(mod, "mod", "an IRModule", IRModule)
    if params:
        bound = IRModule.of_op(mod.copy_op(), mod)
        bound["main"] = bind_params_by_name(mod.relay_function("main"), params)
        mod = bound
    samples = items(dataset, "dataset", "dictionaries of inputs by name", Mapping)
    if not samples:
        note = "give quantize(mod, params, dataset=[{'x': array}, …]), or write `mir-quantize model.mir --input x=…`"
        raise MirValueError(Diagnostic("ranges follow from samples, and there is no dataset").with_note(note))
    data = {name: np.stack([as_numpy(sample[name]) for sample in samples]) for name in samples[0]}
    method: Any = _METHODS.get(current_qconfig().calibrate_mode, "minmax")
    return IRModule.of_op(quantize_on_bytes(mod, data, calibrate=method, entry="main").module)


__all__ = ["QConfig", "current_qconfig", "qconfig", "quantize"]


__dir__ = public_names(__name__)
