"""`relay.testing`: types and passes of expressions, networks, naturals, checks of gradients.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.relay.testing import check_grad as check_grad
from mirstack.api.relay.testing import ctx_list as ctx_list
from mirstack.api.relay.testing import gradient_check as gradient_check
from mirstack.api.relay.testing import rand as rand
from mirstack.api.relay.testing import run_infer_type as run_infer_type
from mirstack.api.relay.testing import run_opt_pass as run_opt_pass
from mirstack.api.relay.testing.init import Xavier as Xavier
from mirstack.api.relay.testing.init import create_workload as create_workload
from mirstack.api.relay.testing.nat import add_nat_definitions as add_nat_definitions
from mirstack.api.relay.testing.nat import count as count
from mirstack.api.relay.testing.nat import make_nat_expr as make_nat_expr
from mirstack.api.relay.testing.nat import make_nat_value as make_nat_value
from mirstack.api.relay.testing.temp_op_attr import TempOpAttr as TempOpAttr
from mirstack.api.testing import enabled_targets as enabled_targets
from mirstack.relay.testing import dcgan as dcgan
from mirstack.relay.testing import densenet as densenet
from mirstack.relay.testing import dqn as dqn
from mirstack.relay.testing import inception_v3 as inception_v3
from mirstack.relay.testing import init as init
from mirstack.relay.testing import layers as layers
from mirstack.relay.testing import lstm as lstm
from mirstack.relay.testing import mlp as mlp
from mirstack.relay.testing import mobilenet as mobilenet
from mirstack.relay.testing import nat as nat
from mirstack.relay.testing import resnet as resnet
from mirstack.relay.testing import resnet_3d as resnet_3d
from mirstack.relay.testing import squeezenet as squeezenet
from mirstack.relay.testing import temp_op_attr as temp_op_attr
from mirstack.relay.testing import vgg as vgg
