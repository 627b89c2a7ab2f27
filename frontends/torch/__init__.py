"""Imports PyTorch's exported programs, and registers a backend of `torch.compile`."""
