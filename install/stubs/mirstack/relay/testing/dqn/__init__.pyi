"""A network that values the actions of a game by its last screens.

Source: Mnih et al., Human-level control through deep reinforcement learning (2015).

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.relay.testing.dqn import get_net as get_net
from mirstack.api.relay.testing.dqn import get_workload as get_workload
