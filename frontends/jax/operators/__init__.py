"""Converts StableHLO's operators, one topic a file."""
