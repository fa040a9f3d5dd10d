"""ray.job_config.JobConfig: settings of a driver's job."""

from __future__ import annotations

from ray._private.absent import not_in_release


class JobConfig:
    """The metadata, namespace, runtime environment and default actor lifetime of one job."""

    def __init__(
        self,
        jvm_options=None,
        code_search_path=None,
        runtime_env=None,
        metadata=None,
        ray_namespace=None,
        default_actor_lifetime="non_detached",
    ):
        if jvm_options:
            raise not_in_release("Java (jvm_options)")
        if isinstance(code_search_path, str):
            raise TypeError("code_search_path: expected a list of directories")
        self.jvm_options = []
        self.code_search_path = list(code_search_path or [])
        self.metadata = dict(metadata or {})
        self.ray_namespace = ray_namespace
        self.runtime_env: dict = {}
        self.set_runtime_env(runtime_env)
        self.set_default_actor_lifetime(default_actor_lifetime)

    def set_metadata(self, key: str, value: str):
        """Adds one entry to the metadata that the job shows."""
        self.metadata[key] = value

    def set_ray_namespace(self, ray_namespace: str):
        """Sets the namespace of the job; init(namespace=) takes precedence."""
        self.ray_namespace = ray_namespace

    def set_default_actor_lifetime(self, default_actor_lifetime: str):
        """Sets the lifetime of actors created without `lifetime`.

        It is 'detached' or 'non_detached'; raises ValueError for another.
        """
        if default_actor_lifetime not in ("detached", "non_detached"):
            raise ValueError("default_actor_lifetime must be 'detached' or 'non_detached'")
        self.default_actor_lifetime = default_actor_lifetime

    def set_runtime_env(self, runtime_env, validate: bool = False):
        """Sets the environment of the job's workers.

        With `validate`, TypeError and ValueError are raised here instead of in ray.init().
        """
        if validate and runtime_env is not None:
            from ray.runtime_env import RuntimeEnv

            runtime_env = RuntimeEnv(**runtime_env)
        self.runtime_env = runtime_env if runtime_env is not None else {}

    @classmethod
    def from_json(cls, fields: dict) -> "JobConfig":
        """Makes a JobConfig from a dict with the names of the constructor's arguments."""
        return cls(
            **{
                key: fields[key]
                for key in (
                    "jvm_options",
                    "code_search_path",
                    "runtime_env",
                    "metadata",
                    "ray_namespace",
                    "default_actor_lifetime",
                )
                if key in fields
            }
        )
