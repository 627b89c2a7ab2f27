"""Random types and attributes for what a pattern leaves open; most make operators fit together."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute

from .....dialects.relay.operator import REQUIRED, AttrSpec
from .....dialects.relay.operators.common.relations import tensor_type
from .....dialects.tir.types import dtype_to_type

DTYPES = ("float32", "int32", "float16", "float32", "int8", "float64", "bfloat16", "uint8", "float32", "int64", "bool")
_LAYOUTS = {
    1: ("NCW", "NWC", "OIW"), 2: ("NCHW", "NHWC", "OIHW", "HWIO", "NCHW2c"),
    3: ("NCDHW", "NDHWC", "OIDHW", "NCHW2c"),
}  # fmt: skip


class Choices:
    """The random choices of one instance. `hints` are literals of the rule, which are likely to matter."""

    def __init__(self, seed: int, hints: Sequence[Any]):
        self.random = random.Random(seed)
        self.hints = hints
        dtypes = [hint for hint in hints if isinstance(hint, str) and hint in DTYPES]
        # By rotation, so that few programs cover all dtypes.
        self.dtype = self.random.choice(dtypes) if dtypes and self.chance(0.6) else DTYPES[seed % len(DTYPES)]
        self.alike = self.chance(0.3)
        """Whether all that may is of one type."""
        rank = self.random.choice((0, 1, 2, 2, 3, 4, 4, 5))
        self.shape = tuple(self.random.choice((1, 2, 3, 4, 4, 6)) for _ in range(rank))
        self.rank = rank
        """Of the argument whose op gets attributes next."""

    def chance(self, probability: float) -> bool:
        """True that often."""
        return self.random.random() < probability

    def type(self) -> TensorType[Attribute] | None:
        """A tensor type that goes well with the others; None to let an operator's type relation say."""
        kind = self.random.random()
        if self.alike:
            return tensor_type(self.shape, dtype_to_type(self.dtype))
        if kind < 0.3:
            return None
        shape = self.shape
        if kind < 0.6:
            pass
        elif kind < 0.8:
            shape = tuple(1 if self.chance(0.4) else dim for dim in shape)[self.random.randint(0, len(shape)) :]
        elif kind < 0.9:
            shape = ()
        else:
            shape = tuple(self.random.choice((1, 2, 3, 4)) for _ in range(self.random.randint(1, 4)))
        dtype = self.dtype if self.chance(0.9) else self.random.choice(DTYPES)
        return tensor_type(shape, dtype_to_type(dtype))

    def attribute(self, spec: AttrSpec, captured: bool) -> Any:
        """A value of an attribute, often its default; one that the rule looks at varies more."""
        if spec.default is not REQUIRED and self.chance(0.35 if captured else 0.85):
            return spec.default
        if spec.nullable and self.chance(0.2):
            return None
        value = self._attribute(spec)
        return value

    def _attribute(self, spec: AttrSpec) -> Any:
        hints = [hint for hint in self.hints if spec.accepts(spec.convert(hint)) and hint is not None]
        if hints and self.chance(0.4):
            return self.random.choice(hints)
        name, rank = spec.name, max(self.rank, 1)
        choose = self.random.choice
        match spec.kind:
            case "bool":
                return self.chance(0.5)
            case "int":
                return choose((0, 1, -1, 1, 2, 3, self.random.randint(-rank, rank - 1)))
            case "float":
                return choose((0.0, 1.0, 0.5, 1e-5, 2.0, -128.0, 127.0, 255.0, -1e30, 1e30))
            case "str":
                return self._text(spec)
            case "floats":
                return tuple(choose((0.0, 1.0, 0.5)) for _ in range(rank))
            case "ints":
                return self._integers(name, rank)
            case _:
                return choose((0, 1, 2, self._integers(name, rank)))

    def _text(self, spec: AttrSpec) -> str:
        if "dtype" in spec.name:
            return self.dtype if self.chance(0.6) else self.random.choice(DTYPES)
        if "layout" in spec.name:
            return self.random.choice(_LAYOUTS.get(self.rank - 2, _LAYOUTS[2]))
        return spec.default if isinstance(spec.default, str) else ""

    def _integers(self, name: str, rank: int) -> tuple[Any, ...]:
        choose = self.random.choice
        if name == "axes":
            order = list(range(rank))
            self.random.shuffle(order)
            return tuple(axis - rank if self.chance(0.2) else axis for axis in order)
        if name in ("newshape", "shape"):
            size = math.prod(self.shape)
            forms = [self.shape, (-1,), (size,), (1, *self.shape), self.shape[::-1], (*self.shape[:-1], 1, -1)]
            # Of a reshape 0 keeps a dimension of the argument, whatever that is.
            return choose([*forms, (0, -1), (0, 0, -1)] if name == "newshape" else forms)
        if name in ("pad_width", "paddings", "crops"):
            return tuple((0, 0) if self.chance(0.5) else (choose((0, 1)), choose((0, 1, 2))) for _ in range(rank))
        if name == "axis":
            axes = self.random.sample(range(rank), self.random.randint(1, rank))
            return tuple(axis - rank if self.chance(0.3) else axis for axis in axes)
        if name == "padding":
            count = choose((1, max(rank - 2, 1), 2 * max(rank - 2, 1)))
            return tuple(choose((0, 0, 1, 2)) for _ in range(count))
        if name in ("kernel_size", "pool_size", "strides", "dilation", "block_shape"):
            return tuple(choose((1, 1, 2, 3)) for _ in range(max(rank - 2, 1)))
        return tuple(choose((0, 1, 1, 2, -1)) for _ in range(choose((1, 2, rank))))
