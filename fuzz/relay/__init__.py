"""Random Relay programs, passes to run on them, and how far rounding may move their results."""
