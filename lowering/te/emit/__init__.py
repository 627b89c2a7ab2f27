"""From a schedule of TE to TIR (TVM, "te/schedule/schedule_ops", "te/operation", "tir/transforms/storage_flatten"): `lower_schedule` composes
the steps, `schedule_ops` makes the loops as statements of trees, `function_emitter` makes ops of them with flat buffers.
"""
