"""The submitting side of runtime environments.

Fields are checked and become the JSON that tasks, actors and jobs carry, and the uploads that the
JSON refers to.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import sys
from _blake2 import blake2b

from ray._private.runtime_env.packaging import Upload, py_module_upload, working_dir_upload
from ray._private.runtime_env.schemes import HOOK_SCHEME, SCHEME, scheme_of
from ray.runtime_env import RuntimeEnv

_MAX_JSON = 250_000  # A node-manager accepts 256 KiB (node_manager/core/runtime_env.h).
_warned: set[str] = set()


def checked(env: dict) -> RuntimeEnv:
    """The environment with its fields checked; warns once of each unknown field."""
    made = RuntimeEnv(**env)
    for name, _ in made.plugins():
        if name not in _warned and not os.environ.get("RAY_RUNTIME_ENV_PLUGINS"):
            _warned.add(name)
            logging.getLogger("ray").warning(
                "runtime_env field %s is not recognized by Ray and will be ignored, unless a "
                "plugin of the nodes (RAY_RUNTIME_ENV_PLUGINS) has this name.",
                name,
            )
    return made


def check_task_env(env: dict):
    """Checks an environment where a task's or actor's options are written.

    Raises for bad fields, and for local paths, which can only be uploaded for a job.
    """
    made = checked(env)
    places = [
        ("working_dir", made.get("working_dir")),
        *(("py_modules", module) for module in made.py_modules()),
    ]
    for field, value in places:
        if value and (not isinstance(value, str) or not scheme_of(value)):
            raise ValueError(
                f"{field}: {value!r} is not a URI. Local directories and modules can only be "
                "given for the whole job, in ray.init(runtime_env=...); "
                "tasks and actors take URIs such as that of a job's package."
            )
    if made.get("excludes"):
        raise ValueError(
            "excludes: nothing is uploaded for a task or actor: give it in "
            "ray.init(runtime_env=...)"
        )


def _half_pair(text: str) -> str | None:
    """Returns the first half of a surrogate pair that stands alone in JSON of ASCII characters."""
    if "\\ud" not in text:
        return None
    try:
        json.dumps(json.loads(text), ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        return ascii(error.object[error.start])
    return None


def _to_json(fields: dict) -> str:
    try:
        text = json.dumps(fields, sort_keys=True)
    except TypeError as error:
        raise TypeError(f"runtime_env: {error}: its fields must be values of JSON") from None
    if (half := _half_pair(text)) is not None:
        raise ValueError(
            f"runtime_env: {half} is not text that UTF-8 can express: it is half of a surrogate "
            "pair, which is also what Python makes of a byte that is not UTF-8"
        )
    if len(text) > _MAX_JSON:
        raise ValueError(
            f"runtime_env has {len(text)} bytes as JSON, more than the {_MAX_JSON} that are "
            "accepted: put large data into a file of the working_dir"
        )
    return "" if text == "{}" else text


def _hook_upload(hook) -> Upload:
    from ray import cloudpickle

    # A worker runs the hook before it has a job, whose import paths the hook may need.
    data = cloudpickle.dumps((list(sys.path), cloudpickle.dumps(hook)))
    return Upload(f"_ray_hook_{blake2b(data, digest_size=16).hexdigest()}", data=data)


def _resolve(env: RuntimeEnv, uploads: list[Upload]) -> dict:
    fields = env.to_dict()
    excludes = fields.pop("excludes", None) or []

    def uri(upload: Upload) -> str:
        uploads.append(upload)
        return SCHEME + upload.name

    directory = fields.get("working_dir")
    if directory and not scheme_of(directory):
        fields["working_dir"] = uri(working_dir_upload(directory, excludes))
    if fields.get("py_modules"):
        fields["py_modules"] = [
            module
            if isinstance(module, str) and scheme_of(module)
            else uri(py_module_upload(module, excludes))
            for module in fields["py_modules"]
        ]
    hook = fields.get("worker_process_setup_hook")
    if callable(hook):
        upload = _hook_upload(hook)
        uploads.append(upload)
        fields["worker_process_setup_hook"] = HOOK_SCHEME + upload.name
    return fields


def task_env(env: dict | None) -> str:
    """The JSON of a task's or actor's own environment, "" when it has none.

    Uploads a hook that is a callable, so this process must be connected.
    """
    if not env:
        return ""
    uploads: list[Upload] = []
    text = _to_json(_resolve(checked(env), uploads))
    for upload in uploads:
        upload.send()
    return text


class JobEnv:
    """The environment of a job that is about to start.

    `json` is available at once; send() uploads the packages once the driver is connected.
    """

    def __init__(self, env: dict | None):
        self.uploads: list[Upload] = []
        try:
            self.fields = _resolve(checked(env or {}), self.uploads)
            self.json = _to_json(self.fields)
        except BaseException:
            self.discard()
            raise

    def send(self):
        for upload in self.uploads:
            upload.send()
        self.uploads = []

    def discard(self):
        for upload in self.uploads:
            upload.discard()


def merge_with_submitted(env: dict, submitted: dict) -> dict:
    """Merges a driver's environment into that of the submitted job which runs the driver.

    Raises ValueError when both set the same field, unless RAY_OVERRIDE_JOB_RUNTIME_ENV=1.
    """
    if not submitted:
        return env
    variables, given = dict(submitted.get("env_vars") or {}), dict(env.get("env_vars") or {})
    clash = [name for name in env if name in submitted and name != "env_vars"]
    if not clash and set(variables) & set(given):
        clash = [f"env_vars[{name!r}]" for name in sorted(set(variables) & set(given))]
    if clash and os.environ.get("RAY_OVERRIDE_JOB_RUNTIME_ENV") != "1":
        raise ValueError(
            f"Failed to merge the Job's runtime env {submitted} with a ray.init's runtime env "
            f"{env} because of a conflict in {', '.join(clash)}. Specifying the same "
            "runtime_env fields or the same environment variable keys is not allowed. Set "
            "RAY_OVERRIDE_JOB_RUNTIME_ENV=1 to instruct Ray to combine them, the driver's first."
        )
    merged = {**submitted, **env}
    if variables or given:
        merged["env_vars"] = {**variables, **given}
    return merged


def run_hook(env: dict) -> dict:
    """Passes the driver's environment through RAY_RUNTIME_ENV_HOOK (module.function)."""
    name = os.environ.get("RAY_RUNTIME_ENV_HOOK")
    if not name:
        return env

    module, _, function = name.rpartition(".")
    if not module:
        raise ValueError(
            f"RAY_RUNTIME_ENV_HOOK is {name!r}: the name of a function is needed, such as "
            "my_module.my_function"
        )
    try:
        hook = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise ValueError(
            f"RAY_RUNTIME_ENV_HOOK is {name!r}, which cannot be imported: {error}"
        ) from error
    return hook(env or {}) or {}
