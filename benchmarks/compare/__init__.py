"""The same workloads in mirstack and in the engines that one could install instead: `python -m benchmarks.compare --help`.

A workload is a Relay text with weights (`workloads`), which is said once: `graph` flattens it, and what an engine takes is
translated from that (`to_onnx`, `to_jax`, `to_torch`). Each engine is a file in `engines`; one that is not installed is reported as missing.
"""
