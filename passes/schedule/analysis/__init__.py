"""What schedule primitives ask of a program: accesses, kinds of blocks, region cover, dependences."""
