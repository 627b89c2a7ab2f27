"""The rules by which `default-schedule` schedules a function, written with schedule primitives only."""
