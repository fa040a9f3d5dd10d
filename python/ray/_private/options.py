"""Options of tasks, actors and methods: names, values, and which are not in this release."""

from __future__ import annotations

from ray import _raylet
from ray._private.absent import not_in_release
from ray._private.amounts import check_number, check_resources, cut_amounts, shown_number

_NONE = type(None)
# The number is limited, because every return is a reference of its own in this process.
_MAX_RETURNS = 1_000_000
_MAX_COUNT = 2**31 - 1
_NUMBER = (int, float, _NONE)

_COMMON = {
    "accelerator_type": (str, _NONE),
    "memory": _NUMBER,
    "name": (str, _NONE),
    "num_cpus": _NUMBER,
    "num_gpus": _NUMBER,
    "object_store_memory": (int, _NONE),
    "placement_group": (object,),
    "placement_group_bundle_index": (int,),
    "placement_group_capture_child_tasks": (bool, _NONE),
    "resources": (dict, _NONE),
    "runtime_env": (dict, _NONE),
    "scheduling_strategy": (object,),
    "label_selector": (dict, _NONE),
    "fallback_strategy": (list, _NONE),
    "_labels": (dict, _NONE),
    "enable_task_events": (bool,),
    "_metadata": (dict, _NONE),
}
TASK = {
    **_COMMON,
    "max_calls": (int, _NONE),
    "max_retries": (int, _NONE),
    "num_returns": (int, str, _NONE),
    "retry_exceptions": (bool, list, tuple),
    "_generator_backpressure_num_objects": (int, _NONE),
    "_num_objects_per_yield": (int, _NONE),
}
ACTOR = {
    **_COMMON,
    "allow_out_of_order_execution": (bool, _NONE),
    "concurrency_groups": (list, dict, _NONE),
    "enable_tensor_transport": (bool, _NONE),
    "get_if_exists": (bool,),
    "lifetime": (str, _NONE),
    "max_concurrency": (int, _NONE),
    "max_pending_calls": (int, _NONE),
    "max_restarts": (int, _NONE),
    "max_task_retries": (int, _NONE),
    "namespace": (str, _NONE),
    "_actor_generator_backpressure_num_objects": (int, _NONE),
}
METHOD_DECORATOR = (
    "num_returns",
    "concurrency_group",
    "max_task_retries",
    "retry_exceptions",
    "_generator_backpressure_num_objects",
    "_num_objects_per_yield",
    "enable_task_events",
    "tensor_transport",
)
METHOD = {
    "name": (str, _NONE),
    "num_returns": (int, str, _NONE),
    "max_task_retries": (int, _NONE),
    "retry_exceptions": (bool, list, tuple, _NONE),
    "concurrency_group": (str, _NONE),
    "_generator_backpressure_num_objects": (int, _NONE),
    "enable_task_events": (bool,),
    "tensor_transport": (str, _NONE),
    "_labels": (dict, _NONE),
    "_num_objects_per_yield": (int, _NONE),
}

# Maps an option to the values that request nothing, and to the name of the feature.
_ABSENT = {
    "_labels": ((None, {}), "labels of tasks and actors"),
    "_metadata": ((None, {}), "task metadata"),
    "_num_objects_per_yield": ((None, 1), "several objects per yield"),
    "enable_tensor_transport": ((None, False), "tensor transports"),
    "tensor_transport": ((None, "object_store", "OBJECT_STORE"), "tensor transports"),
}


def require_present(options: dict):
    """Raises NotImplementedError, naming the feature, for an option not in this release."""
    for key, value in options.items():
        nothing = _ABSENT.get(key)
        if nothing and not any(
            value is given or (type(value) is type(given) and value == given)
            for given in nothing[0]
        ):
            raise not_in_release(nothing[1])


def check_returns(returns):
    if isinstance(returns, str) and returns not in ("streaming", "dynamic"):
        raise TypeError(f"num_returns: a number, 'streaming' or 'dynamic', got {returns!r}")
    if isinstance(returns, int) and returns < 0:
        raise ValueError(
            "The keyword 'num_returns' only accepts None, a non-negative integer, 'streaming' "
            f"or 'dynamic', got {returns}"
        )
    if isinstance(returns, int) and returns > _MAX_RETURNS:
        raise ValueError(
            f"num_returns is {shown_number(returns)}: a task returns at most {_MAX_RETURNS} "
            "objects; return a list, or call more tasks"
        )


def _minus_one_or_more(options: dict, *names: str):
    for name in names:
        value = options.get(name)
        if value is not None and value < -1:
            raise ValueError(
                f"The keyword '{name}' only accepts None, -1, 0 or a positive integer, got {value}"
            )
        if value is not None and value > _MAX_COUNT:
            raise ValueError(
                f"The keyword '{name}' accepts at most {_MAX_COUNT}, got {shown_number(value)}; -1 "
                "stands for no limit"
            )


