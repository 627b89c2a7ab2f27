"""Passes that make programs for training: gradients."""
