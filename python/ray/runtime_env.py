"""ray.runtime_env.RuntimeEnv: the environment of the workers of a job, task or actor."""

from __future__ import annotations

import json
import logging
import os
import types
from typing import Any

from ray._private.runtime_env.schemes import ARCHIVES, check_uri, scheme_of

# Ray has no such field.
_FIELDS = (
    "py_modules",
    "py_executable",
    "java_jars",
    "working_dir",
    "conda",
    "pip",
    "uv",
    "container",
    "excludes",
    "env_vars",
    "config",
    "worker_process_setup_hook",
    "preload",
    "image_uri",
    "_nsight",
    "_rocprof_sys",
    "_ray_release",
    "_ray_commit",
    "_inject_current_ray",
)

# The number is limited, because the names travel on a command line.
_MAX_PRELOAD = 100


class RuntimeEnvConfig(dict):
    """How an environment is made.

    setup_timeout_seconds (-1: no limit), eager_install, log_files.
    """

    known_fields = {"setup_timeout_seconds", "eager_install", "log_files"}

    def __init__(
        self,
        setup_timeout_seconds: int = 600,
        eager_install: bool = True,
        log_files: list[str] | None = None,
    ):
        if isinstance(setup_timeout_seconds, bool) or not isinstance(setup_timeout_seconds, int):
            raise TypeError(
                f"setup_timeout_seconds must be of type int, got: {type(setup_timeout_seconds)}"
            )
        if setup_timeout_seconds <= 0 and setup_timeout_seconds != -1:
            raise ValueError(
                "setup_timeout_seconds must be greater than zero or equals to -1, got: "
                f"{setup_timeout_seconds}"
            )
        if not isinstance(eager_install, bool):
            raise TypeError(f"eager_install must be a boolean. got {type(eager_install)}")
        if log_files is not None and not (
            isinstance(log_files, list) and all(isinstance(name, str) for name in log_files)
        ):
            raise TypeError("log_files must be a list of strings or None")
        super().__init__(
            setup_timeout_seconds=setup_timeout_seconds,
            eager_install=eager_install,
            log_files=log_files or [],
        )

    @classmethod
    def parse_and_validate_runtime_env_config(
        cls, config: "dict | RuntimeEnvConfig"
    ) -> "RuntimeEnvConfig":
        """Makes a config of a dict, else raises TypeError. Unknown keys only cause a warning."""
        if isinstance(config, cls):
            return config
        if not isinstance(config, dict):
            raise TypeError(
                "runtime_env['config'] must be of type dict or RuntimeEnvConfig, got: "
                f"{type(config)}"
            )
        unknown = [key for key in config if key not in cls.known_fields]
        if unknown:
            logging.getLogger("ray").warning(
                "The following unknown entries in the runtime_env_config dictionary will be "
                "ignored: %s.",
                unknown,
            )
        return cls(**{key: value for key, value in config.items() if key in cls.known_fields})

    def to_dict(self) -> dict:
        return dict(self)


# One check for each field; it returns the value in the form that is stored.


def _strings(field: str, value) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise TypeError(f"runtime_env['{field}'] must be of type List[str], got {value!r}")
    return value


def _env_vars(field: str, value) -> dict:
    if not isinstance(value, dict):
        raise TypeError(
            f"runtime_env['env_vars'] must be of type Dict[str, str], got {type(value).__name__}"
        )
    for name, text in value.items():
        if not isinstance(name, str) or not isinstance(text, str):
            raise TypeError(
                f"runtime_env['env_vars'] must be of type Dict[str, str], got {name!r}: {text!r}"
            )
        if not name or "=" in name or "\0" in name + text:
            raise ValueError(
                f"runtime_env['env_vars']: {name!r} is not a valid name of an environment "
                "variable, or its value has a null character"
            )
    return dict(value)


def _preload(field: str, value) -> list[str]:
    modules = list(dict.fromkeys(_strings(field, value)))
    for name in modules:
        if not all(part.isidentifier() for part in name.split(".")):
            raise ValueError(
                f"runtime_env['preload']: {name!r} is not the name of a module, such as 'torch' or "
                "'torch.nn'"
            )
    if len(modules) > _MAX_PRELOAD:
        raise ValueError(
            f"runtime_env['preload'] has {len(modules)} modules, more than the {_MAX_PRELOAD} that "
            "are accepted: name one module that imports the others"
        )
    return modules


