"""`python -m mirstack.fuzz`."""

import os
import sys

# Before numpy is there: its threads would only wait.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from .command import main

if __name__ == "__main__":
    sys.exit(main())
