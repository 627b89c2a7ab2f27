"""An e-graph of xDSL's ops: every form of a program at once.

As in egg (Willsey et al., "egg: Fast and Extensible Equality Saturation", POPL 2021): classes of equal values in a union-find,
ops hash-consed by the classes of their operands, and congruence restored by `rebuild` for the users of classes that met.
"""

from __future__ import annotations

from typing import Any

from xdsl.ir import Operation, SSAValue
from xdsl.traits import ConstantLike


class EGraph:
    """Classes of equal values; implements `steps.Classes`.

    A value that is not a result of an op of the graph (a parameter, the result of an op with effects) is a leaf: it is there anyway.
    """

    def __init__(self) -> None:
        self.parent: dict[SSAValue, SSAValue] = {}
        self.nodes: dict[SSAValue, list[Operation]] = {}
        """The ops of each class, by its representative, in the order in which they came."""
        self.leaves: dict[SSAValue, list[SSAValue]] = {}
        """The leaves of each class that has some."""
        self.users: dict[SSAValue, list[Operation]] = {}
        """The ops with an operand in a class."""
        self.constants: dict[SSAValue, SSAValue] = {}
        """A constant of each class that has one."""
        self.known: dict[Any, SSAValue] = {}
        self.touched: list[SSAValue] = []
        """Classes that met since `rebuild`."""
        self.count = 0

    def find(self, value: SSAValue) -> SSAValue:
        """The representative of a value's class."""
        root = value
        while (above := self.parent.get(root, root)) is not root:
            root = above
        while value is not root:
            self.parent[value], value = root, self.parent.get(value, root)
        return root

    def members(self, value: SSAValue) -> list[SSAValue]:
        """The values of the ops that are equal to a value."""
        return [op.results[0] for op in self.nodes.get(self.find(value), ())]

    def preferred(self, value: SSAValue) -> SSAValue:
        """Returns the constant that a value is equal to, or the value itself if there is none."""
        return self.constants.get(self.find(value), value)

    def add_leaf(self, value: SSAValue) -> None:
        """A value from outside, unless it is there already."""
        if value not in self.parent:
            self.parent[value] = value
            self.leaves[value] = [value]

    def add(self, op: Operation) -> SSAValue:
        """The class of an op with one result: that of an equal one if there is one."""
        for operand in op.operands:
            self.add_leaf(operand)
        key = self._key(op)
        found = self.known.get(key)
        if found is not None:
            return self.find(found)
        # A value may have come as a leaf before its op is looked at.
        value = op.results[0]
        root = self.find(value)
        self.known[key] = root
        self.parent.setdefault(value, value)
        self.nodes.setdefault(root, []).append(op)
        if op.has_trait(ConstantLike):
            self.constants[root] = value
        for operand in set(map(self.find, op.operands)):
            self.users.setdefault(operand, []).append(op)
        self.count += 1
        return root

    def add_given(self, op: Operation) -> None:
        """An op of the program, whose value gets a class even where there is an equal op."""
        value = self.add(op)
        self.parent.setdefault(op.results[0], op.results[0])
        self.union(value, op.results[0])

    def union(self, a: SSAValue, b: SSAValue) -> bool:
        """Makes two classes one; whether they were two."""
        a, b = self.find(a), self.find(b)
        if a is b:
            return False
        if self._size(a) < self._size(b):
            a, b = b, a
        self.parent[b] = a
        for lists in (self.nodes, self.leaves, self.users):
            gone: list[Any] | None = lists.pop(b, None)  # pyright: ignore[reportArgumentType]
            if gone:
                lists.setdefault(a, []).extend(gone)  # pyright: ignore[reportArgumentType, reportUnknownMemberType]
        constant = self.constants.pop(b, None)
        if constant is not None:
            self.constants.setdefault(a, constant)
        self.touched.append(a)
        return True

    def _size(self, root: SSAValue) -> int:
        return len(self.users.get(root, ())) + len(self.nodes.get(root, ()))

    def rebuild(self) -> None:
        """Makes ops with equal operands equal, until none is left."""
        changed: set[SSAValue] = set()
        while self.touched:
            roots = dict.fromkeys(map(self.find, self.touched))
            self.touched = []
            for root in roots:
                changed.add(root)
                users: dict[Any, Operation] = {}
                for op in self.users.get(root, ()):
                    key = self._key(op)
                    other = self.known.setdefault(key, op.results[0])
                    self.union(other, op.results[0])
                    changed.add(op.results[0])
                    users.setdefault(key, op)
                root = self.find(root)
                if self.users.get(root) and not self.touched:
                    self.users[root] = list(users.values())
        for root in set(map(self.find, changed)):
            ops = self.nodes.get(root)
            if ops is not None:
                self.nodes[root] = list({self._key(op): op for op in reversed(ops)}.values())[::-1]

    def _key(self, op: Operation) -> Any:
        operands = tuple(id(self.find(operand)) for operand in op.operands)
        return op.name, operands, frozenset(op.properties.items()), frozenset(op.attributes.items()), op.results[0].type
