"""The programs in the users' document on training and the PyTorch profiler, as printed there.

The document lies beside the tree, as the seed programs do, and is not part of it.
"""

import pathlib
import re

SEEDS = pathlib.Path(__file__).resolve().parents[3] / "shared" / "seeds"
# The document's prose is Chinese; its code is not.
_PROSE = re.compile(r"[\u3000-\u9fff\uff00-\uffef]")
_SHELL = re.compile(r"%%|pip install |tensorboard --|# Once you run the above code")
_ADVANCED = "def train_func_advanced_profiling():"
_BASIC_DRIVER = "# Configure scaling and resource requirements"


def path():
    """Returns the path of the document, or None where it is not there."""
    return next(iter(sorted(SEEDS.glob("002_*.txt"))), None)


def _replace(text, before, after):
    assert before in text, f"the document lacks {before!r}"
    return text.replace(before, after)


def programs(storage_path):
    """Returns the basic and the advanced program, with that storage path and without GPUs.

    The advanced program takes its times from CUDA events, which no machine without a GPU has. They
    become a class on a clock, which is the only further change.
    """
    lines = path().read_text().splitlines()
    code = "\n".join(line for line in lines if not _PROSE.search(line) and not _SHELL.match(line))
    code = _replace(code, '"/mnt/cluster_storage/"', repr(storage_path))
    code = _replace(code, "use_gpu=True", "use_gpu=False")
    at = code.index(_ADVANCED)
    basic, advanced = code[:at], code[code.index("import os") : code.index("def train_func_d")]
    advanced += _CLOCK + code[at:]
    advanced = _replace(advanced, "torch.cuda.Event(enable_timing=True)", "ClockEvent()")
    advanced = _replace(advanced, "torch.cuda.synchronize()", "pass")
    assert _BASIC_DRIVER in basic and _BASIC_DRIVER not in advanced
    return basic, advanced


_CLOCK = """
import time


class ClockEvent:
    def record(self):
        self.time_s = time.monotonic()

    def elapsed_time(self, later):
        return 1000 * (later.time_s - self.time_s)


"""
