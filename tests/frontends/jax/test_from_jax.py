"""`mirstack.from_jax`: programs as users write them, arguments, open sizes, shared memory."""

from __future__ import annotations

import sys
from typing import Any

import mirstack
import numpy as np
import pytest
from extras import library
from mirstack.dialects.relay import ConstantOp
from mirstack.support.diagnostics import place_of_node
from mirstack.support.walk import walk_ops

pytestmark = pytest.mark.extra
jax = library("jax", "jax")
library("jax.export", "jax")

from against_jax import agree, check, drawn, leaves  # noqa: E402
from mirstack.frontends.jax.exported import require_jax  # noqa: E402

jnp, lax, nn, export = jax.numpy, jax.lax, jax.nn, jax.export


def mlp(params: Any, x: Any) -> Any:
    for layer in params[:-1]:
        x = nn.relu(x @ layer["w"] + layer["b"])
    return nn.softmax(x @ params[-1]["w"] + params[-1]["b"])


PARAMS = [
    {"w": drawn(4, 8), "b": drawn(8)},
    {"w": drawn(8, 3), "b": drawn(3)},
]


def test_a_network_and_the_names_of_its_parameters() -> None:
    text = check(mlp, PARAMS, drawn(5, 4), target="cpu").astext()
    for name in ("params.0.b", "params.0.w", "params.1.b", "params.1.w", "x"):
        assert f'%"{name}": Tensor' in text or f"%{name}: Tensor" in text
    assert "nn.relu(" in text and "nn.softmax(" in text and "broadcast_to" not in text


def test_names_are_distinct() -> None:
    def total(*values: Any, **named: Any) -> Any:
        return values[0] + values[1] + named["a b"] + named["a_b"] + named["1"]

    mod = mirstack.from_jax(
        total, np.float32(1), np.float32(2), **{"a b": np.ones(2), "a_b": np.ones(2), "1": np.ones(2)}
    )
    text = mod.astext()
    assert all(f"%{name}: " in text for name in ("arg0", "arg1", "a_b", "a_b_2", "arg1_2"))


def test_open_sizes() -> None:
    rows, columns = export.symbolic_shape("rows, columns")

    def shapes(x: Any, y: Any) -> Any:
        both = jnp.concatenate([x, y], 1)
        return (
            both.reshape(-1), both[1:, ::2], x.mean(0), jnp.argmax(y, 1), jnp.sort(x, 0), x.T @ y, jnp.arange(x.shape[0]),
            jnp.ones((x.shape[0], 2)), x[:, :1] * y, jnp.where(x > 0, x, y),
        )  # fmt: skip

    given = jax.ShapeDtypeStruct((rows, columns), "float32")
    mod = mirstack.from_jax(shapes, given, given)
    assert "%x: Tensor[(?, ?), float32]" in mod.astext()
    run = mirstack.compile(mod, target="interp")
    for size in ((3, 4), (2, 5)):
        x, y = drawn(*size), drawn(*size, seed=1)
        agree(run(np.asarray(x), np.asarray(y)), shapes(x, y))


def test_an_open_batch_natively() -> None:
    (batch,) = export.symbolic_shape("batch")
    mod = mirstack.from_jax(mlp, PARAMS, jax.ShapeDtypeStruct((batch, 4), "float32"))
    run = mirstack.compile(mod)
    for size in (1, 6):
        x = drawn(size, 4)
        agree(run(*map(np.asarray, leaves(PARAMS)), np.asarray(x)), mlp(PARAMS, x))


def test_constants_share_memory() -> None:
    weight, other = np.ones((80, 80), "float32"), jnp.full((80,), 2.0)
    mod = mirstack.from_jax(lambda x: x @ weight + other, np.ones((2, 80), "float32"))
    arrays = [op.value.array for op in walk_ops(mod.op) if isinstance(op, ConstantOp)]
    for each in (weight, np.asarray(other)):
        assert any(np.shares_memory(array, each) for array in arrays)


def test_an_exported_function_takes_the_names_of_places() -> None:
    exported = export.export(jax.jit(mlp))(PARAMS, jax.ShapeDtypeStruct((2, 4), "float32"))
    mod = mirstack.from_jax(exported)
    assert "arg0.0.b" in mod.astext() and "%arg1: Tensor[(2, 4), float32]" in mod.astext()
    x = drawn(2, 4)
    agree(mirstack.compile(mod, target="interp")(*map(np.asarray, leaves(PARAMS)), np.asarray(x)), mlp(PARAMS, x))


def test_unused_parameters_stay() -> None:
    mod = mirstack.from_jax(lambda x, y: x + 1, np.ones(3, "float32"), np.ones((2, 2), "int8"))
    assert "%y: Tensor[(2, 2), int8]" in mod.astext()


def test_locations_are_those_of_jax() -> None:
    def scoped(x: Any) -> Any:
        with jax.named_scope("first"):
            return jnp.tanh(x)

    mod = mirstack.from_jax(scoped, np.ones(3, "float32"))
    places = [str(place_of_node(op.location)) for op in walk_ops(mod.op)]
    assert any("scoped: node 'first/tanh (test_from_jax.py:" in place for place in places)


