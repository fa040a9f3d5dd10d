"""Training runs while ranks, controllers and nodes are killed: each run ends with the weights of an
undisturbed one, and leaves nothing behind.

    PYTHONPATH=build/python python3 tests/e2e/train_faults.py [--rounds N] [--seed N]

A head, where driver and controllers are, and two nodes of two CPUs. A run trains a small model on
two ranks, data-parallel over gloo, and saves model and optimizer after each epoch. Each round kills
one thing at a moment that the seed decides (not how the machine schedules it): a rank, the
controller, or a node by its node-manager or its object store, while a group starts, trains, uploads
or ends. A run has a few rounds; its last epochs wait until all of its kills have happened. The
driver starts a run whose controller died again under the same name, as its user would.

Each attempt begins with a checkpoint that is no older than what the reports promise. After each run
the weights are bit for bit those of a run without kills, its folder holds what the record of its
checkpoints names and nothing else, no process of a run lives, no placement group is there,
everything that is offered is free, and no temporary file is left. At the end no process may be left
(cluster.py).
"""

import argparse
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import ray
import ray.train
from cluster import cluster, kill
from ray import _raylet
from ray.train import Checkpoint, CheckpointConfig, FailureConfig, RunConfig, ScalingConfig
from ray.util import placement_group_table
from waiting import eventually, until

NODES, CPUS, RANKS = 2, 2, 2
EPOCHS, BATCHES = 12, 3
MOST_KILLS_OF_A_RUN = 5
# Seconds from one kill to the next one. A start takes about one second, and a cold start with torch
# somewhat more.
LONGEST_PAUSE_S = 1.5
KEPT = 2
SETTLE_S = 60
RUN_S = 300
STRATEGIES = ("PACK", "SPREAD", "STRICT_SPREAD")
KINDS = ("rank", "rank", "controller", "node-manager", "object-store")
OF_A_RUN = ("RayTrainWorker", "TrainController", "SynchronizationActor")


def trains(config):
    """Trains deterministically: what a rank sees follows from the number of ranks, its rank and the
    epoch."""
    import torch
    from ray.train.torch import prepare_model

    rank = ray.train.get_context().get_world_rank()
    place = pathlib.Path(config["place"])
    torch.manual_seed(0)
    model = prepare_model(torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Linear(32, 1)))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    first = 0
    if checkpoint := ray.train.get_checkpoint():
        saved = torch.load(os.path.join(checkpoint.path, f"rank{rank}.pt"))
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        first = saved["epoch"] + 1
    told = place / "reported"
    if told.exists():
        # When all ranks have come to a report, the report two places earlier has been registered.
        assert first >= int(told.read_text()) - 1, (first, told.read_text())
    for epoch in range(first, EPOCHS):
        # All kills happen while the run goes on: an epoch waits for its share of them.
        due = config["kills"] * (epoch + 1) // EPOCHS
        until(lambda: len(os.listdir(place / "kills")) >= due, seconds=RUN_S)
        random_numbers = torch.Generator().manual_seed(epoch * RANKS + rank)
        for _ in range(BATCHES):
            x = torch.randn(8, 16, generator=random_numbers)
            loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        # A killed rank cannot remove a temporary directory of its own, so it uses a fixed one.
        own = place / f"local-{rank}"
        shutil.rmtree(own, ignore_errors=True)
        own.mkdir()
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
        torch.save(state, own / f"rank{rank}.pt")
        ray.train.report({"epoch": epoch}, Checkpoint(own))
        if rank == 0:
            own.with_name("telling").write_text(str(epoch))
            own.with_name("telling").rename(told)
    return {name: value.tolist() for name, value in model.state_dict().items()}


def living(class_name):
    """Returns the ids of the processes of actors with this class name."""
    return [
        actor["pid"]
        for actor in _raylet.list_actors(True)
        if actor["class_name"] == class_name and actor["pid"] and is_running(actor["pid"])
    ]


