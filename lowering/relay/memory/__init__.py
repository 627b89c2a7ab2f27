"""Where the tensors of a Relay function are stored: frames, plans, views, the heap of a call."""
