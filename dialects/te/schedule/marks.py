"""What tells a schedule and a stage from other objects, without what they are made of: most programs have none."""


class ScheduleMark:
    """A schedule: `frontend.Schedule`."""


class StageMark:
    """A stage: `frontend.Stage`."""
