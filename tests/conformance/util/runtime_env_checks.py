# RuntimeEnv and RuntimeEnvConfig refuse bad values and normalise others.
import json
import ray
from conform import show
from ray.runtime_env import RuntimeEnv, RuntimeEnvConfig

for fields in (
    {"working_dir": "/no/such/dir"},
    {"working_dir": "s3://bucket/a.zip"},
    {"working_dir": "gcs://a"},
    {"working_dir": "ftp://a/b.zip"},
    {"excludes": "a"},
    {"py_modules": "a"},
    {"image_uri": "a", "pip": ["b"]},
    {"pip": [1]},
    {"pip": "/no/such/file"},
    {"pip": {"packages": ["a"], "colour": 1}},
    {"pip": {"pip_check": True}},
    {"config": {"setup_timeout_seconds": 5}},
    {"config": {"setup_timeout_seconds": 0}},
    {"config": 1},
    {"colour": "red"},
    {"env_vars": {"a": None}},
    {"uv": ["a"], "pip": ["b"]},
):
    show(
        repr(fields),
        lambda: {
            key: value
            for key, value in json.loads(RuntimeEnv(**fields).serialize()).items()
            if not key.startswith("_ray")
        },
    )
show("pip", lambda: RuntimeEnv(pip=["a", "b"])["pip"])
show("pip_config", lambda: RuntimeEnv(pip=["a"]).pip_config())
show("get", lambda: RuntimeEnv(env_vars={"a": "b"}).get("env_vars"))
show("get default", lambda: RuntimeEnv().get("env_vars", 3))
show("set", lambda: RuntimeEnv().set("env_vars", [1]))
show("to_dict", lambda: RuntimeEnv(env_vars={"a": "b"}).to_dict())
show(
    "has",
    lambda: (
        RuntimeEnv().has_pip(),
        RuntimeEnv().has_conda(),
        RuntimeEnv().working_dir(),
        RuntimeEnv().py_modules(),
        RuntimeEnv().env_vars(),
    ),
)
show("deserialize", lambda: dict(RuntimeEnv.deserialize('{"env_vars": {"a": "b"}}')))
show("timeout 0", lambda: RuntimeEnvConfig(setup_timeout_seconds=0))
show("timeout -1", lambda: RuntimeEnvConfig(setup_timeout_seconds=-1)["setup_timeout_seconds"])
show("timeout text", lambda: RuntimeEnvConfig(setup_timeout_seconds="1"))
show("eager text", lambda: RuntimeEnvConfig(eager_install="yes"))
show("log_files", lambda: RuntimeEnvConfig(log_files="a"))
