"""Compares mirstack with other engines on the same workloads: `python -m benchmarks.compare --help`.

A workload is one Relay text with weights (`workloads`): `graph` flattens it, and `to_onnx`, `to_jax` and `to_torch` translate
that for the other engines. Each engine is a file in `engines`; one that is not installed is reported as missing.
"""
