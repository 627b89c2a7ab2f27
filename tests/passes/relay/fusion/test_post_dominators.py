"""The tree against its definition: brute force over all paths of small graphs."""

from hypothesis import given
from hypothesis import strategies as st
from mirstack.passes.relay.fusion.post_dominators import PostDominatorTree

OPAQUE = 8


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[list[tuple[int, int]]], list[bool]]:
    count = draw(st.integers(1, 9))
    successors: list[list[tuple[int, int]]] = []
    for node in range(count):
        later = draw(st.sets(st.integers(node + 1, count - 1), max_size=3)) if node + 1 < count else set()
        successors.append([(s, draw(st.integers(0, 4))) for s in sorted(later)])
    leaves = [draw(st.booleans()) and draw(st.booleans()) for _ in range(count)]
    return successors, leaves


def paths(successors: list[list[tuple[int, int]]], leaves: list[bool], node: int) -> list[list[tuple[int, int]]]:
    """Every path from the node to a place where the value leaves the graph, as (node, weight of the edge to it)."""
    ends = [[]] if leaves[node] or not successors[node] else []
    return ends + [[(s, w), *rest] for s, w in successors[node] for rest in paths(successors, leaves, s)]


@given(graphs())
def test_parent_is_the_first_node_on_every_path(graph: tuple[list[list[tuple[int, int]]], list[bool]]):
    successors, leaves = graph
    tree = PostDominatorTree(successors, leaves, OPAQUE)
    for node in range(len(successors)):
        every = paths(successors, leaves, node)
        common = set.intersection(*({n for n, _ in path} for path in every))
        parent = min(common, default=None)
        assert tree.parent[node] == parent
        if parent is not None:
            upto = [path[: [n for n, _ in path].index(parent) + 1] for path in every]
            assert tree.weight[node] == max(w for path in upto for _, w in path)


def test_long_parallel_chains_are_not_quadratic():
    # Two chains that meet only at the end, with a rung at every step that starts a new search.
    count = 20_000
    successors: list[list[tuple[int, int]]] = [[(min(n + 2, count), 0)] for n in range(count)] + [[]]
    successors[0].append((1, 0))
    tree = PostDominatorTree(successors, [False] * (count + 1), OPAQUE)
    assert tree.parent[0] == count
