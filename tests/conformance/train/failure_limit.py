# More failures than max_failures: the last error is raised; -1 is no limit.
from ray import train
from ray.train import FailureConfig
from training import ROOT, fit, note, show_failure, start


def loop(good):
    note("attempts", 1)
    attempts = len((ROOT / "notes" / "attempts").read_text().split())
    if attempts != good:
        raise ValueError(f"attempt {attempts}")
    return attempts


def with_limit(limit, good):
    value = fit(loop, 1, config=good, run={"failure_config": FailureConfig(max_failures=limit)})
    return value.return_value


start()
show_failure("1", lambda: with_limit(1, 99))
show_failure("-1", lambda: with_limit(-1, 4))
