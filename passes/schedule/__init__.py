"""Schedule primitives over the tir dialect: legality, effect, handles that survive edits, the trace."""

from .engine.errors import ScheduleError
from .engine.instruction import Instruction, InstructionKind
from .engine.random_variables import BlockRV, ExprRV, LoopRV
from .engine.schedule import Schedule
from .engine.trace import Trace

__all__ = ["BlockRV", "ExprRV", "Instruction", "InstructionKind", "LoopRV", "Schedule", "ScheduleError", "Trace"]
