"""Lowers a schedule of TE to TIR (TVM, "te/schedule/schedule_ops", "tir/transforms/storage_flatten").

`lower_schedule` composes the steps, `schedule_ops` makes the loops as trees of statements, `function_emitter` makes ops of
these, with flat buffers.
"""
