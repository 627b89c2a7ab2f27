"""Tests of one's own programs, rules and passes, by lit and FileCheck: `python -m mirstack.lit`."""