def is_running(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class TrainFaults:
    def __init__(self, running, rng, scratch):
        self.cluster, self.rng, self.scratch = running, rng, scratch
        self.nodes = [running.join(cpus=CPUS) for _ in range(NODES)]
        self.kills = dict.fromkeys(KINDS, 0)
        self.runs = 0
        # Counts the calls of fit() after a controller died.
        self.restarts = 0

    # ---- kills

    def kill_one(self, over):
        """Kills one thing of the run, as soon as there is one; returns whether it did."""
        kind = self.rng.choice(KINDS)
        share = self.rng.random()
        if kind in ("node-manager", "object-store"):
            victim = self.nodes.pop(int(share * len(self.nodes)))
            self.cluster.kill(victim, f"ray-{kind}")
            self.nodes.append(self.cluster.join(cpus=CPUS))
        else:
            class_name = "RayTrainWorker" if kind == "rank" else "TrainController"
            found = eventually(lambda: over.is_set() or living(class_name), RUN_S, every=0.02)
            if not found or over.is_set():
                return False
            kill(found[int(share * len(found))])
        self.kills[kind] += 1
        return True

    def killing(self, count, place, over, failed):
        try:
            for number in range(count):
                eventually(over.is_set, self.rng.uniform(0, LONGEST_PAUSE_S))
                if not self.kill_one(over):
                    return
                (place / "kills" / str(number)).touch()
        except BaseException as error:  # The main thread raises it.
            failed.append(error)
            over.set()

    # ---- runs

    def fit(self, place, name, kills, strategy):
        from ray.train.torch import TorchTrainer

        trainer = TorchTrainer(
            trains,
            train_loop_config={"place": str(place), "kills": kills},
            scaling_config=ScalingConfig(num_workers=RANKS, placement_strategy=strategy),
            run_config=RunConfig(
                name=name,
                storage_path=str(self.scratch / "storage"),
                failure_config=FailureConfig(max_failures=2 * kills),
                checkpoint_config=CheckpointConfig(num_to_keep=KEPT),
            ),
        )
        return trainer.fit()

    def run(self, kills):
        """Runs the training once with so many kills; returns its weights."""
        name = f"run-{self.runs}"
        self.runs += 1
        place = self.scratch / name
        (place / "kills").mkdir(parents=True)
        strategy = self.rng.choice(STRATEGIES)
        over, failed = threading.Event(), []
        killer = threading.Thread(target=self.killing, args=(kills, place, over, failed))
        killer.start()
        try:
            while True:
                try:
                    result = self.fit(place, name, kills, strategy)
                    break
                except ray.exceptions.ActorDiedError:
                    if failed:
                        raise failed[0] from None
                    self.restarts += 1
        finally:
            over.set()
            killer.join()
        if failed:
            raise failed[0]
        assert len(os.listdir(place / "kills")) == kills
        weights = result.return_value
        self.check_folder(pathlib.Path(result.path))
        shutil.rmtree(place)
        self.await_nothing_left()
        return weights

    def check_folder(self, folder):
        """Checks that the folder holds what the record names, and every checkpoint has the files of
        all ranks."""
        record = json.loads((folder / "checkpoint_manager_snapshot.json").read_text())
        named = {entry["checkpoint_dir_name"] for entry in record["checkpoint_results"]}
        assert len(named) == KEPT, named
        there = set(os.listdir(folder))
        expected = {".validate_storage_marker", "checkpoint_manager_snapshot.json", *named}
        assert there == expected, there ^ expected
        for name in named:
            files = sorted(os.listdir(folder / name))
            assert files == [f"rank{rank}.pt" for rank in range(RANKS)], (name, files)

    def await_nothing_left(self):
        until(lambda: [living(name) for name in OF_A_RUN], lambda found: not any(found), SETTLE_S)
        self.cluster.await_nodes(NODES + 1, SETTLE_S)
        self.cluster.await_idle(SETTLE_S)
        until(
            placement_group_table,
            lambda table: all(entry["state"] == "REMOVED" for entry in table.values()),
            SETTLE_S,
        )
        assert os.listdir(self.scratch / "tmp") == []


@contextlib.contextmanager
def scratch_directory():
    """A directory whose "tmp" is where all processes of the cluster make temporary files."""
    saved = os.environ.get("TMPDIR")
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="rtf-", dir="/tmp"))
    (scratch / "tmp").mkdir()
    os.environ["TMPDIR"] = str(scratch / "tmp")
    # fit() leaves its own handler installed, as Ray does.
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield scratch
    finally:
        signal.signal(signal.SIGINT, handler)
        os.environ.pop("TMPDIR") if saved is None else os.environ.__setitem__("TMPDIR", saved)
        shutil.rmtree(scratch, ignore_errors=True)


def run(rounds, seed):
    print(f"train faults: {rounds} rounds, seed {seed}", flush=True)
    rng = random.Random(seed)
    begin = time.monotonic()
    with scratch_directory() as scratch, cluster(cpus=0) as running:
        faults = TrainFaults(running, rng, scratch)
        running.await_nodes(NODES + 1)
        undisturbed = faults.run(0)
        left = rounds
        while left > 0:
            kills = min(left, rng.randrange(1, MOST_KILLS_OF_A_RUN + 1))
            try:
                weights = faults.run(kills)
                assert weights == undisturbed, (weights, undisturbed)
            except BaseException:
                print(f"train faults: run {faults.runs - 1} of seed {seed} failed", flush=True)
                running.show(["status"], ["train", "list"], ["debug"])
                raise
            left -= kills
        killed = ", ".join(f"{count} {kind}s" for kind, count in faults.kills.items())
        print(
            f"train faults: {faults.runs - 1} runs with the weights of the undisturbed one; killed "
            f"{killed}; {faults.restarts} times fit() was called again; "
            f"{time.monotonic() - begin:.1f} s",
            flush=True,
        )
        assert sum(faults.kills.values()) == rounds


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    arguments = parser.parse_args()
    run(arguments.rounds, arguments.seed)
