"""One file per primitive, or per pair that share a rule."""