def _path_or_uri(field: str, value) -> str:
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if not isinstance(value, str):
        raise TypeError(
            f"runtime_env['{field}'] must be a string (either a local path or remote URI), got "
            f"{type(value).__name__}"
        )
    if scheme_of(value):
        check_uri(field, value, ARCHIVES if field == "working_dir" else (*ARCHIVES, ".whl"))
    elif not os.path.exists(os.path.expanduser(value)):
        raise ValueError(f"{field}: {value} is not a valid path.")
    return value


def _py_modules(field: str, value) -> list:
    if not isinstance(value, list):
        raise TypeError(
            "runtime_env['py_modules'] must be of type List of str, path or module, got "
            f"{type(value).__name__}"
        )
    return [
        item if isinstance(item, types.ModuleType) else _path_or_uri(field, item) for item in value
    ]


def _requirements(field: str, value) -> dict:
    check = "pip_check" if field == "pip" else "uv_check"
    known = {
        "packages",
        check,
        f"{field}_version",
        "pip_install_options" if field == "pip" else "uv_pip_install_options",
    }
    if isinstance(value, str):
        try:
            with open(os.path.expanduser(value), encoding="utf-8") as file:
                value = [
                    line.strip()
                    for line in file
                    if line.strip() and not line.lstrip().startswith("#")
                ]
        except OSError as error:
            raise ValueError(
                f"runtime_env['{field}']: the requirements file {value!r} cannot be read: "
                f"{error.strerror}"
            ) from None
    if isinstance(value, list):
        value = {"packages": value}
    if not isinstance(value, dict):
        raise TypeError(
            f"runtime_env['{field}'] must be of type str, List[str] or dict, got "
            f"{type(value).__name__}"
        )
    unknown = set(value) - known
    if unknown:
        raise ValueError(
            f"runtime_env['{field}'] can only have the fields {', '.join(sorted(known))}, got "
            f"{', '.join(sorted(unknown))}"
        )
    if "packages" not in value:
        raise ValueError(f"runtime_env['{field}'] must include the field 'packages', got {value!r}")
    result = {**value, check: value.get(check, False)}
    if isinstance(result["packages"], str):
        result["packages"] = _requirements(field, result["packages"])["packages"]
    for name in known & set(result):
        kind = bool if name == check else str if name.endswith("_version") else None
        if kind is None:
            _strings(f"{field}.{name}", result[name])
        elif not isinstance(result[name], kind) and result[name] is not None:
            raise TypeError(
                f"runtime_env['{field}']['{name}'] must be of type {kind.__name__}, got "
                f"{type(result[name]).__name__}"
            )
    result["packages"] = list(dict.fromkeys(result["packages"]))
    return result


def _conda(field: str, value):
    if not isinstance(value, (str, dict)):
        raise TypeError(
            f"runtime_env['conda'] must be of type dict or str, got {type(value).__name__}"
        )
    return value


def _string(field: str, value) -> str:
    if not isinstance(value, str):
        raise TypeError(f"runtime_env['{field}'] must be of type str, got {type(value).__name__}")
    return value


def _container(field: str, value) -> dict:
    if not isinstance(value, dict) or not isinstance(value.get("image"), str):
        raise TypeError("runtime_env['container'] must be a dict with an 'image'")
    return value


def _hook(field: str, value):
    if not callable(value) and not isinstance(value, str):
        raise TypeError(
            "runtime_env['worker_process_setup_hook'] must be a callable or the name of one "
            f"('module.function'), got {type(value).__name__}"
        )
    return value


_CHECKS = {
    "env_vars": _env_vars,
    "working_dir": _path_or_uri,
    "py_modules": _py_modules,
    "excludes": _strings,
    "pip": _requirements,
    "uv": _requirements,
    "conda": _conda,
    "py_executable": _string,
    "image_uri": _string,
    "container": _container,
    "java_jars": _strings,
    "worker_process_setup_hook": _hook,
    "preload": _preload,
    "config": lambda field, value: RuntimeEnvConfig.parse_and_validate_runtime_env_config(value),
}


