"""tensorize on random tiles of a product, with descriptions that fit and some that do not: what is accepted is equal."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.schedule import Schedule, ScheduleError

sys.path.insert(0, str(Path(__file__).parent))
from mirstack.fuzz.schedules.programs import MATMUL
from test_primitives import run

AXES = {"i": "S", "j": "S", "k": "R"}


def intrinsic(draw: random.Random, order: list[str], tile: dict[str, int], fits: bool) -> str:
    """A description of one tile, and an implementation that computes the same in another order; `fits` or nearly so."""
    wrong = None if fits else draw.choice(["order", "size", "operator", "operand", "start", "kind", "bind", "scope"])
    sizes = dict(tile)
    named = list(order)
    if wrong == "order":
        named = named[1:] + named[:1]
    if wrong == "size":
        sizes[draw.choice(named)] += 1
    a, b = "A[vi, vk]", "B[vj, vk]"
    if wrong == "operand":
        a = b
    if wrong == "start":
        a = "A[vi, 0]"
    operator = "+" if wrong == "operator" else "*"
    kinds = "".join("S" if wrong == "kind" else AXES[n] for n in "ijk")
    shared = ', scope="shared"' if wrong == "scope" else ""
    bound = ", ".join(n if wrong != "bind" else named[(named.index(n) + 1) % 3] for n in "ijk")
    m, n, k = (sizes[x] for x in "ijk")
    heads = f"""(a: T.handle, b: T.handle, c: T.handle):
    T.func_attr({{"tensor_intrin": "tile", "role": "ROLE"}})
    A = T.match_buffer(a, ({m}, {k}))
    B = T.match_buffer(b, ({n}, {k}){shared})
    C = T.match_buffer(c, ({m}, {n}))"""
    loops = f"{', '.join(named)} in T.grid({', '.join(str(sizes[x]) for x in named)})"
    plain = {"vi": "i", "vj": "j", "vk": "k"}
    value = f"{a} {operator} {b}"
    ours = value
    for axis, loop in plain.items():
        ours = ours.replace(axis, loop)
    return f"""
@T.prim_func
def desc{heads.replace("ROLE", "desc")}
    for {loops}:
        with T.block("C"):
            vi, vj, vk = T.axis.remap("{kinds}", [{bound}])
            C[vi, vj] = C[vi, vj] + {value}

@T.prim_func
def impl{heads.replace("ROLE", "impl")}
    for k, j, i in T.grid({k}, {n}, {m}):
        C[i, j] = {ours} + C[i, j]
"""


def game(seed: int, fits: bool) -> bool:
    """Whether the intrinsic was accepted; raises AssertionError when it then computes something else."""
    draw = random.Random(seed)
    tile = {"i": draw.choice([2, 3, 4]), "j": draw.choice([2, 4, 5]), "k": draw.choice([2, 4, 8])}
    order = draw.sample("ijk", 3)
    module = parse_mir(intrinsic(draw, order, tile, fits) + MATMUL)
    schedule = Schedule(module)
    schedule.work_on("main")
    block = schedule.get_block("C")
    outer, inner = {}, {}
    for name, loop in zip("ijk", schedule.get_loops(block), strict=True):
        outer[name], inner[name] = schedule.split(loop, [None, tile[name]])
    schedule.reorder(*outer.values(), *(inner[n] for n in order))
    if draw.random() < 0.5:
        schedule.decompose_reduction(block, outer["k"])
    target = inner[order[0]]
    if draw.random() < 0.3:
        target = schedule.blockize(target)
    before = print_mir(module)
    try:
        schedule.tensorize(target, "tile")
    except ScheduleError:
        assert print_mir(module) == before
        return False
    text = print_mir(module)
    main = "@T.prim_func\n" + text[text.index("def main") :]
    for ours, theirs in zip(run(parse_mir(main)), run(parse_mir(MATMUL)), strict=True):
        assert (ours == theirs).all(), text
    return True


@pytest.mark.parametrize("seed", range(6))
def test_what_fits_is_accepted(seed: int) -> None:
    assert game(seed, True)


@pytest.mark.parametrize("seed", range(16))
def test_what_is_accepted_is_equal(seed: int) -> None:
    game(seed, False)


@pytest.mark.slow
def test_what_is_accepted_is_equal_long() -> None:
    for seed in range(100, 400):
        assert game(seed, True)
        game(seed, False)
