"""Passes from TIR to TIR, by what they rewrite: blocks, buffers, loops, vectors, threads, scalars."""