def test_other_arguments() -> None:
    with pytest.raises(TypeError, match=r"takes a function or a jax\.export\.Exported, not int"):
        mirstack.from_jax(3)
    exported = export.export(jax.jit(jnp.tanh))(np.ones(3, "float32"))
    with pytest.raises(TypeError, match="has its arguments already"):
        mirstack.from_jax(exported, np.ones(3))


def test_jax_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    require_jax.cache_clear()
    with pytest.raises(mirstack.MirError, match="the package jax is not installed"):
        require_jax()
    require_jax.cache_clear()


# Programs ----------------------------------------------------------------------------------------------------------


def cnn(x: Any, kernels: Any, weight: Any) -> Any:
    for kernel in kernels:
        x = nn.relu(lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return nn.log_softmax(x.reshape(x.shape[0], -1) @ weight)


def attention(q: Any, k: Any, v: Any) -> Any:
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / jnp.sqrt(q.shape[-1])
    mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    return jnp.einsum("bhqk,bkhd->bqhd", nn.softmax(jnp.where(mask, scores, -1e9)), v)


def lstm(params: Any, xs: Any) -> Any:
    def cell(carry: Any, x: Any) -> Any:
        h, c = carry
        i, f, g, o = jnp.split(x @ params["x"] + h @ params["h"] + params["b"], 4, axis=-1)
        c = nn.sigmoid(f) * c + nn.sigmoid(i) * jnp.tanh(g)
        h = nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zeros = jnp.zeros((xs.shape[1], params["h"].shape[0]))
    return lax.scan(cell, (zeros, zeros), xs)


LSTM = {"x": drawn(3, 16), "h": drawn(4, 16), "b": drawn(16)}


@pytest.mark.parametrize("target", ["interp", "cpu"])
def test_a_convolutional_network(target: str) -> None:
    check(cnn, drawn(2, 8, 8, 3), [drawn(3, 3, 3, 4), drawn(3, 3, 4, 5)], drawn(20, 6), target=target)


def test_attention() -> None:
    check(attention, *(drawn(2, 6, 3, 4, seed=each) for each in range(3)), target="cpu")


@pytest.mark.parametrize("steps", [1, 5, 21])
def test_a_recurrent_network(steps: int) -> None:
    text = check(lstm, LSTM, drawn(steps, 2, 3)).astext()
    assert "dynamic" not in text and text.count("sigmoid") <= 3 * 13


def rows_in_both_directions(x: Any) -> Any:
    forward = lax.scan(lambda total, row: (total + row, total * row), jnp.zeros(3), x)
    backward = lax.scan(lambda total, row: (total - row, total * row), jnp.zeros(3), x, reverse=True)
    nested = lax.scan(
        lambda c, row: (c + lax.fori_loop(0, 12, lambda i, a: a * 0.9 + row[i % 3], 0.0), row.sum()), 0.0, x
    )
    return forward, backward, nested


def loops(x: Any) -> Any:
    counted = lax.fori_loop(0, 5, lambda i, c: c * 0.5 + i, x)
    written = lax.fori_loop(0, 3, lambda i, c: c.at[i].set(c[i + 1] * 2), x)
    indexed = lax.fori_loop(0, 4, lambda i, c: c + x[i] + x.sum(0) * i, jnp.zeros(3))
    ended = lax.while_loop(lambda c: c[0].sum() < 100, lambda c: (c[0] * 2 + 1, c[1] + 1), (x, 0))
    computed = lax.fori_loop(0, jnp.argmax(x[0]), lambda i, c: c + i, x)
    twice = lax.fori_loop(2, 9, lambda i, c: (c[1], c[0] + i), (x, x))
    return counted, written, indexed, ended, computed, twice


def branches(x: Any) -> Any:
    positive = x.sum() > 0
    chosen = lax.cond(positive, lambda: (x, x[0]), lambda: (x * 2, x[1] + 1))
    switched = lax.switch(x.sum().astype(int), [lambda y: y, lambda y: y + 1, lambda y: y * 3], x)
    inside = lax.scan(lambda c, row: (lax.cond(row[0] > 0, lambda: c + row, lambda: c), c), jnp.zeros(3), x)
    return chosen, switched, inside


@pytest.mark.parametrize("program", [rows_in_both_directions, loops, branches])
def test_control_flow(program: Any) -> None:
    check(program, drawn(9, 3, seed=1))


def test_a_loop_natively() -> None:
    check(
        lambda x: lax.while_loop(lambda c: c[0].sum() < 100, lambda c: (c[0] * 2 + 1, c[1] + 1), (x, 0)),
        drawn(3),
        target="cpu",
    )


def test_random_numbers_from_a_key() -> None:
    check(lambda key: (jax.random.uniform(key, (4,)), jax.random.permutation(key, 6)), jax.random.PRNGKey(3))
    key = jax.random.key(5)
    mod = mirstack.from_jax(lambda key: jax.random.bits(key, (3,)), key)
    got = mirstack.compile(mod, target="interp")(np.asarray(jax.random.key_data(key)))
    agree(got, jax.random.bits(key, (3,)))
