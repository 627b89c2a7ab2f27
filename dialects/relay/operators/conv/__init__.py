"""Convolutions, their transposes, and convolutions as products of matrices."""
