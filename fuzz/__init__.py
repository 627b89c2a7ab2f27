"""Programs drawn at random, run in every way that there is, and compared: `python -m mirstack.fuzz KIND`."""
