"""TE schedules: how the loops of a TE program are arranged, and the TIR that follows from it.

`stage` holds schedules, stages and how their axes came from each other; `primitives` is the one table of what can be done to them;
`rewrite_ops` the primitives that change the program. `normalize`, `infer_bound`, `build_stmt` and `flatten` make the loops, with
algorithms and names of TVM ("te/schedule", "te/operation"); `lower` composes them.
"""
