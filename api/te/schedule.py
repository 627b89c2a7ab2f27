"""`te.create_schedule`, schedules and stages; see `lowering.te.schedule.frontend`."""

from ...dialects.te.caller_location import at_caller, caller, located
from ...lowering.te.schedule.frontend import Schedule, Stage, create_schedule
from ...passes.schedule.engine.errors import ScheduleError

__all__ = ["Schedule", "ScheduleError", "Stage", "at_caller", "caller", "create_schedule", "located"]
