"""Measures what a training run costs beside its training: start, report(), restart, and DDP.

    PYTHONPATH=build/python python3 bench/train.py [start] [calls] [restart] [ddp] [--pairs N]
        [--out FILE]

start: the time of fit() of a function that does nothing on two ranks, of the first run of a
cluster and of later ones, and that of `import torch` in a new process, just before. calls: the
time of a report() with metrics only and of a barrier() on two ranks. restart: from the death of a
rank to the first line of the function in the next attempt, where the node has started workers
before. ddp: 1,000 steps of a small model on two ranks, in a run and under torchrun (`python -m
torch.distributed.run`), in alternating pairs with the same interpreter and torch; both measure the
steps alone, from a barrier to a barrier. Runs on any package that is importable as `ray`; prints
and writes {name: value}.
"""

import argparse
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

try:
    import torch
    import torch.distributed
    from torch.nn.parallel import DistributedDataParallel

    import ray
    import ray.train
    from ray.train import FailureConfig, RunConfig, ScalingConfig, collective
    from ray.train.torch import TorchTrainer
except ImportError as missing:
    sys.exit(
        f"bench/train.py: {missing}: it needs torch (Debian: apt-get install python3-torch) and ray "
        "(PYTHONPATH=build/python)"
    )

STEPS, WARM_STEPS = 1000, 50
LATER_STARTS = 5
CALLS = {"report": 300, "barrier": 300}
# The calls of one kind end after so many seconds, since Ray looks at reports only every two
# seconds.
SECONDS_OF_CALLS = 10