class RuntimeEnv(dict):
    """A runtime environment: a dict of its fields, which are checked on assignment.

    Raises TypeError for values of a wrong type, ValueError for bad ones and for fields that
    exclude each other. Unknown keyword arguments are fields of plugins, except `preload`, a list
    of names of modules that workers are forked with. Local paths are read when a job starts with
    the environment (`ray.init(runtime_env=...)`).
    """

    known_fields = set(_FIELDS)

    def __init__(  # Ray's signature
        self,
        *,
        py_modules: list | None = None,
        py_executable: str | None = None,
        working_dir: str | None = None,
        pip: "list[str] | str | dict | None" = None,
        conda: "dict | str | None" = None,
        container: dict | None = None,
        env_vars: dict[str, str] | None = None,
        worker_process_setup_hook: Any = None,
        nsight: Any = None,
        rocprof_sys: Any = None,
        config: "dict | RuntimeEnvConfig | None" = None,
        _validate: bool = True,
        image_uri: str | None = None,
        uv: Any = None,
        **kwargs,
    ):
        super().__init__()
        given = {
            "py_modules": py_modules,
            "py_executable": py_executable,
            "working_dir": working_dir,
            "pip": pip,
            "conda": conda,
            "container": container,
            "env_vars": env_vars,
            "worker_process_setup_hook": worker_process_setup_hook,
            "_nsight": nsight,
            "_rocprof_sys": rocprof_sys,
            "config": config,
            "image_uri": image_uri,
            "uv": uv,
            **kwargs,
        }
        for name, value in given.items():
            if value is not None:
                self[name] = value
        if _validate:
            self._check_exclusions()

    def __setitem__(self, name, value):
        check = _CHECKS.get(name)
        super().__setitem__(name, check(name, value) if check and value is not None else value)

    def set(self, name: str, value: Any) -> None:
        """Sets a field; raises TypeError or ValueError as the constructor does."""
        self[name] = value
        self._check_exclusions()

    def get(self, name, default=None, data_class=None):
        """A field; with `data_class` (a dataclass, or RuntimeEnvConfig) an instance made of it."""
        value = super().get(name, default)
        if data_class is None or value is default and name not in self:
            return value
        return value if isinstance(value, data_class) else data_class(**value)

    def _check_exclusions(self):
        managers = [name for name in ("pip", "uv", "conda") if self.get(name)]
        if len(managers) > 1:
            raise ValueError(
                f"The '{managers[0]}' field and '{managers[1]}' field of runtime_env cannot be "
                "specified at the same time. "
                "Specify the packages of both in one of them."
            )
        for name in ("container", "image_uri"):
            others = set(self) - {name, "config", "env_vars"} - {"_ray_release", "_ray_commit"}
            if self.get(name) and others:
                raise ValueError(
                    f"The '{name}' field currently cannot be used together with other fields of "
                    f"runtime_env. Specified fields: {set(self)}"
                )

    def to_dict(self) -> dict:
        """The fields as plain values."""
        return {
            name: dict(value) if isinstance(value, RuntimeEnvConfig) else value
            for name, value in self.items()
        }

    def serialize(self) -> str:
        """JSON with sorted keys.

        Raises TypeError for local modules and callables: they become URIs only when a job starts.
        """
        return json.dumps(self, sort_keys=True)

    @classmethod
    def deserialize(cls, serialized_runtime_env: str) -> "RuntimeEnv":
        return cls(**json.loads(serialized_runtime_env or "{}"))

    def working_dir(self) -> str:
        return self.get("working_dir", "")

    def working_dir_uri(self) -> str | None:
        return self.get("working_dir")

    def py_modules(self) -> list:
        return list(self.get("py_modules") or [])

    def py_modules_uris(self) -> list:
        return self.py_modules()

    def py_executable(self) -> str | None:
        return self.get("py_executable")

    def java_jars(self) -> list:
        return list(self.get("java_jars") or [])

    def env_vars(self) -> dict[str, str]:
        return dict(self.get("env_vars") or {})

    def nsight(self):
        return self.get("_nsight")

    def has_conda(self) -> bool:
        return bool(self.get("conda"))

    def conda_env_name(self) -> str | None:
        return self.get("conda") if isinstance(self.get("conda"), str) else None

    def conda_config(self) -> str | None:
        return (
            json.dumps(self["conda"], sort_keys=True)
            if isinstance(self.get("conda"), dict)
            else None
        )

    def has_pip(self) -> bool:
        return bool(self.get("pip"))

    def pip_config(self) -> dict:
        return dict(self.get("pip") or {})

    def has_uv(self) -> bool:
        return bool(self.get("uv"))

    def uv_config(self) -> dict:
        return dict(self.get("uv") or {})

    def has_py_container(self) -> bool:
        return bool(self.get("container"))

    def image_uri(self) -> str | None:
        return self.get("image_uri")

    def plugins(self) -> list[tuple[str, Any]]:
        """The fields that this release does not know, which are those of plugins."""
        return [(name, value) for name, value in self.items() if name not in self.known_fields]

    def __reduce__(self):
        return _rebuild, (dict(self),)


def _rebuild(fields: dict) -> RuntimeEnv:
    env = RuntimeEnv()
    # The fields are not checked again, because the paths in them may be those of another machine.
    dict.update(env, fields)
    return env


__all__ = ["RuntimeEnv", "RuntimeEnvConfig"]
