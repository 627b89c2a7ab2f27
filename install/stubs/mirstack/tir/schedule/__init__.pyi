"""`tir.Schedule`: a module's prim_funcs rewritten by primitives, step by step; shaped as TVM's.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.tir.schedule import Schedule as Schedule
from mirstack.api.tir.schedule.index_map import IndexMap as IndexMap
from mirstack.api.tir.schedule.scope import BlockDependenceInfo as BlockDependenceInfo
from mirstack.api.tir.schedule.scope import BlockScope as BlockScope
from mirstack.api.tir.schedule.scope import DepKind as DepKind
from mirstack.api.tir.schedule.scope import Dependency as Dependency
from mirstack.api.tir.schedule.scope import ScheduleState as ScheduleState
from mirstack.api.tir.schedule.scope import StmtSRef as StmtSRef
from mirstack.passes.schedule.engine.errors import ScheduleError as ScheduleError
from mirstack.passes.schedule.engine.instruction import Instruction as Instruction
from mirstack.passes.schedule.engine.instruction import InstructionKind as InstructionKind
from mirstack.passes.schedule.engine.random_variables import BlockRV as BlockRV
from mirstack.passes.schedule.engine.random_variables import ExprRV as ExprRV
from mirstack.passes.schedule.engine.random_variables import LoopRV as LoopRV
from mirstack.passes.schedule.engine.trace import Trace as Trace
