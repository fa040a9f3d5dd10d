"""The former name of ray.util.state."""

from __future__ import annotations

import sys

from ray.util.state import *  # noqa: F403
from ray.util.state import __all__, api, common, exception

for _module in (api, common, exception):
    sys.modules[f"{__name__}.{_module.__name__.rpartition('.')[2]}"] = _module
