"""Tells whether this interpreter has the packages that tests marked `train_extras` need."""

import importlib.metadata
import importlib.util
import re

PACKAGES = ("torchvision", "matplotlib", "tensorboard", "torch_tb_profiler", "numpy")
# The first PyTorch whose profiler exports a timeline of memory.
OLDEST = (2, 1)


def reason_to_skip():
    """Returns why the tests are skipped, or None where the packages are there. It imports nothing,
    because PyTorch alone takes seconds."""
    try:
        version = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        version = "none"
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    if numbers < OLDEST:
        return f"needs PyTorch 2.1 or newer, and here is {version}: make train-extras"
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    return f"needs {', '.join(missing)}: make train-extras" if missing else None
