# RunConfig: defaults, removed options and wrong values.
import os
import pathlib
import re

os.environ["HOME"] = os.getcwd()
from conform import show
from ray.train import CheckpointConfig, FailureConfig, LoggingConfig, RunConfig, UserCallback

plain = RunConfig()
show("name", lambda: re.sub(r"\d", "9", plain.name))
show("storage_path", lambda: plain.storage_path)
show("failures", lambda: plain.failure_config == FailureConfig())
show("checkpoints", lambda: plain.checkpoint_config == CheckpointConfig())
show("logging", lambda: plain.logging_config == LoggingConfig())
show("callbacks", lambda: plain.callbacks)
show("filesystem", lambda: plain.storage_filesystem)
show("runtime env", lambda: plain.worker_runtime_env)
show("path object", lambda: RunConfig(storage_path=pathlib.Path("/x/y")).storage_path)
show("relative", lambda: RunConfig(storage_path="x/y").storage_path)
show("home", lambda: RunConfig(storage_path="~/y").storage_path)
for name in "sync_config verbose stop progress_reporter log_to_file".split():
    show(name, lambda: RunConfig(**{name: None}), name)
    show(f"{name} given", lambda: RunConfig(**{name: 1}), name)
show("callbacks", lambda: RunConfig(callbacks=[UserCallback()]).callbacks is not None)
show("not a callback", lambda: RunConfig(callbacks=[print]), "UserCallback", "callbacks")
show("a class", lambda: RunConfig(callbacks=[UserCallback]), "UserCallback", "callbacks")
show("none", lambda: RunConfig(callbacks=[]).callbacks)
show("empty name", lambda: RunConfig(name="").name[:9])
show("failure dict", lambda: RunConfig(failure_config={"max_failures": 1}).failure_config)
show("checkpoint dict", lambda: RunConfig(checkpoint_config={"num_to_keep": 1}))
show("unknown", lambda: RunConfig(path="/x"), "path")
