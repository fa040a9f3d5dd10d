"""The fields that templates of tasks, methods and actors' creations have in common.

Each option has one place here in which it becomes a field of proto TaskTemplate, whoever has it.
"""

from __future__ import annotations

from ray._private.generators import limit_of, returns_of
from ray._private.options import group_of, retry_of, runtime_env_of, strategy_of


def placed(options: dict, name: str, held: dict, placement: dict | None = None) -> dict:
    """The fields of what needs a place: a task, or the creation of an actor.

    The amounts are those of group_of(), from which the key "only_once" may come.
    """
    return {
        "resources": held,
        **strategy_of(options),
        **group_of(options, name, held, placement),
        "runtime_env": runtime_env_of(options),
    }


def called(
    options: dict,
    name: str,
    is_generator: bool,
    retries: int,
    recorded: bool = True,
    shared_limit: int = 0,
) -> dict:
    """The fields of what is called and answers: a task, or a method.

    `recorded` and `shared_limit` (of limit_of()) hold where the options say nothing.
    """
    return {
        "name": options.get("name") or name,
        "num_returns": returns_of(options.get("num_returns"), is_generator),
        "generator_backpressure": limit_of(options, shared_limit),
        "max_retries": retries,
        "unrecorded": not options.get("enable_task_events", recorded),
        **retry_of(options),
    }
