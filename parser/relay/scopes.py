"""Names while a Relay text is read: the value of `%x` and `%0`, and a value's name in the IR.

A frame is one `{ … }` (or parenthesized statements) being filled. Graph names (`%0`) stay visible after their block has
ended: TVM prints a shared value where it meets it first, even inside one branch, and means the place that dominates all
uses. `Scopes.find` moves such a value there.
"""

from __future__ import annotations

from collections.abc import Set

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from ...dialects.relay.ir import LEAVES
from ...dialects.relay.types import UNKNOWN
from ...support.walk import walk_ops


class ScopeNames:
    """Names of variables, unique among those visible together. Shared by reader and printer."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._scopes: list[list[str]] = []
        self._counters: dict[str, int] = {}

    def push(self) -> None:
        """Opens a block."""
        self._scopes.append([])

    def pop(self) -> None:
        """Closes a block: its names are free again."""
        self._taken.difference_update(self._scopes.pop())

    def fresh(self, name: str) -> str:
        """`name`, or `name1`, `name2`, … when it is taken; taken until the block ends."""
        taken = self._taken
        if name in taken:
            prefix, counter = name, self._counters.get(name, 0)
            while name in taken:
                counter += 1
                name = f"{prefix}{counter}"
            self._counters[prefix] = counter
        taken.add(name)
        self._scopes[-1].append(name)
        return name


class Frame:
    """One open scope: where its ops go, and what to undo when it closes."""

    __slots__ = ("block", "end", "open", "parent", "self_called", "self_name", "self_used", "undo")

    def __init__(self, block: Block, parent: Frame | None):
        self.block = block
        self.parent = parent
        self.open = True
        self.undo: list[tuple[str, SSAValue | None]] = []
        # Where the block ends, if that is of use.
        self.end: LocationAttr | None = None
        # A local function's own name in the text (`let %f = fn …`), in the IR, and the latter again once it is used.
        self.self_name: str | None = None
        self.self_called = ""
        self.self_used: str | None = None


class Scopes:
    """The names that are visible at the place being read."""

    def __init__(self) -> None:
        self.frame: Frame | None = None
        self._names: dict[str, SSAValue] = {}
        self.variables = ScopeNames()
        self._escaped: dict[str, tuple[SSAValue, Frame]] = {}
        self._self_frames: dict[str, list[Frame]] = {}

    def push(self, block: Block) -> Frame:
        """Opens a scope whose ops go to `block`."""
        if self.frame is None or self.frame.block is not block:
            self.variables.push()
        self.frame = Frame(block, self.frame)
        return self.frame

    def pop(self) -> Frame:
        """Closes the innermost scope."""
        frame = self.frame
        assert frame is not None
        names = self._names
        for name, before in reversed(frame.undo):
            if name[1].isdigit():
                self._escaped[name] = (names[name], frame)
            if before is None:
                del names[name]
            else:
                names[name] = before
        parent = frame.parent
        # Statements in parentheses land in the block around, and so do the names that they are printed under.
        if parent is None or parent.block is not frame.block:
            self.variables.pop()
        if frame.self_name is not None:
            self._self_frames[frame.self_name].pop()
        frame.open = False
        self.frame = parent
        return frame

    def forget(self) -> None:
        """Ends a function: no name is visible, not even graph names."""
        while self.frame is not None:
            self.pop()
        self._escaped.clear()
        self.variables = ScopeNames()

    def bind_graph(self, name: str, value: SSAValue) -> None:
        """`%0` means `value` from here on."""
        frame = self.frame
        assert frame is not None
        frame.undo.append((name, self._names.get(name)))
        self._names[name] = value

    def bind(self, name: str, value: SSAValue) -> None:
        """`%x` (with its percent sign) means `value` from here on."""
        self.bind_graph(name, value)

    def bind_self(self, name: str, called: str) -> None:
        """Binds `name` to the function whose body is the innermost frame; its name in the IR is `called`."""
        frame = self.frame
        assert frame is not None
        if any(undone == name for undone, _ in frame.undo):
            return  # a parameter is called the same
        frame.self_name, frame.self_called = name, called
        self._self_frames.setdefault(name, []).append(frame)
        if name in self._names:
            # What the name meant outside is hidden.
            frame.undo.append((name, self._names.pop(name)))

    def find(self, name: str) -> SSAValue | None:
        """The value of `%x` or `%0`, or None."""
        value = self._names.get(name)
        if value is not None:
            return value
        frames = self._self_frames.get(name)
        if frames:
            return self._function_itself(name, frames[-1])
        escaped = self._escaped.get(name)
        return None if escaped is None else self._bring_out(name, *escaped)

    def was_bound(self, name: str) -> bool:
        """Returns whether `%0` is a name of a block that has ended."""
        return name in self._escaped

    def visible(self) -> list[str]:
        """All names that `find` knows, for suggestions."""
        return [*self._names, *self._self_frames]

    def _function_itself(self, name: str, frame: Frame) -> SSAValue:
        value = frame.block.insert_arg(UNKNOWN, 0)
        frame.self_used = frame.self_called
        frame.undo.append((name, None))
        self._names[name] = value
        return value

    def _bring_out(self, name: str, value: SSAValue, frame: Frame) -> SSAValue | None:
        """Hoists a value of a closed block to the nearest block that is still open, where it is then visible."""
        outer: Frame | None = frame
        while outer is not None and not outer.open:
            outer = outer.parent
        if outer is None or not isinstance(value.owner, Operation):
            return None
        around: set[Block] = set()
        above: Frame | None = outer
        while above is not None:
            around.add(above.block)
            above = above.parent
        if not hoist(value.owner, outer.block, around):
            return None
        outer.undo.append((name, None))
        self._names[name] = value
        return value


def hoist(op: Operation, target: Block, around: Set[Block]) -> bool:
    """Moves `op` and the ops it depends on into `target`, a block around it.

    They are inserted before the op of `target` that contains `op`. `around` holds `target` and the blocks around it, whose values
    are visible there. The blocks between `op` and `target` may still be unattached (their op is not built yet): then the ops are
    appended to `target`. Returns False, and moves nothing, if `op` depends on an argument of a block inside `target`.
    """
    needed: list[Operation] = []
    seen: set[Operation] = set()
    pending: list[tuple[Operation, bool]] = [(op, False)]
    while pending:
        current, expanded = pending.pop()
        if expanded:
            needed.append(current)
            continue
        if current in seen or current.parent in around:
            continue
        seen.add(current)
        pending.append((current, True))
        own = {block for inner in walk_ops(current) for region in inner.regions for block in region.blocks}
        for inner in walk_ops(current):
            for operand in inner.operands:
                if isinstance(operand, BlockArgument):
                    if operand.block not in own and operand.block not in around:
                        return False
                elif isinstance(operand.owner, Operation) and operand.owner.parent not in own:
                    pending.append((operand.owner, False))
    place = _child_of(op, target) or _first_waiting(target)
    for moved in needed:
        moved.detach()
        if place is None:
            target.add_op(moved)
        else:
            target.insert_op_before(moved, place)
    return True


def _first_waiting(target: Block) -> Operation | None:
    """The first of the leaves at the block's end that wait for the op being built to use them."""
    place, op = None, target.last_op
    while isinstance(op, LEAVES) and op.results[0].first_use is None:
        place, op = op, op.prev_op
    return place


def _child_of(op: Operation, target: Block) -> Operation | None:
    """The op of `target` that holds `op`, or None when the chain upward ends before `target`."""
    current: Operation | None = op
    while current is not None and current.parent is not target:
        current = None if current.parent is None else current.parent.parent_op()
    return current
