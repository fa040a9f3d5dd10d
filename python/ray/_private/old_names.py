"""Private modules under the names that older programs use.

They are `ray.worker`, `ray.state`, `ray.ray_constants` and `ray.serialization`.
"""

from __future__ import annotations

import importlib
import logging
from typing import Any


class OldName:
    """Forwards attributes to a private module; the first use of each logs a warning."""

    def __init__(self, name: str, module: str):
        self.__dict__.update(_name=name, _module=module, _warned_attributes=set())

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(importlib.import_module(self._module), attribute)
        if attribute not in self._warned_attributes and not attribute.startswith("__"):
            self._warned_attributes.add(attribute)

            logging.getLogger("ray").warning(
                "DeprecationWarning: `ray.%s.%s` is a private attribute and access will be "
                "removed in a future Ray version.",
                self._name,
                attribute,
            )
        return value

    def __setattr__(self, attribute: str, value: Any) -> None:
        setattr(importlib.import_module(self._module), attribute, value)

    def __dir__(self) -> list[str]:
        return dir(importlib.import_module(self._module))

    def __repr__(self) -> str:
        return f"<{self._module}, by its old name ray.{self._name}>"
