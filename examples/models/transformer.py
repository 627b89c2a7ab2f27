"""Transformer layers: BERT's encoder and GPT-2's block with a causal mask.

Devlin et al., 2018; Radford et al., 2019.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import sqrt

import numpy as np

from .builder import Function, Model, number, tensor
from .layers import dense, gelu, gelu_tanh, layer_norm

MASKED = -1e9
"""What takes the place of a score that must not count."""


@dataclass(frozen=True)
class Transformer(ABC):
    """A stack of layers over (batch, sequence, hidden)."""

    batch: int = 1
    sequence: int = 128
    hidden: int = 768
    heads: int = 12
    layers: int = 1

    def __post_init__(self) -> None:
        if self.hidden % self.heads:
            raise ValueError(f"{self.heads} heads do not divide a hidden size of {self.hidden}")

    def build(self, model: Model) -> None:
        """Adds `@main`: (batch, sequence, hidden) to the same."""
        shape = (self.batch, self.sequence, self.hidden)
        f = model.function("main", {"data": tensor(*shape)}, tensor(*shape))
        x = f.op("reshape", "%data", newshape=[-1, self.hidden])
        for layer in range(self.layers):
            x = self.layer(f, x, f"layer{layer}")
        f.result(f.op("reshape", x, newshape=shape))

    @abstractmethod
    def layer(self, f: Function, x: str, name: str) -> str:
        """Adds one layer over rows of `hidden`, a row a token."""

    def attend(self, f: Function, query: str, key: str, value: str, mask: str | None = None) -> str:
        """softmax(Q·Kᵀ / √d)·V by heads, of rows to rows. `mask` is true where a query may see a key."""
        q, k, v = (self._by_heads(f, x) for x in (query, key, value))
        scores = f.op("nn.batch_matmul", q, k, transpose_b=True)
        scores = f.op("divide", scores, number(sqrt(self.hidden // self.heads)))
        if mask is not None:
            scores = f.op("where", mask, scores, number(MASKED))
        x = f.op("nn.batch_matmul", f.op("nn.softmax", scores), v, transpose_b=False)
        x = f.op("reshape", x, newshape=[self.batch, self.heads, self.sequence, self.hidden // self.heads])
        return f.op("reshape", f.op("transpose", x, axes=[0, 2, 1, 3]), newshape=[-1, self.hidden])

    def _by_heads(self, f: Function, x: str) -> str:
        size = self.hidden // self.heads
        x = f.op("reshape", x, newshape=[self.batch, self.sequence, self.heads, size])
        x = f.op("transpose", x, axes=[0, 2, 1, 3])
        return f.op("reshape", x, newshape=[-1, self.sequence, size])


@dataclass(frozen=True)
class BertEncoder(Transformer):
    """BERT: attention and feed-forward, each added to its input and normalized."""

    def layer(self, f: Function, x: str, name: str) -> str:
        hidden = self.hidden
        query, key, value = (
            dense(f, x, f"{name}_attention_{part}", hidden, hidden) for part in ("query", "key", "value")
        )
        y = dense(f, self.attend(f, query, key, value), f"{name}_attention_output", hidden, hidden)
        x = layer_norm(f, f.op("add", y, x), f"{name}_attention_norm", hidden, epsilon=1e-12)
        y = gelu(f, dense(f, x, f"{name}_intermediate", hidden, 4 * hidden, gain=2.0))
        y = dense(f, y, f"{name}_output", 4 * hidden, hidden)
        return layer_norm(f, f.op("add", y, x), f"{name}_output_norm", hidden, epsilon=1e-12)


@dataclass(frozen=True)
class GptBlock(Transformer):
    """GPT-2: each part takes its input normalized; a token sees those before it."""

    def layer(self, f: Function, x: str, name: str) -> str:
        hidden = self.hidden
        y = dense(f, layer_norm(f, x, f"{name}_ln_1", hidden), f"{name}_attn_c_attn", hidden, 3 * hidden)
        parts = f.op("split", y, indices_or_sections=3, axis=1)
        mask = f.model.constant(f"{name}_attn_bias", np.tri(self.sequence, dtype=np.bool_))
        query, key, value = (f.let(f"{parts}.{part}") for part in range(3))
        y = self.attend(f, query, key, value, mask)
        x = f.op("add", x, dense(f, y, f"{name}_attn_c_proj", hidden, hidden))
        y = dense(f, layer_norm(f, x, f"{name}_ln_2", hidden), f"{name}_mlp_c_fc", hidden, 4 * hidden, gain=2.0)
        return f.op("add", x, dense(f, gelu_tanh(f, y), f"{name}_mlp_c_proj", 4 * hidden, hidden))
