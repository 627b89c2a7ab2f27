"""Reductions over windows that slide along rows: depthwise and thin convolutions."""
