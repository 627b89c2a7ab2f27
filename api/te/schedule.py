"""`te.create_schedule`, schedules and stages; see `dialects.te.schedule.frontend`."""

from ...dialects.te.schedule.errors import ScheduleError
from ...dialects.te.schedule.frontend import Schedule, Stage, create_schedule
from ...dialects.te.schedule.place import at_caller, caller, located

__all__ = ["Schedule", "ScheduleError", "Stage", "at_caller", "caller", "create_schedule", "located"]
