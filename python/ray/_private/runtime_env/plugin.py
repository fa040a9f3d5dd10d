"""Plugins: classes installed on the nodes that implement further fields of a runtime environment.

RAY_RUNTIME_ENV_PLUGINS of a node is a JSON list of {"class": "module.Class", "priority": 0 to 100
(default 10; smaller ones come first)}.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import os
import sys

from ray._private.runtime_env.errors import SetupError
from ray.runtime_env import RuntimeEnv


class RuntimeEnvContext:
    """The parts of a worker that plugins may change: variables, and the interpreter's command.

    Without another one, py_executable is the interpreter that runs the plugins.
    """

    def __init__(self, env_vars: dict[str, str] | None = None, py_executable: str | None = None):
        self.env_vars = env_vars or {}
        self.py_executable = py_executable or sys.executable
        self.command_prefix: list[str] = []


class RuntimeEnvPlugin:
    """Base class of plugins; `name` is the field that a plugin implements.

    It runs in the worker's process, before anything of the environment is applied.
    """

    name: str = ""
    priority: int = 10

    @staticmethod
    def validate(runtime_env_dict: dict) -> None:
        """Raises when the field's value is wrong."""

    def get_uris(self, runtime_env: dict) -> list[str]:
        return []

    async def create(
        self, uri: str | None, runtime_env: dict, context: RuntimeEnvContext, logger: logging.Logger
    ) -> float:
        """Makes what `uri` names; returns its size in bytes."""
        return 0

    def modify_context(
        self, uris: list[str], runtime_env: dict, context: RuntimeEnvContext, logger: logging.Logger
    ) -> None:
        """Changes how the worker is started."""

    def delete_uri(self, uri: str, logger: logging.Logger) -> float:
        return 0


def load_plugins() -> dict[str, tuple[int, RuntimeEnvPlugin]]:
    """Returns {field: (priority, plugin)} of this node.

    Raises SetupError for a list, or a class, that cannot be used.
    """
    text = os.environ.get("RAY_RUNTIME_ENV_PLUGINS")
    if not text:
        return {}
    plugins = {}
    try:
        for item in json.loads(text):
            module, _, name = item["class"].rpartition(".")
            plugin = getattr(importlib.import_module(module), name)()
            priority = item.get("priority", plugin.priority)
            if not isinstance(priority, int) or not 0 <= priority <= 100:
                raise ValueError(
                    f"the priority of {item['class']} is {priority!r}: expected an integer "
                    "from 0 to 100"
                )
            if not plugin.name or plugin.name in plugins:
                raise ValueError(
                    f"{item['class']}: its attribute 'name' is empty, or another plugin has the "
                    "same name"
                )
            plugins[plugin.name] = (priority, plugin)
    except Exception as error:
        raise SetupError(
            f"RAY_RUNTIME_ENV_PLUGINS of this node cannot be used: {type(error).__name__}: {error}"
        ) from None
    return plugins


def apply_plugins(env: dict) -> dict:
    """Runs the plugins of the fields in `env`, by priority; returns the environment that they make
    of it."""
    plugins = load_plugins()
    chosen = sorted(
        (priority, name) for name, (priority, _) in plugins.items() if env.get(name) is not None
    )
    if not chosen:
        return env
    context = RuntimeEnvContext(dict(env.get("env_vars") or {}), env.get("py_executable"))
    interpreter = context.py_executable
    logger = logging.getLogger("ray.runtime_env")
    # The fields were checked where the environment was made, and are taken as they are.
    shown = RuntimeEnv(_validate=False)
    dict.update(shown, env)
    for _, name in chosen:
        plugin = plugins[name][1]
        plugin.validate(shown)
        uris = plugin.get_uris(shown)
        for uri in uris or [None]:
            asyncio.run(plugin.create(uri, shown, context, logger))
        plugin.modify_context(uris, shown, context, logger)
    if context.command_prefix:
        raise SetupError(
            f"the plugins of {', '.join(name for _, name in chosen)} want a command prefix: not "
            "in this release"
        )
    env = {**env, "env_vars": context.env_vars}
    # Only another interpreter needs an exec.
    if context.py_executable != interpreter:
        env["py_executable"] = context.py_executable
    return env
