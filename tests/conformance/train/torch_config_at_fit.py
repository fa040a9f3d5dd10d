# A wrong init_method or backend of TorchConfig ends fit() with a ControllerError.
# needs: torch
# timeout: 100
from ray.train import ControllerError
from ray.train.torch import TorchConfig, TorchTrainer
from training import fit, start

start()
for config in (TorchConfig(init_method="file"), TorchConfig(backend="nope")):
    try:
        fit(lambda: 1, 1, cls=TorchTrainer, torch_config=config)
    except ControllerError as error:
        print(type(error).__name__, isinstance(error.controller_failure, Exception))
        print("init_method" in str(error) or "nope" in str(error))