def ddp_steps():
    """Returns the seconds of STEPS steps in this rank, whose process group is set up."""
    torch.manual_seed(0)
    model = DistributedDataParallel(
        torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = torch.randn(32, 64), torch.randint(0, 10, (32,))
    for step in range(WARM_STEPS + STEPS):
        if step == WARM_STEPS:
            torch.distributed.barrier()
            begin = time.perf_counter()
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    torch.distributed.barrier()
    return time.perf_counter() - begin


def under_torchrun():
    """The program that torchrun starts twice; rank 0 prints its seconds."""
    torch.distributed.init_process_group("gloo")
    seconds = ddp_steps()
    if torch.distributed.get_rank() == 0:
        print("RESULT", seconds, flush=True)
    torch.distributed.destroy_process_group()


def torchrun():
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2"]
    command += ["--rdzv_backend=c10d", "--rdzv_endpoint=127.0.0.1:0"]
    # Without an entry for some rank, torch 1.13 cannot read its own default with Python 3.11.
    command += ["--redirects=9:0", "--tee=9:0"]
    done = subprocess.run(
        [*command, os.path.abspath(__file__), "under-torchrun"], capture_output=True, text=True
    )
    for line in done.stdout.splitlines():
        if line.startswith("RESULT "):
            return float(line.split()[1])
    raise SystemExit(f"torchrun failed:\n{done.stdout}\n{done.stderr}")


def fit(function, trainer, folder, config=None, max_failures=0):
    with open(os.devnull, "w") as null, contextlib.redirect_stdout(null):
        return trainer(
            function,
            train_loop_config=config or {},
            scaling_config=ScalingConfig(num_workers=2),
            run_config=RunConfig(
                name=f"run-{time.time_ns()}",
                storage_path=folder,
                failure_config=FailureConfig(max_failures=max_failures),
            ),
        ).fit()


def start(trainer, folder):
    """Returns the seconds of `import torch`, of the first fit() and of later ones."""

    def function(config):
        pass

    program = "import time; begin = time.perf_counter(); import torch; "
    program += "print(time.perf_counter() - begin)"
    imported = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    times = []
    for _ in range(1 + LATER_STARTS):
        begin = time.perf_counter()
        fit(function, trainer, folder)
        times.append(time.perf_counter() - begin)
    return float(imported.stdout), times[0], times[1:]


def calls(trainer, folder):
    """Returns the milliseconds of one report() and one barrier()."""

    def function(config):
        took = {}
        for name, call in (
            ("report", lambda: ray.train.report({"loss": 1.0})),
            ("barrier", collective.barrier),
        ):
            call()
            begin, count = time.perf_counter(), 0
            while count < config["calls"][name]:
                call()
                count += 1
                # All ranks must make the same number of calls.
                is_over = time.perf_counter() - begin > config["seconds"]
                if count % 5 == 0 and collective.broadcast_from_rank_zero(is_over):
                    break
            took[name] = (time.perf_counter() - begin) / count * 1e3
        if ray.train.get_context().get_world_rank() == 0:
            with open(config["path"], "w") as file:
                json.dump(took, file)

    path = os.path.join(folder, "calls")
    fit(function, trainer, folder, {"calls": CALLS, "seconds": SECONDS_OF_CALLS, "path": path})
    with open(path) as file:
        return json.load(file)


def restart(trainer, folder):
    """Returns the seconds from the death of rank 1 to the first line of rank 0 in the next
    attempt."""

    def function(config):
        now = time.time()
        died, back = config["path"] + "-died", config["path"] + "-back"
        if os.path.exists(died):
            if ray.train.get_context().get_world_rank() == 0:
                with open(back, "w") as file:
                    file.write(str(now))
            return
        collective.barrier()
        if ray.train.get_context().get_world_rank() == 1:
            with open(died, "w") as file:
                file.write(str(time.time()))
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(600)

    path = os.path.join(folder, f"restart-{time.time_ns()}")
    fit(function, trainer, folder, {"path": path}, max_failures=1)
    with open(path + "-died") as died, open(path + "-back") as back:
        return float(back.read()) - float(died.read())


def ddp(trainer, folder):
    """Returns the seconds of STEPS steps in a run."""

    def function(config):
        seconds = ddp_steps()
        if ray.train.get_context().get_world_rank() == 0:
            with open(config["path"], "w") as file:
                file.write(str(seconds))

    path = os.path.join(folder, f"ddp-{time.time_ns()}")
    fit(function, trainer, folder, {"path": path})
    with open(path) as file:
        return float(file.read())


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("what", nargs="*", default=["start", "calls", "restart", "ddp"])
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--out", default="")
    args = parser.parse_args()
    if args.what == ["under-torchrun"]:
        return under_torchrun()
    results = {"ray": ray.__version__, "torch": torch.__version__}
    ray.init(num_cpus=2, log_to_driver=False)
    with tempfile.TemporaryDirectory() as folder:
        if "start" in args.what:
            imported, first, later = start(TorchTrainer, folder)
            results["import torch s"] = imported
            results["first fit() of a cluster s"] = first
            results["later fit() s"] = statistics.median(later)
            results["later fit(), all s"] = later
        if "calls" in args.what:
            for name, milliseconds in calls(TorchTrainer, folder).items():
                results[f"{name}() on two ranks ms"] = milliseconds
        if "restart" in args.what:
            times = sorted(restart(TorchTrainer, folder) for _ in range(4))
            results["death of a rank to the next attempt s"] = statistics.median(times[:-1])
        if "ddp" in args.what:
            pairs = []
            for number in range(args.pairs):
                both = [lambda: ddp(TorchTrainer, folder), torchrun]
                if number % 2:
                    pairs.append([one() for one in reversed(both)][::-1])
                else:
                    pairs.append([one() for one in both])
                print(f"pair {number}: run {pairs[-1][0]:.3f} s, torchrun {pairs[-1][1]:.3f} s")
            for name, times in zip(("in a run", "under torchrun"), zip(*pairs)):
                results[f"{STEPS} steps of DDP {name} s"] = statistics.median(times)
                results[f"{STEPS} steps of DDP {name}, all s"] = times
    ray.shutdown()
    for name, value in results.items():
        print(f"{name:50s} {value}")
    if args.out:
        with open(args.out, "w") as out:
            json.dump(results, out, indent=1)


if __name__ == "__main__":
    main()
