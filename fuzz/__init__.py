"""Draws programs at random, runs each in every way and compares the results.

python -m mirstack.fuzz KIND
"""
