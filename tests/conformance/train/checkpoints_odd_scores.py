# Order of checkpoints whose score is no number, infinite or missing, with the order "min".
import math

from conform import show
from ray import train
from ray.train import CheckpointConfig
from training import checkpoint, fit, start

SCORES = {"five": 5, "nan": math.nan, "two": 2.5, "inf": math.inf, "-inf": -math.inf, "none": None}


def loop(order):
    for name, score in SCORES.items():
        metrics = {} if name == "none" else {"score": score}
        train.report(metrics, checkpoint=checkpoint(f=1), checkpoint_dir_name=name)


start()
for order in ("max", "min"):
    keep = CheckpointConfig(checkpoint_score_attribute="score", checkpoint_score_order=order)
    result = fit(loop, 1, name=order, run={"checkpoint_config": keep})
    show(
        order, lambda: [saved.path.rpartition("/")[2] for saved, metrics in result.best_checkpoints]
    )
