"""Runs the commands: `python -m mirstack run net.mir` is `mir-run net.mir`."""

from .driver.main import main

if __name__ == "__main__":
    raise SystemExit(main())
