"""Layers of neural networks: activations, dense products, normalization, pooling, padding, losses."""
