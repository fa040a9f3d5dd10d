# RuntimeEnv is a dict with checks.
import ray
from conform import show


def make(**kwargs):
    from ray.runtime_env import RuntimeEnv

    return RuntimeEnv(**kwargs)


show("dict", lambda: dict(make(env_vars={"a": "b"})))
show("accessor", lambda: make(env_vars={"a": "b"}).env_vars())
show("bad", lambda: make(env_vars={"a": 1}))
show("pip and conda", lambda: make(pip=["a"], conda="b"))
show("has_pip", lambda: make(pip=["a"]).has_pip())
show("serialize", lambda: make(env_vars={"a": "b"}).serialize())


def config():
    from ray.runtime_env import RuntimeEnvConfig

    return dict(RuntimeEnvConfig())


show("config", config)
