# Each rank's files go into one directory of the report's name; the metrics are those of rank 0.
from conform import show
from ray import train
from training import checkpoint, content, fit, listing, start


def loop():
    rank = train.get_context().get_world_rank()
    for step in range(2):
        saved = checkpoint(**{f"rank{rank}": step, "same": "equal"})
        train.report(
            {"step": step, "rank": rank, "nested": {"a": [1, (2, None)]}},
            checkpoint=saved,
            checkpoint_dir_name=f"step{step}",
        )


start()
result = fit(loop)
show("metrics", lambda: result.metrics)
show("checkpoint", lambda: content(result.checkpoint))
show("path", lambda: result.checkpoint.path == f"{result.path}/step1")
show("folder", lambda: listing("run"))
show("first", lambda: listing("run", "step0"))
show(
    "best",
    lambda: [
        (saved.path.rpartition("/")[2], metrics) for saved, metrics in result.best_checkpoints
    ],
)
