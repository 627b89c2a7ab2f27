"""Places the boxes of a graph in layers from top to bottom, so that edges lead down and few cross.

Layers are longest paths from the start, and a box that nothing is before stands right above its first user; the order within a layer is
improved by the barycenters of neighbours (Sugiyama, Tagawa and Toda, "Methods for Visual Understanding of Hierarchical System
Structures", 1981). An edge over several layers goes through a point in each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

SWEEPS = 6
"""How often each order is improved: downward, upward, downward again and so on."""
GAP_X, GAP_Y = 26, 44


@dataclass(frozen=True)
class Layout:
    """Places of boxes: of each its left and upper corner; of each edge its points, from the source down."""

    corners: list[tuple[int, int]]
    lines: list[list[tuple[int, int]]]
    width: int
    height: int


def place(sizes: Sequence[tuple[int, int]], edges: Sequence[tuple[int, int]]) -> Layout:
    """Returns the places of boxes of these widths and heights, with edges from boxes to later ones."""
    layers = _layers(len(sizes), edges)
    widths = [width for width, _ in sizes]
    paths: list[list[int]] = []
    rows: dict[int, list[int]] = {}
    for box, layer in enumerate(layers):
        rows.setdefault(layer, []).append(box)
    links: list[tuple[int, int]] = []
    for source, target in edges:
        path = [source]
        for layer in range(layers[source] + 1, layers[target]):
            path.append(len(widths))
            rows[layer].append(len(widths))
            widths.append(4)
        path.append(target)
        paths.append(path)
        links += pairwise(path)
    above: dict[int, list[int]] = {}
    below: dict[int, list[int]] = {}
    for source, target in links:
        above.setdefault(target, []).append(source)
        below.setdefault(source, []).append(target)
    ordered = [rows[layer] for layer in sorted(rows)]
    centers = _order(ordered, widths, above, below)
    left = min((centers[box] - widths[box] / 2 for box in range(len(widths))), default=0) - GAP_X
    tops: dict[int, int] = {}
    y = GAP_Y // 2
    heights = {layer: max((sizes[box][1] for box in row if box < len(sizes)), default=0) for layer, row in rows.items()}
    for layer in sorted(rows):
        tops[layer] = y
        y += heights[layer] + GAP_Y
    corners = [(round(centers[box] - sizes[box][0] / 2 - left), tops[layers[box]]) for box in range(len(sizes))]
    lines: list[list[tuple[int, int]]] = []
    for path in paths:
        first = layers[path[0]]
        points = [(round(centers[path[0]] - left), tops[first] + sizes[path[0]][1])]
        for layer, point in enumerate(path[1:], first + 1):
            x = round(centers[point] - left)
            # Beside the boxes of a layer that it only passes it goes straight down.
            points += [(x, tops[layer]), *([(x, tops[layer] + heights[layer])] if point >= len(sizes) else [])]
        lines.append(points)
    width = max((x + sizes[box][0] for box, (x, _) in enumerate(corners)), default=0)
    return Layout(corners, lines, max([width, *(x for line in lines for x, _ in line)]) + GAP_X, y)


def _layers(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Returns the layer of each box: below all before it, or with none right above its first user."""
    before: dict[int, list[int]] = {}
    after: dict[int, list[int]] = {}
    for source, target in edges:
        before.setdefault(target, []).append(source)
        after.setdefault(source, []).append(target)
    layers = [0] * count
    for box in range(count):
        layers[box] = max((layers[other] + 1 for other in before.get(box, ())), default=0)
    for box in range(count):
        if box not in before and box in after:
            layers[box] = max(min(layers[other] for other in after[box]) - 1, 0)
    return layers


def _order(
    rows: list[list[int]], widths: Sequence[int], above: dict[int, list[int]], below: dict[int, list[int]]
) -> list[float]:
    """Orders each row and returns the center of each box and point."""
    centers = [0.0] * len(widths)
    for row in rows:
        _spread(row, widths, centers)
    for sweep in range(SWEEPS):
        neighbours = above if sweep % 2 == 0 else below
        for row in rows if sweep % 2 == 0 else reversed(rows):
            wanted = {
                box: sum(centers[n] for n in near) / len(near) if (near := neighbours.get(box)) else centers[box]
                for box in row
            }
            row.sort(key=lambda box: wanted[box])
            for box in row:
                centers[box] = wanted[box]
            _spread(row, widths, centers)
    return centers


def _spread(row: Sequence[int], widths: Sequence[int], centers: list[float]) -> None:
    """Moves the boxes of a row apart, as little as it takes, in their order.

    Boxes that touch move as one, to where their wishes balance.
    """
    groups: list[tuple[list[int], float, float]] = []
    for box in row:
        # Its members, the left edge that they would like, the width.
        group = ([box], centers[box] - widths[box] / 2, float(widths[box] + GAP_X))
        while groups and groups[-1][1] + groups[-1][2] > group[1]:
            members, left, width = groups.pop()
            count, more = len(members), len(group[0])
            wish = (left * count + (group[1] - width) * more) / (count + more)
            group = ([*members, *group[0]], wish, width + group[2])
        groups.append(group)
    for members, left, _ in groups:
        x = left
        for box in members:
            centers[box] = x + widths[box] / 2
            x += widths[box] + GAP_X