def _check_strategy(value):
    if value is None or isinstance(value, str):
        # check_use() checks strings.
        return
    from ray.util.scheduling_strategies import (
        NodeAffinitySchedulingStrategy,
        NodeLabelSchedulingStrategy,
        PlacementGroupSchedulingStrategy,
    )

    kinds = (
        PlacementGroupSchedulingStrategy,
        NodeAffinitySchedulingStrategy,
        NodeLabelSchedulingStrategy,
    )
    if not isinstance(value, kinds):
        raise TypeError(
            "The type of keyword 'scheduling_strategy' must be "
            f"{['None', 'str', *(kind.__name__ for kind in kinds)]}, but received type "
            f"{type(value).__name__}"
        )


def _check_types(options: dict, table: dict, kind: str):
    """Checks the names and the types of options.

    Where an int is expected, it replaces True and False in `options` by 1 and 0, as in
    num_gpus=torch.cuda.is_available().
    """
    for key, value in options.items():
        types = table.get(key)
        if types is None:
            raise ValueError(
                f"Invalid option keyword {key} for {kind}. Valid ones are {sorted(table)}."
            )
        if object not in types and not isinstance(value, types):
            names = [t.__name__ if t is not _NONE else "None" for t in types]
            raise TypeError(
                f"The type of keyword '{key}' must be {names}, but received type "
                f"{type(value).__name__}"
            )
        if isinstance(value, bool) and int in types and bool not in types:
            options[key] = int(value)


def _check_retry_exceptions(retry, error: type[Exception]):
    if isinstance(retry, (list, tuple)) and not all(
        isinstance(c, type) and issubclass(c, BaseException) for c in retry
    ):
        raise error("retry_exceptions must be a bool or a list of exception classes")


def _check_backpressure(options: dict):
    if options.get("_generator_backpressure_num_objects") == 0:
        raise ValueError(
            "_generator_backpressure_num_objects=0 is not allowed: a positive number is how many "
            "items may wait for their consumer, -1 is no limit"
        )
    shared = options.get("_actor_generator_backpressure_num_objects")
    if shared is not None and shared != -1 and shared <= 0:
        raise ValueError(
            "_actor_generator_backpressure_num_objects accepts None, -1 (off) and positive "
            f"numbers, got {shared}"
        )


def validate(options: dict, table: dict, kind: str):
    """Checks options where they are given.

    Raises ValueError for unknown options and bad values, TypeError for wrong types,
    NotImplementedError for what is not in this release.
    """
    _check_types(options, table, kind)
    check_number("num_cpus", options.get("num_cpus"))
    check_number("num_gpus", options.get("num_gpus"))
    check_number("memory", options.get("memory"))
    check_resources(options.get("resources") or {})
    _minus_one_or_more(
        options, "max_retries", "max_restarts", "max_task_retries", "max_pending_calls"
    )
    calls = options.get("max_calls")
    if calls is not None and not 0 <= calls <= _MAX_COUNT:
        raise ValueError(
            "The keyword 'max_calls' only accepts None, 0 or a positive integer up to "
            f"{_MAX_COUNT}, got {shown_number(calls)}"
        )
    if "object_store_memory" in options and options["object_store_memory"] is not None:
        raise ValueError("Setting 'object_store_memory' is not implemented for tasks and actors.")
    check_returns(options.get("num_returns"))
    _check_retry_exceptions(options.get("retry_exceptions"), ValueError)
    _check_strategy(options.get("scheduling_strategy"))
    if options.get("placement_group") is not None:
        _placement_groups().check_option(options)
    _check_backpressure(options)
    if options.get("runtime_env"):
        from ray._private.runtime_env.submit import check_task_env

        check_task_env(options["runtime_env"])
    require_present(options)


def validate_method(options: dict):
    """Checks the options of @ray.method and of an actor method's `.options()`.

    An unknown option raises TypeError, as an unknown argument does.
    """
    for key in options:
        if key not in METHOD:
            raise TypeError(
                f"Actor methods have no option {key!r}. The options are {sorted(METHOD)}."
            )
    _check_types(options, METHOD, "actor methods")
    check_returns(options.get("num_returns"))
    _minus_one_or_more(options, "max_task_retries")
    _check_retry_exceptions(options.get("retry_exceptions"), TypeError)
    _check_backpressure(options)
    require_present(options)


def validate_task(options: dict):
    validate(options, TASK, "remote functions")


def validate_actor(options: dict):
    validate(options, ACTOR, "actors")
    if options.get("get_if_exists") and not options.get("name"):
        raise ValueError("The actor name must be specified to use `get_if_exists`.")
    if options.get("lifetime") not in (None, "detached", "non_detached"):
        raise ValueError(
            "actor `lifetime` argument must be one of None, 'detached' and 'non_detached'"
        )
    concurrency = options.get("max_concurrency")
    if concurrency is not None and not 0 <= concurrency <= _MAX_COUNT:
        raise ValueError(
            f"max_concurrency must be from 0 (the default) to {_MAX_COUNT}, got "
            f"{shown_number(concurrency)}"
        )
    groups_of(options)


