"""Declares TE's schedules for readers; `lowering.te.schedule`, found by its name, applies them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .schedule_ops import ScheduleOp
    from .tensor import Operation

ENGINE = "mirstack.lowering.te.schedule.frontend"
"""The module whose `create_schedule` creates schedules: most programs have none, and do not import it."""


class StageBase(ABC):
    """`s[B]`, or a group of stages."""

    @property
    @abstractmethod
    def op(self) -> Operation:
        """Returns the operation, as primitives have rewritten it."""


class ScheduleBase(ABC):
    """`s = te.create_schedule(B.op)`."""

    @abstractmethod
    def __getitem__(self, tensor: Any) -> StageBase:
        """Returns the stage of a tensor or operation."""

    @abstractmethod
    def name_result(self, result: object, name: str) -> None:
        """Records the program's name of a primitive's result."""

    @abstractmethod
    def as_op(self, operations: Sequence[Operation], name: str | None = None, target: str | None = None) -> ScheduleOp:
        """Returns the applied primitives as ops; `operations` are the program's, in the order of its text."""


def create_schedule(ops: Any) -> ScheduleBase:
    """Returns a schedule of everything that the operations need, each computed by itself."""
    return import_module(ENGINE).create_schedule(ops)
