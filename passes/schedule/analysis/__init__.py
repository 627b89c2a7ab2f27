"""Analyses that schedule primitives share: accesses, kinds of blocks, region cover, dependences."""
