"""Passes that group Relay operators into kernels, and take groups apart."""
