"""sample_categorical, sample_perfect_tile, sample_partitioned_tile, sample_compute_location.

Random draws of a schedule. The trace keeps each as a decision; passed as `decision`, it is taken instead of drawing.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import comb, prod
from typing import Any

from ....dialects import tir
from ..analysis.structure import const_int, consumers, is_inside, loops_above
from ..engine.errors import ScheduleError, refuse
from ..engine.primitive import primitive
from ..engine.random_variables import PlaceRV
from ..engine.state import State
from .common.loops import require_block, require_loop
from .compute_at import check_compute_at
from .compute_inline import check_compute_inline

MOST_TILES = 1 << 10
LONGEST_LOOP = 1 << 31


@primitive
def sample_categorical(
    state: State, candidates: Sequence[int], probs: Sequence[float], decision: int | None = None
) -> int:
    """Draws one of the candidates, each with its probability; the decision is its place in the list.

    width = sch.sample_categorical([4, 8, 16], [0.2, 0.3, 0.5])
    sch.split(loop, [None, width])
    """
    if len(candidates) != len(probs) or not candidates:
        raise refuse(
            None,
            f"sample_categorical: there are {len(candidates)} candidates, but {len(probs)} probabilities",
            "give one for each",
        )
    if any(not 0 <= p < float("inf") for p in probs) or not sum(probs) > 0:
        raise refuse(
            None,
            f"sample_categorical: {list(probs)} are no probabilities: none is negative, and not all are 0",
            "they need not add up to 1",
        )
    if decision is None:
        (decision,) = state.random.choices(range(len(candidates)), weights=list(probs))
    if not 0 <= decision < len(candidates):
        raise refuse(
            None,
            f"sample_categorical: decision {decision} is the place of none of {len(candidates)} candidates",
            f"it is from 0 to {len(candidates) - 1}",
        )
    state.decision = decision
    return candidates[decision]


@primitive
def sample_perfect_tile(
    state: State, loop: tir.ForOp, n: int, max_innermost_factor: int = 16, decision: Sequence[int] | None = None
) -> list[int]:
    """Draws n factors whose product is a loop's extent, the last at most `max_innermost_factor` (-1: any).

    j0, j1 = sch.sample_perfect_tile(j, n=2, max_innermost_factor=8)     # of 20, say: 5, 4
    sch.split(j, [j0, j1])

    All such factorings are equally likely. In a decision for a loop that has another extent by now, a factor that does
    not divide takes all that is left.
    """
    extent = _extent(loop, n, "sample_perfect_tile")
    if max_innermost_factor != -1 and max_innermost_factor < 1:
        raise refuse(
            loop, f"sample_perfect_tile: no innermost factor is at most {max_innermost_factor}", "-1 allows any factor"
        )
    if decision is None:
        most = extent if max_innermost_factor == -1 else max_innermost_factor
        inner = [d for d in _divisors(extent) if d <= most]
        weights = [_ways(extent // d, n - 1) for d in inner]
        if not any(weights):
            raise refuse(
                loop,
                f"sample_perfect_tile: the one factor of loop '{loop.var_name.data}' is its extent {extent}, which is more than {max_innermost_factor}",
                "give a greater one, or -1",
            )
        (last,) = state.random.choices(inner, weights=weights)
        tiles = [*_factoring(extent // last, n - 1, state.random), last]
    else:
        tiles = _still_perfect(extent, _checked(loop, n, decision, "sample_perfect_tile"))
    state.decision = tiles
    return list(tiles)


@primitive
def sample_partitioned_tile(
    state: State,
    loop: tir.ForOp,
    n: int,
    partition_pos: int = 0,
    innerpart_factor: int = 1,
    decision: Sequence[int] | None = None,
) -> list[int]:
    """Draws n factors of a loop's extent, from `partition_pos` on a multiple of `innerpart_factor`.

    i0, i1, i2 = sch.sample_partitioned_tile(i, n=3, partition_pos=1, innerpart_factor=4)     # of 24, say: 2, 3, 4
    sch.split(i, [i0, i1, i2])

    A loop whose extent is not a multiple of `innerpart_factor` stays one: its extent, 1, 1, …
    """
    extent = _extent(loop, n, "sample_partitioned_tile")
    if not 0 <= partition_pos < n or innerpart_factor < 1:
        raise refuse(
            loop,
            f"sample_partitioned_tile: partition_pos is {partition_pos} and innerpart_factor {innerpart_factor}",
            f"the first is from 0 to {n - 1}, the other at least 1",
        )
    given = None if decision is None else _checked(loop, n, decision, "sample_partitioned_tile")
    if extent % innerpart_factor:
        tiles = [extent, *[1] * (n - 1)]
    elif given is None:
        inner = [d for d in _divisors(extent) if d % innerpart_factor == 0]
        weights = [_ways(extent // d, partition_pos) * _ways(d, n - partition_pos) for d in inner]
        (part,) = state.random.choices(inner, weights=weights)
        tiles = [
            *_factoring(extent // part, partition_pos, state.random),
            *_factoring(part, n - partition_pos, state.random),
        ]
    else:
        part = prod(given[partition_pos:])
        if extent % part or part % innerpart_factor or (partition_pos == 0 and part != extent):
            part = innerpart_factor if partition_pos else extent
        tiles = [
            *_still_perfect(extent // part, given[:partition_pos]),
            *_still_perfect(part, given[partition_pos:]),
        ]
    state.decision = tiles
    return list(tiles)


@primitive
def sample_compute_location(state: State, block: tir.BlockOp, decision: int | None = None) -> Any:
    """Draws a place for a producer: a loop of its first consumer, where it is, or in its consumers.

    place = sch.sample_compute_location(B)
    sch.compute_at(B, place)

    The decision is the number of the loop among those around the first consumer, -1 for where the block is (compute_at then
    does nothing), -2 for in its consumers (compute_at is compute_inline then). Loops of one iteration are not drawn. A
    decision that is not possible any more becomes the next one further out.
    """
    block = require_block(block, "sample_compute_location")
    places = _locations(block)
    if decision is None:
        decision = state.random.choice(list(places))
    elif decision not in places:
        outer = [number for number in places if number < decision]
        if not outer:
            raise refuse(
                block,
                f"sample_compute_location: decision {decision} is not a place for block '{block.block_name.data}', nor is any further out",
                f"possible are {', '.join(map(str, places))}",
            )
        decision = max(outer)
    state.decision = decision
    return places[decision]


def _locations(block: tir.BlockOp) -> dict[int, tir.ForOp | PlaceRV]:
    """Returns the places of a block by their decisions."""
    found: dict[int, tir.ForOp | PlaceRV] = {}
    if _legal(check_compute_inline, block):
        found[-2] = PlaceRV("inline")
    found[-1] = PlaceRV("root")
    readers = consumers(block)
    if readers:
        for number, loop in enumerate(loops_above(readers[0])):
            if not all(is_inside(reader, loop) for reader in readers):
                break
            if const_int(loop.extent) != 1 and _legal(check_compute_at, block, loop):
                found[number] = loop
    return found


def _legal(check: Any, *arguments: Any) -> bool:
    try:
        check(*arguments)
    except ScheduleError:
        return False
    return True


# Factorings


def _extent(loop: tir.ForOp, n: int, name: str) -> int:
    loop = require_loop(loop, name)
    extent = const_int(loop.extent)
    called = loop.var_name.data
    if extent is None or extent < 1:
        raise refuse(
            loop,
            f"{name}: loop '{called}' has no constant extent, of which tiles could be drawn",
            "tiles are of loops whose extent is a number from 1",
        )
    if extent >= LONGEST_LOOP:
        raise refuse(
            loop,
            f"{name}: loop '{called}' has {extent} iterations; tiles are drawn of fewer than {LONGEST_LOOP}",
            "split it first",
        )
    if not 1 <= n <= MOST_TILES:
        raise refuse(loop, f"{name}: n is {n}", f"it is from 1 to {MOST_TILES}")
    return extent


def _checked(loop: tir.ForOp, n: int, decision: Sequence[int], name: str) -> list[int]:
    if len(decision) != n or any(factor < 1 for factor in decision):
        raise refuse(
            loop,
            f"{name}: decision {list(decision)} for loop '{loop.var_name.data}' is not {n} factors",
            "they are whole numbers from 1",
        )
    return list(decision)


def _still_perfect(extent: int, factors: Sequence[int]) -> list[int]:
    """Returns the factors, from the last on, that divide; one that does not takes all that is left."""
    found: list[int] = []
    for factor in reversed(factors[1:]):
        found.append(factor if extent % factor == 0 else extent)
        extent //= found[-1]
    return [extent, *reversed(found)] if factors else []


def _primes(number: int) -> dict[int, int]:
    """Returns the prime factors of a number, with their exponents."""
    found: dict[int, int] = {}
    prime = 2
    while prime * prime <= number:
        while number % prime == 0:
            found[prime] = found.get(prime, 0) + 1
            number //= prime
        prime += 1
    if number > 1:
        found[number] = found.get(number, 0) + 1
    return found


def _divisors(number: int) -> list[int]:
    found = [1]
    for prime, exponent in _primes(number).items():
        found = [d * prime**k for d in found for k in range(exponent + 1)]
    return sorted(found)


def _ways(number: int, parts: int) -> int:
    """Returns the number of lists of `parts` factors with this product."""
    if parts == 0:
        return int(number == 1)
    return prod(comb(exponent + parts - 1, parts - 1) for exponent in _primes(number).values())


def _factoring(number: int, parts: int, generator: random.Random) -> list[int]:
    """Returns one of these lists, uniformly: stars and bars divide each prime's exponent into `parts`."""
    found = [1] * parts
    if parts == 0:
        return found
    for prime, exponent in _primes(number).items():
        bars = sorted(generator.sample(range(exponent + parts - 1), parts - 1))
        for k, (start, stop) in enumerate(zip([-1, *bars], [*bars, exponent + parts - 1], strict=True)):
            found[k] *= prime ** (stop - start - 1)
    return found
