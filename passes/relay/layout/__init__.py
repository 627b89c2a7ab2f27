"""Passes that change the layouts of Relay's tensors."""
