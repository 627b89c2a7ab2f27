"""From a module to a compiled program: kernels apart, workers, the cache on disk."""
