"""The engines by name. Each file has `prepare`, which is not timed, and `load`, which is what a user's program does at its start."""
