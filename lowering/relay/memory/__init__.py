"""Plans the memory of a Relay function's tensors: frames, plans, views, the heap of a call."""
