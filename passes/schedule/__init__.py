"""Schedule primitives over the tir dialect: legality, effect, handles that survive edits, a trace of what was applied."""

from .errors import ScheduleError
from .handles import BlockRV, LoopRV
from .primitive import Instruction
from .schedule import Schedule

__all__ = ["BlockRV", "Instruction", "LoopRV", "Schedule", "ScheduleError"]
