"""Schedules of TE programs, with TVM's algorithms and names ("te/schedule").

`frontend` has schedules and stages as programs call them, `stage` what they are made of, `primitives` and `dataflow_rewrite` what can be done
to them; `apply_schedule` applies a `te.schedule` op. `normalize` and `infer_bound` find the range of each loop.
"""
