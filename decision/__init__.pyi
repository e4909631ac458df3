from .api import ComparisonResult as ComparisonResult
from .api import SimulationResult as SimulationResult
from .api import advise as advise
from .api import check_policy as check_policy
from .api import compare as compare
from .api import evaluate as evaluate
from .api import gates as gates
from .api import make_env as make_env
from .api import read_run as read_run
from .api import simulate as simulate
from .api import starts as starts
from .api import train as train
from .files import load_platform as load_platform
from .files import load_workload as load_workload
from .model.computer import shipped_platforms as shipped_platforms
from .model.computer import shipped_workloads as shipped_workloads
from .model.errors import ConfigError as ConfigError
from .model.errors import DecisionError as DecisionError
from .model.errors import PolicyError as PolicyError
from .policies import Plan as Plan
from .policies import Policy as Policy
from .policies import find_policy as find_policy
from .policies import list_policies as list_policies
from .state.view import ClusterView as ClusterView
from .state.view import JobView as JobView

__version__: str
