"""Long short-term memory, its iterations one after the other.

Source: Hochreiter and Schmidhuber, Long Short-Term Memory (1997).

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.relay.testing.lstm import get_net as get_net
from mirstack.api.relay.testing.lstm import get_workload as get_workload
from mirstack.api.relay.testing.lstm import lstm_cell as lstm_cell
