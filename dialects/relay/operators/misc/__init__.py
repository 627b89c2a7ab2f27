"""Annotations, random numbers, signals, and the operators of TVM's virtual machine."""
