"""The job that ray.init() makes of a program: namespace, runtime environment, module paths."""

from __future__ import annotations

import os
import sys

from ray._private import session

# absent.py says why this is not typing.TYPE_CHECKING.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ray._private.init_arguments import InitArguments
    from ray._private.runtime_env.submit import JobEnv


def _random_namespace() -> str:
    h = os.urandom(16).hex()
    return f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"


def _driver_sys_path(has_working_dir: bool) -> list[str]:
    """Where workers find the driver's modules.

    That is the script's directory, the working directory, and what PYTHONPATH and the program put
    on sys.path, without the interpreter's own directories: workers have their own.
    """
    main = sys.modules.get("__main__")
    here = (
        [os.path.dirname(os.path.abspath(main.__file__))] if getattr(main, "__file__", None) else []
    )
    here.append(os.getcwd())
    entries = list(here)
    entries += [
        os.path.abspath(entry)
        for entry in (*os.environ.get("PYTHONPATH", "").split(os.pathsep), *sys.path)
        if entry
    ]
    # lib/python3, lib/python3.11, lib/python311.zip; programs may lie elsewhere below lib.
    own = tuple(
        os.path.join(prefix, "lib", "python")
        for prefix in {sys.prefix, sys.base_prefix, sys.exec_prefix, "/usr/local"}
    )
    ours = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    # The files of the working_dir replace these directories.
    left_out = here if has_working_dir else []
    return [
        entry
        for entry in dict.fromkeys(entries)
        if os.path.realpath(entry) != ours
        and (entry in here or not entry.startswith(own))
        and entry not in left_out
    ]


def _job_env(given: InitArguments, config, submitted: dict) -> JobEnv | None:
    """The job's runtime environment; the argument's fields come before those of the JobConfig.

    Returns None, without importing anything, when none is asked for.
    """
    env = dict((config.runtime_env if config is not None else None) or {})
    own = given.runtime_env or {}
    if env.get("env_vars") and own.get("env_vars") and isinstance(own["env_vars"], dict):
        own = {**own, "env_vars": {**env["env_vars"], **own["env_vars"]}}
    env.update(own)
    if not env and not submitted and not os.environ.get("RAY_RUNTIME_ENV_HOOK"):
        return None
    from ray._private.runtime_env.submit import JobEnv, merge_with_submitted, run_hook

    if not given.hidden.get("_skip_env_hook"):
        env = run_hook(env)
    return JobEnv(merge_with_submitted(env, submitted))


def _submitted_config(text: str) -> dict:
    import json

    try:
        config = json.loads(text)
        if not isinstance(config, dict) or not all(
            isinstance(config.get(field) or {}, dict) for field in ("metadata", "runtime_env")
        ):
            raise ValueError("expected a JSON object whose metadata and runtime_env are objects")
    except ValueError as error:
        raise ValueError(
            f"RAY_JOB_CONFIG_JSON_ENV_VAR is {text[:200]!r}, which is not a job configuration in "
            f"JSON: {error}"
        ) from None
    return config


class Job:
    """The job of a driver: its description, and the environment that must be uploaded for it."""

    def __init__(self, config: dict, env: JobEnv | None):
        # The description of the job for the node-manager.
        self.config = config
        self.env = env

    @property
    def prints_logs(self) -> bool:
        return self.config["log_to_driver"]


def job_of(given: InitArguments) -> Job:
    config = given.job_config
    if isinstance(config, dict):
        from ray.job_config import JobConfig

        config = JobConfig.from_json(config)
    submitted = {}
    if os.environ.get("RAY_JOB_CONFIG_JSON_ENV_VAR"):
        submitted = _submitted_config(os.environ["RAY_JOB_CONFIG_JSON_ENV_VAR"])
    metadata = {str(k): str(v) for k, v in (submitted.get("metadata") or {}).items()}
    session.global_worker.default_actor_lifetime = None
    namespace = given.namespace
    if config is not None:
        metadata.update(config.metadata)
        namespace = namespace or config.ray_namespace
        session.global_worker.default_actor_lifetime = config.default_actor_lifetime
        # The processes of the job read it there, those of C++ as well.
        if config.default_actor_lifetime == "detached":
            metadata["default_actor_lifetime"] = "detached"
    env_of_workers = {"RAY_DRIVER_RUNTIME": session.RUNTIME}
    if given.logging_config is not None:
        from ray._private.logging_config import to_environment

        env_of_workers.update(to_environment(given.logging_config))
    log = given.log_to_driver
    if log is None:
        log = os.environ.get("RAY_LOG_TO_DRIVER", "1").lower() not in ("0", "false")
    env = _job_env(given, config, submitted.get("runtime_env") or {})
    fields = {
        "ray_namespace": namespace or _random_namespace(),
        "python_executable": os.fsencode(sys.executable or ""),
        "runtime_env": env.json if env else "",
        "sys_path": [
            os.fsencode(entry)
            for entry in _driver_sys_path(bool(env and env.fields.get("working_dir")))
        ],
        "env": env_of_workers,
        "cwd": os.getcwdb(),
        "entrypoint": (" ".join(sys.argv) or "python").encode("utf-8", "backslashreplace"),
        "metadata": metadata,
        "log_to_driver": bool(log),
        "submission_id": os.environ.get("RAY_JOB_SUBMISSION_ID")
        or metadata.get("job_submission_id")
        or "",
        "code_search_path": list(config.code_search_path) if config is not None else [],
    }
    return Job(fields, env)
