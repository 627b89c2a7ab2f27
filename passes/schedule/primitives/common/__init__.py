"""Edits that several schedule primitives share: new blocks and buffers, block axes, loops."""
