"""Random schedules of TIR functions."""
