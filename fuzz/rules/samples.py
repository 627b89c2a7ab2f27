"""Rules known to be right or wrong, one a line, on which `--check-rules` and its fuzzer are tested.

Each is the text after `rewrite @name`, with `fast` before it where it is marked. The wrong ones are grouped by their fault.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

WRONG: Mapping[str, Sequence[str]] = {
    "NaN": [
        "{ subtract(%x, %x) => zeros_like(%x) where is_float(%x) }",
        "{ divide(%x, %x) => ones_like(%x) where is_float(%x) }",
        "{ %r = multiply(%x, 0) => zeros(shape=%r.shape, dtype=%r.dtype) where is_float(%x) }",
        "{ logical_not(less(%x, %y)) => greater_equal(%x, %y) where is_float(%x) }",
        "{ logical_not(greater_equal(%x, %y)) => less(%x, %y) where is_float(%x) }",
        "{ equal(%x, %x) => ones(shape=%x.shape, dtype=\"bool\") where is_float(%x) }",
        "{ not_equal(%x, %x) => zeros(shape=%x.shape, dtype=\"bool\") where is_float(%x) }",
        "{ exp(log(%x)) => %x where is_float(%x) }",
        "{ where(less(%x, %y), %y, %x) => where(greater_equal(%x, %y), %x, %y) where is_float(%x) }",
        "{ isnan(add(%x, %y)) => logical_or(isnan(%x), isnan(%y)) where is_float(%x) }",
    ],
    "infinities": [
        "{ sqrt(multiply(%x, %x)) => abs(%x) where is_float(%x) }",
        "{ subtract(add(%x, %y), %y) => add(%x, zeros_like(%y)) where is_float(%x) }",
        "{ isfinite(multiply(%x, %y)) => logical_and(isfinite(%x), isfinite(%y)) where is_float(%x) }",
        "{ log(exp(%x)) => %x where is_float(%x) }",
        "{ isinf(%x) => equal(%x, divide(const(1, %x.dtype), const(0, %x.dtype))) where is_float(%x) }",
        "{ divide(1, divide(1, %x)) => %x where is_float(%x), %x.rank > 0 }",
        "{ tanh(%x) => divide(subtract(exp(%x), exp(negative(%x))), add(exp(%x), exp(negative(%x)))) where is_float(%x) }",
    ],
    "signed zeros": [
        "{ %r = add(%x, 0) => %x where is_float(%x), %r.type == %x.type }",
        "{ %r = subtract(%x, 0) => %x where is_float(%x), %r.type == %x.type }",
        "{ subtract(0, %x) => negative(%x) where is_float(%x), %x.rank > 0 }",
        "{ abs(%x) => maximum(%x, negative(%x)) where is_float(%x) }",
        "{ negative(subtract(%x, %y)) => subtract(%y, %x) where is_float(%x) }",
        "{ abs(%x) => where(less(%x, const(0, %x.dtype)), negative(%x), %x) where is_float(%x) }",
        "{ sign(negative(%x)) => sign(%x) where is_float(%x) }",
        "{ multiply(%x, sign(%x)) => abs(%x) where is_float(%x) }",
        "{ sum(negative(%x), axis=[0]) => negative(sum(%x, axis=[0])) where is_float(%x) }",
    ],
    "halves": [
        "{ round(%x) => floor(add(%x, const(0.5, %x.dtype))) where is_float(%x) }",
        "{ round(%x) => ceil(subtract(%x, const(0.5, %x.dtype))) where is_float(%x) }",
        "fast { round(%x) => floor(add(%x, const(0.5, %x.dtype))) where is_float(%x) }",
        "{ floor(%x) => round(subtract(%x, const(0.5, %x.dtype))) where is_float(%x) }",
        "fast { ceil(%x) => add(floor(%x), const(1, %x.dtype)) where is_float(%x) }",
        "{ trunc(%x) => floor(%x) where is_float(%x) }",
    ],
    "narrow types": [
        "{ cast(cast(%x, dtype=\"float16\"), dtype=\"float32\") => %x where %x.dtype == \"float32\" }",
        "{ cast(cast(%x, dtype=\"int32\"), dtype=\"float32\") => trunc(%x) where %x.dtype == \"float32\" }",
        "{ cast(cast(%x, dtype=\"float32\"), dtype=\"int32\") => %x where %x.dtype == \"int32\" }",
        "{ cast(cast(%x, dtype=\"int8\"), dtype=\"int32\") => %x where %x.dtype == \"int32\" }",
        "{ cast(cast(%x, dtype=\"float32\"), dtype=\"float64\") => %x where %x.dtype == \"float64\" }",
        "{ cast(cast(%x, dtype=\"uint8\"), dtype=\"int8\") => abs(%x) where %x.dtype == \"int8\" }",
        "{ cast(add(%x, %y), dtype=\"int64\") => add(cast(%x, dtype=\"int64\"), cast(%y, dtype=\"int64\")) where %x.dtype == \"int32\" }",
        "{ cast(cast(%x, dtype=\"float32\"), dtype=\"float16\") => cast(%x, dtype=\"float16\") where %x.dtype == \"float64\" }",
        "{ cast(cast(%x, dtype=\"bool\"), dtype=\"int32\") => %x where %x.dtype == \"int32\" }",
    ],
    "rounding": [
        "{ divide(%x, %y) => multiply(%x, divide(const(1, %y.dtype), %y)) where is_float(%x) }",
        "{ add(add(%x, %y), %z) => add(%x, add(%y, %z)) where is_float(%x) }",
        "{ multiply(add(%x, %y), %z) => add(multiply(%x, %z), multiply(%y, %z)) where is_float(%x) }",
        "{ multiply(multiply(%x, %y), %z) => multiply(%x, multiply(%y, %z)) where is_float(%x) }",
        "{ %r = multiply(%x, 7) => subtract(multiply(%x, const(8, %x.dtype)), %x) where is_float(%x), %r.type == %x.type }",
        "{ subtract(multiply(%x, %x), multiply(%y, %y)) => multiply(add(%x, %y), subtract(%x, %y)) where is_float(%x) }",
        "{ %r = nn.matmul(nn.matmul(%a, %b, transpose_a=False, transpose_b=False), %c, transpose_a=False, transpose_b=False) => nn.matmul(%a, nn.matmul(%b, %c)) where is_float(%a), %a.dtype == %b.dtype, %b.dtype == %c.dtype, %r.dtype == %a.dtype }",
        "{ log(multiply(%x, %y)) => add(log(%x), log(%y)) where is_float(%x) }",
        "{ divide(%x, sqrt(%y)) => sqrt(divide(multiply(%x, %x), %y)) where is_float(%x) }",
    ],
    "integers": [
        "{ %r = divide(multiply(%x, 2), 2) => %x where %x.dtype == \"int8\", %r.type == %x.type }",
        "{ abs(negative(%x)) => negative(abs(%x)) where %x.dtype == \"int32\" }",
        "{ less(%x, add(%x, 1)) => ones(shape=%x.shape, dtype=\"bool\") where %x.dtype == \"int32\", %x.rank > 0 }",
        "{ less(subtract(%x, %y), zeros_like(%x)) => less(%x, %y) where %x.dtype == \"int32\", %x.type == %y.type }",
        "{ floor_divide(%x, 2) => divide(%x, const(2, %x.dtype)) where %x.dtype == \"int32\", %x.rank > 0 }",
        "{ floor_mod(%x, 4) => mod(%x, const(4, %x.dtype)) where %x.dtype == \"int32\", %x.rank > 0 }",
        "{ right_shift(%x, 1) => divide(%x, const(2, %x.dtype)) where %x.dtype == \"int32\", %x.rank > 0 }",
        "{ right_shift(left_shift(%x, 3), 3) => %x where %x.dtype == \"int32\", %x.rank > 0 }",
        "{ maximum(%x, negative(%x)) => multiply(%x, sign(%x)) where %x.dtype == \"uint8\" }",
        "{ negative(floor_divide(%x, %y)) => floor_divide(negative(%x), %y) where %x.dtype == \"int32\" }",
        "fast { divide(multiply(%x, %y), %y) => %x where %x.dtype == \"int32\", %x.type == %y.type }",
    ],
    "meaning": [
        "{ subtract(%x, %y) => add(%x, %y) }",
        "fast { abs(negative(%x)) => negative(abs(%x)) where is_float(%x) }",
        "fast { sigmoid(%x) => tanh(%x) where is_float(%x) }",
        "fast { log(multiply(%x, %y)) => add(log(%x), log(%y)) where is_float(%x) }",
        "fast { power(%x, 2) => abs(%x) where is_float(%x), %x.rank > 0 }",
        "{ minimum(%x, %y) => maximum(%x, %y) where %x.type == %y.type }",
        "{ logical_and(%x, %y) => logical_or(%x, %y) where %x.type == %y.type }",
    ],
    "shapes": [
        "{ add(%x, 0) => %x where not is_float(%x) }",
        "{ maximum(%x, %y) => %x where %x.dtype == \"bool\" }",
        "{ transpose(transpose(%x)) => transpose(%x) where %x.rank == 2 }",
        "{ transpose(%x, axes=$a) => transpose(%x, axes=inverse(full_axes($a, %x.rank))) where %x.rank == 3, full_axes($a, 3) == [1, 2, 0] }",
        "{ sum(%x, axis=[0]) => sum(%x, axis=[1]) where %x.rank == 2, %x.shape[0] == %x.shape[1] }",
        "{ sum(%x, axis=[0], exclude=False) => mean(%x, axis=[0]) where is_float(%x) }",
        "{ reverse(reverse(%x, axis=0), axis=1) => reverse(%x, axis=0) where %x.rank == 2 }",
        "{ max(%x, axis=$a) => max(abs(%x), axis=$a) where is_float(%x) }",
        "{ concatenate((%x, %y)) => concatenate((%y, %x)) where %x.type == %y.type }",
        "{ reshape(reshape(%x, newshape=$a), newshape=$b) => reshape(%x, newshape=$b) }",
        "{ reshape(reverse(reshape(%x, newshape=$a), axis=0), newshape=$b) => reshape(reverse(%x, axis=0), newshape=$b) where %x.rank == 1 }",
    ],
}  # fmt: skip
"""Wrong rules by the class of their fault."""

RIGHT: Sequence[str] = [
    # All that floats can be, bit for bit.
    "{ %r = multiply(%x, 1) => %x where %r.type == %x.type }",
    "{ %r = divide(%x, 1) => %x where is_float(%x), %r.type == %x.type }",
    "{ negative(negative(%x)) => %x where is_float(%x) }",
    "{ abs(negative(%x)) => abs(%x) where is_float(%x) }",
    "{ abs(abs(%x)) => abs(%x) }",
    "{ subtract(%x, %y) => add(%x, negative(%y)) where is_float(%x) }",
    "{ add(%x, negative(%y)) => subtract(%x, %y) where is_float(%x) }",
    "{ add(%x, %x) => multiply(%x, const(2, %x.dtype)) where not is_constant(%x) }",
    "{ multiply(negative(%x), negative(%y)) => multiply(%x, %y) where is_float(%x) }",
    "{ multiply(negative(%x), %y) => negative(multiply(%x, %y)) where is_float(%x) }",
    "{ %r = divide(%x, 4) => multiply(%x, const(0.25, %x.dtype)) where is_float(%x), %r.type == %x.type }",
    "{ greater(%x, %y) => less(%y, %x) }",
    "{ greater_equal(%x, %y) => less_equal(%y, %x) }",
    "{ logical_not(equal(%x, %y)) => not_equal(%x, %y) }",
    "{ logical_not(not_equal(%x, %y)) => equal(%x, %y) }",
    "{ nn.relu(nn.relu(%x)) => nn.relu(%x) where is_float(%x) }",
    "{ floor(floor(%x)) => floor(%x) where is_float(%x) }",
    "{ ceil(%x) => negative(floor(negative(%x))) where is_float(%x) }",
    "{ floor(ceil(%x)) => ceil(%x) where is_float(%x) }",
    "{ round(floor(%x)) => floor(%x) where is_float(%x) }",
    "{ trunc(trunc(%x)) => trunc(%x) where is_float(%x) }",
    "{ isnan(negative(%x)) => isnan(%x) where is_float(%x) }",
    "{ isnan(%x) => not_equal(%x, %x) where is_float(%x) }",
    "{ isinf(abs(%x)) => isinf(%x) where is_float(%x) }",
    "{ multiply(%x, %x) => multiply(abs(%x), abs(%x)) where is_float(%x), not is_constant(%x) }",
    "{ cast(cast(%x, dtype=\"float64\"), dtype=\"float32\") => %x where %x.dtype == \"float32\" }",
    "{ cast(cast(%x, dtype=\"float32\"), dtype=\"float16\") => %x where %x.dtype == \"float16\" }",
    "{ cast(cast(%x, dtype=\"int64\"), dtype=\"int32\") => %x where %x.dtype == \"int32\" }",
    "{ cast(cast(%x, dtype=\"float64\"), dtype=\"int32\") => %x where %x.dtype == \"int32\" }",
    "{ cast(%x, dtype=$d) => %x where %x.dtype == $d }",
    "{ sqrt(abs(abs(%x))) => sqrt(abs(%x)) where is_float(%x) }",
    "{ copy(%x) => %x }",
    "{ where(%c, %x, %x) => %x where %c.shape == %x.shape }",
    "{ where(logical_not(%c), %x, %y) => where(%c, %y, %x) }",
    "{ exp(negative(negative(%x))) => exp(%x) where is_float(%x) }",
    "{ clip(clip(%x, a_min=0.0, a_max=6.0), a_min=0.0, a_max=6.0) => clip(%x, a_min=0.0, a_max=6.0) where is_float(%x) }",
    # Shapes and order.
    "{ transpose(exp(%x), **$rest) => exp(transpose(%x, **$rest)) where is_float(%x) }",
    "{ transpose(transpose(%x, axes=None), axes=None) => %x }",
    "{ reverse(reverse(%x, axis=0), axis=0) => %x }",
    "{ reverse(abs(%x), axis=0) => abs(reverse(%x, axis=0)) }",
    "{ squeeze(expand_dims(%x, axis=0, num_newaxis=1), axis=[0]) => %x }",
    "{ sum(%x, axis=[0]) => sum(transpose(%x), axis=[1]) where %x.rank == 2 }",
    "{ %r = multiply(%x, 3) => add(add(%x, %x), %x) where is_float(%x), %r.type == %x.type, not is_constant(%x) }",
    "{ %r = nn.dense(%x, %w) => nn.matmul(%x, transpose(%w)) where is_float(%x), %x.rank == 2, %x.dtype == %w.dtype, %r.dtype == %x.dtype }",
    "{ %r = reshape(reshape(%x, newshape=$a), newshape=$b) => reshape(%x, newshape=%r.shape) }",
    "{ concatenate((%x, %y), axis=0) => reverse(concatenate((reverse(%y, axis=0), reverse(%x, axis=0)), axis=0), axis=0) }",
    "{ nn.bias_add(%x, %b, axis=-1) => add(%x, %b) }",
    "{ max(%x, axis=[0], keepdims=False, exclude=False) => max(reverse(%x, axis=0), axis=[0]) where %x.rank > 0, not is_float(%x) }",
    # Integers.
    "{ add(%x, negative(%x)) => zeros_like(%x) where %x.dtype == \"int32\" }",
    "{ subtract(add(%x, %y), %y) => %x where %x.dtype == \"int32\", %x.type == %y.type }",
    "{ multiply(add(%x, %y), %z) => add(multiply(%x, %z), multiply(%y, %z)) where %x.dtype == \"int32\" }",
    "{ add(add(%x, %y), %z) => add(%x, add(%y, %z)) where %x.dtype == \"int8\" }",
    "{ %r = left_shift(%x, 1) => multiply(%x, const(2, %x.dtype)) where %x.dtype == \"int32\", %r.type == %x.type }",
    "{ %r = right_shift(%x, 1) => floor_divide(%x, const(2, %x.dtype)) where %x.dtype == \"int32\", %r.type == %x.type }",
    "{ bitwise_not(%x) => subtract(negative(%x), const(1, %x.dtype)) where %x.dtype == \"int32\" }",
    "{ %r = floor_mod(%x, 4) => bitwise_and(%x, const(3, %x.dtype)) where %x.dtype == \"int32\", %r.type == %x.type }",
    "{ subtract(%x, %x) => zeros_like(%x) where %x.dtype == \"int8\" }",
    "{ logical_not(less(%x, %y)) => greater_equal(%x, %y) where %x.dtype == \"int32\" }",
    "{ maximum(minimum(%x, %y), %x) => %x where %x.dtype == \"int32\", %x.type == %y.type }",
    "{ cast(add(%x, %y), dtype=\"int8\") => add(cast(%x, dtype=\"int8\"), cast(%y, dtype=\"int8\")) where %x.dtype == \"int32\" }",
    # True of real numbers, and marked so.
    "fast { exp(log(%x)) => %x where is_float(%x) }",
    "fast { sqrt(multiply(%x, %x)) => abs(%x) where is_float(%x) }",
    "fast { subtract(%x, %x) => zeros_like(%x) }",
    "fast { %r = add(%x, 0) => %x where %r.type == %x.type }",
    "fast { add(add(%x, %y), %z) => add(%x, add(%y, %z)) }",
    "fast { multiply(add(%x, %y), %z) => add(multiply(%x, %z), multiply(%y, %z)) }",
    "fast { divide(%x, sqrt(%y)) => multiply(%x, rsqrt(%y)) where is_float(%x) }",
    "fast { logical_not(less(%x, %y)) => greater_equal(%x, %y) }",
    "fast { exp(add(%x, %y)) => multiply(exp(%x), exp(%y)) where is_float(%x) }",
    "fast { mean(%x, axis=[0]) => multiply(sum(%x, axis=[0]), const(1 / %x.shape[0], %x.dtype)) where is_float(%x) }",
    "fast { log(nn.softmax(%x, axis=$axis)) => nn.log_softmax(%x, axis=$axis) where is_float(%x) }",
    "fast { %r = power(%x, 2) => multiply(%x, %x) where is_float(%x), %r.type == %x.type }",
]  # fmt: skip
"""Right rules: none of them may be accused."""


def as_text(rule: str, name: str) -> str:
    """A rule of the tables as an item of a `.mir` file."""
    fast = rule.startswith("fast ")
    return f"{'fast ' if fast else ''}rewrite @{name} {rule.removeprefix('fast ')}"


def wrong_rules() -> Iterator[tuple[str, str]]:
    """Each wrong rule: its class and its text, named by its place."""
    for fault, rules in WRONG.items():
        for number, rule in enumerate(rules):
            yield fault, as_text(rule, f"{fault.replace(' ', '_')}_{number}")


def right_rules() -> Iterator[str]:
    """The text of each right rule, named by its place."""
    for number, rule in enumerate(RIGHT):
        yield as_text(rule, f"right_{number}")
