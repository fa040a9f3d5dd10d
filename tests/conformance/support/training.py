"""Training runs for the programs of train/, in the program's own folder.

It runs on Ray as well, so it uses nothing but Ray's public API.
"""

import os
import pathlib
import tempfile

# Ray's controller looks for reports and for failures at this interval instead of every 2 s.
os.environ.setdefault("RAY_TRAIN_HEALTH_CHECK_INTERVAL_S", "0.1")

import ray
from conform import facts
from ray.train import Checkpoint, RunConfig, ScalingConfig, TrainingFailedError
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

# The program's folder, on the driver and on the workers, which inherit the variable.
ROOT = pathlib.Path(os.environ["TMPDIR"]).parent
STORAGE = ROOT / "results"


def start(cpus=4):
    """Starts a cluster that has room for a few workers."""
    ray.init(num_cpus=cpus, include_dashboard=False)


def trainer(
    function, workers=2, *, name="run", config=None, cls=DataParallelTrainer, run=None, **options
):
    """A trainer whose run is called `name`.

    Args:
        function: the training function.
        workers: their number, or a ScalingConfig.
        name: of the run.
        config: what the function is called with.
        cls: the class of the trainer.
        run: further arguments of the RunConfig.
        options: further arguments of the trainer.
    """
    if not isinstance(workers, ScalingConfig):
        workers = ScalingConfig(num_workers=workers)
    return cls(
        function,
        train_loop_config=config,
        scaling_config=workers,
        run_config=RunConfig(**{"name": name, "storage_path": str(STORAGE), **(run or {})}),
        **options,
    )


def fit(*arguments, **options):
    """Makes a trainer with the arguments of `trainer` and runs it; returns the Result."""
    return trainer(*arguments, **options).fit()


def show_failure(label, call, *words):
    """Calls `call` and prints the error of the run: its classes, and the failure of each rank.

    Args:
       label: begins the line.
       call: takes no arguments.
       words: for each of them the line says whether the error's text contains it.
    """
    try:
        value = call()
    except TrainingFailedError as error:
        found = {
            rank: f"{facts(failure)}: {failure}"
            for rank, failure in sorted(getattr(error, "worker_failures", {}).items())
        }
        has = "".join(f" [{word}: {'yes' if word in str(error) else 'no'}]" for word in words)
        print(f"{label}: raises {facts(error)} {found}{has}", flush=True)
    else:
        print(f"{label}: {value!r}", flush=True)


def checkpoint(**files):
    """A checkpoint in a new temporary directory; `files` maps names to texts."""
    path = tempfile.mkdtemp()
    for name, text in files.items():
        pathlib.Path(path, name).write_text(str(text))
    return Checkpoint(path)


def content(saved):
    """Maps the names of a checkpoint's files to their texts; None without a checkpoint."""
    if saved is None:
        return None
    with saved.as_directory() as path:
        return {file.name: file.read_text() for file in sorted(pathlib.Path(path).iterdir())}


def listing(*parts):
    """The names in a folder below the storage path, hidden ones too."""
    return sorted(os.listdir(STORAGE.joinpath(*parts)))


def note(key, value):
    """Leaves a value on a worker, for `notes` on the driver."""
    folder = ROOT / "notes"
    folder.mkdir(exist_ok=True)
    with open(folder / str(key), "a") as file:
        file.write(f"{value}\n")


def notes():
    """Prints what was noted so far, and forgets it."""
    for file in sorted((ROOT / "notes").iterdir()):
        for line in file.read_text().splitlines():
            print(f"  {file.name}: {line}", flush=True)
        file.unlink()
