"""The engine of schedules: state, random variables, primitives by name, scripts, traces, refusals."""
