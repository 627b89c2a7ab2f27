"""Schedules of TE programs, as Python objects: `stage` holds schedules, stages and how their axes came from each other,
`primitives` and `rewrite_ops` what can be done to them.

`arith`, `int_set` and `relations` are the arithmetic of axes. What follows from a schedule, ranges and loops, is in
`lowering.te.schedule`.
"""
