"""TIR to TIR: the passes that take blocks apart, place and shrink buffers, make loops vectors, and schedule by default."""