def check_use(options: dict):
    """Checks options that are wrong only when a task is submitted or an actor is created."""
    check_number("num_gpus", options.get("num_gpus"), whole=True)
    strategy = options.get("scheduling_strategy")
    if isinstance(strategy, str) and strategy not in _raylet.scheduling_strategies():
        known = ", ".join(map(repr, _raylet.scheduling_strategies()))
        raise ValueError(f"Invalid scheduling strategy {strategy!r}: it is one of {known}")


def check_creation(options: dict):
    """Checks options that are wrong only when an actor is created."""
    check_use(options)
    if options.get("name") == "":
        raise ValueError("Actor name cannot be an empty string.")
    if options.get("namespace") == "":
        raise ValueError('`""` is not a valid namespace. Pass None to not specify a namespace.')


def pending_limit(options: dict) -> int:
    """The value of max_pending_calls; None and 0 mean no limit, like -1."""
    return options.get("max_pending_calls") or -1


def groups_of(options: dict) -> dict:
    """The limit of concurrent calls by concurrency group.

    The option is such a dict, or a list of {"name": ..., "max_concurrency": ...}.
    """
    given = options.get("concurrency_groups") or {}
    if isinstance(given, list):
        if not all(
            isinstance(group, dict) and group.keys() == {"name", "max_concurrency"}
            for group in given
        ):
            raise ValueError(
                "concurrency_groups: a list holds dicts of 'name' and 'max_concurrency'"
            )
        given = {group["name"]: group["max_concurrency"] for group in given}
    for name, limit in given.items():
        if not isinstance(name, str) or not name:
            raise ValueError(f"concurrency_groups: names are non-empty strings, got {name!r}")
        if isinstance(limit, bool) or not isinstance(limit, int):
            raise TypeError(
                f"concurrency_groups[{name!r}]: expected an int, got {type(limit).__name__}"
            )
        if not 0 < limit <= _MAX_COUNT:
            raise ValueError(
                f"concurrency_groups[{name!r}] must be from 1 to {_MAX_COUNT}, got "
                f"{shown_number(limit)}"
            )
    return given


def resources_of(options: dict, default_cpus: float) -> dict:
    """The amounts to request from the scheduler, by resource name, without zeros."""
    amounts = dict(options.get("resources") or {})
    cpus = options.get("num_cpus")
    amounts["CPU"] = default_cpus if cpus is None else cpus
    amounts["GPU"] = options.get("num_gpus") or 0
    if options.get("memory") is not None:
        amounts["memory"] = options["memory"]
    if options.get("accelerator_type"):
        amounts[f"accelerator_type:{options['accelerator_type']}"] = 0.001
    return cut_amounts(amounts)


def strategy_of(options: dict) -> dict:
    """The fields of a template that say where the task may run."""
    value = options.get("scheduling_strategy")
    fields = {"scheduling_strategy": value if isinstance(value, str) else ""}
    if (
        fields["scheduling_strategy"] != (value or "")
        or options.get("label_selector")
        or options.get("fallback_strategy")
    ):
        from ray._private.constraints import constraint_of

        fields["constraint"] = constraint_of(options)
    return fields


def group_of(options: dict, name: str, held: dict, placement: dict | None = None) -> dict:
    """The fields of a template that say in which placement group the task or actor runs.

    `held` and `placement` are the amounts that it needs while it runs and, if others, to be placed.
    With the key `only_once` they depend on the calling task and hold for one call.
    """
    strategy = options.get("scheduling_strategy")
    if (strategy is None or isinstance(strategy, str)) and not any(
        name.startswith("placement_group") for name in options
    ):
        if strategy is not None:
            return {"placed_explicitly": True}
        if _raylet.current_group()[0] is None:
            return {}
    return _placement_groups().fields_of(options, name, held, placement)


def _placement_groups():
    # Imported on first use, as few programs have placement groups.
    from ray._private import placement_groups

    return placement_groups


def runtime_env_of(options: dict) -> str:
    """The task's or actor's own environment as JSON; the submitter's is merged in later."""
    if not options.get("runtime_env"):
        return ""
    from ray._private.runtime_env.submit import task_env

    return task_env(options["runtime_env"])


def portable(options: dict) -> dict:
    """Returns a method's options as they travel in handles: classes of exceptions are pickled by
    value, because other processes may be unable to import them."""
    retry = options.get("retry_exceptions")
    if not isinstance(retry, (list, tuple)):
        return dict(options)
    from ray import cloudpickle

    return {**options, "retry_exceptions": cloudpickle.dumps(tuple(retry)) if retry else False}


def retry_of(options: dict) -> dict:
    """The retry fields of a template, of options as users give them or as portable() made them."""
    retry = portable(options).get("retry_exceptions", False)
    if isinstance(retry, bytes):
        return {"retry_exceptions": True, "retry_exception_types": retry}
    return {"retry_exceptions": bool(retry)}
