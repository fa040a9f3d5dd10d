# TorchConfig and TorchTrainer's arguments.
# needs: torch
import ray
from conform import show
from ray.train import BackendConfig, ScalingConfig
from ray.train.backend import Backend
from ray.train.torch import TorchCheckpoint, TorchConfig, TorchTrainer

show("default", TorchConfig)
show("timeout", lambda: TorchConfig(timeout_s=5).timeout_s)
show("backend", lambda: TorchConfig(backend="x").backend)
show("method", lambda: TorchConfig(init_method="file").init_method)
show("class", lambda: issubclass(TorchConfig().backend_cls, Backend))
show("is a", lambda: isinstance(TorchConfig(), BackendConfig))
show("positional", lambda: TorchConfig("gloo").backend)
show("base", lambda: BackendConfig().backend_cls.__name__)
show("metadata", lambda: TorchTrainer(print, metadata={"a": 1}), "metadata")
show("backend_config", lambda: TorchTrainer(print, backend_config=None), "backend_config")
show("positional", lambda: TorchTrainer(print, {}), "positional")
