# num_to_keep with a score keeps the best, and always the latest.
from conform import show
from ray import train
from ray.train import CheckpointConfig
from training import checkpoint, fit, listing, note, notes, start


def loop():
    for step, score in enumerate((3, 9, 5, 1, 2)):
        train.report(
            {"eval": {"score": score}},
            checkpoint=checkpoint(f=step),
            checkpoint_dir_name=f"s{score}",
        )
        found = train.get_all_reported_checkpoints()
        note("reported", [one.metrics["eval"]["score"] for one in found])
        note("folder", [name for name in listing("run") if name[0] == "s"])


start()
keep = CheckpointConfig(num_to_keep=2, checkpoint_score_attribute="eval/score")
result = fit(loop, 1, run={"checkpoint_config": keep})
notes()
show("folder", lambda: listing("run"))
show("best", lambda: [metrics for saved, metrics in result.best_checkpoints])
show("latest", lambda: result.metrics)
show("get_best", lambda: result.get_best_checkpoint("eval/score", "max").path.rpartition("/")[2])
show("get_worst", lambda: result.get_best_checkpoint("eval/score", "min").path.rpartition("/")[2])
