"""Schedule primitives over the tir dialect: legality, effect, handles that survive edits, a trace of what was applied."""

from .errors import ScheduleError
from .handles import BlockRV, ExprRV, LoopRV
from .primitive import Instruction
from .schedule import Schedule
from .trace import Trace

__all__ = ["BlockRV", "ExprRV", "Instruction", "LoopRV", "Schedule", "ScheduleError", "Trace"]
