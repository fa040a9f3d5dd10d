"""Why an environment cannot be made."""
from __future__ import annotations


class SetupError(Exception):
    """The environment cannot be made; the text says which part and why."""
