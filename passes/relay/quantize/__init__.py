"""Passes on quantized Relay operators and on narrow floating-point types."""
