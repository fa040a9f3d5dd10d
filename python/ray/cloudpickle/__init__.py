"""cloudpickle, under the name programs know. Protocol 5 by default."""
from cloudpickle import *  # noqa: F401,F403
from cloudpickle import CloudPickler, Pickler, dump, dumps, load, loads  # noqa: F401
from cloudpickle import __version__  # noqa: F401
