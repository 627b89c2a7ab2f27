"""The engines by name: each file has `prepare`, which is not timed, and `load`, which runs once."""
