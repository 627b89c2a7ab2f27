"""Side-by-side timings: `make bench`, or `python -m benchmarks NAME…`."""
