"""Schedule primitives over the tir dialect."""
