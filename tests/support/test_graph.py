"""Strongly connected components and disjoint sets."""

from __future__ import annotations

from random import Random

from mirstack.support.graph import DisjointSets, components


def test_components_come_behind_what_they_lead_to() -> None:
    assert list(components({"a": ["b"], "b": ["c"], "c": ["b"], "d": ["d", "a"]})) == [["c", "b"], ["a"], ["d"]]


def test_components_are_those_that_reach_each_other() -> None:
    random = Random(0)
    for size in range(1, 30):
        edges = {n: [random.randrange(size) for _ in range(random.randrange(3))] for n in range(size)}
        reached = {n: {n} for n in edges}
        for _ in edges:
            for n, targets in edges.items():
                reached[n].update(*(reached[t] for t in targets))
        found = list(components(edges))
        assert sorted(n for each in found for n in each) == list(range(size))
        for each in found:
            assert set(each) == {n for n in reached[each[0]] if each[0] in reached[n]}
        place = {n: number for number, each in enumerate(found) for n in each}
        assert all(place[t] <= place[n] for n, targets in edges.items() for t in targets)


def test_a_chain_of_many_is_walked_without_recursion() -> None:
    assert sum(map(len, components({n: [n + 1] if n < 50_000 else [0] for n in range(50_001)}))) == 50_001


def test_sets_are_joined() -> None:
    sets = DisjointSets[str]()
    sets.join("a", "b")
    sets.join("c", "d")
    assert sets.find("a") == sets.find("b") == "b" and sets.find("e") == "e"
    sets.join("b", "c")
    sets.join("a", "d")
    assert {sets.find(name) for name in "abcd"} == {"d"}
