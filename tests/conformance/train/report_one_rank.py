# A checkpoint of one rank alone is the report's checkpoint; files in folders are merged.
import os
import pathlib

from conform import show
from ray import train
from training import checkpoint, fit, listing, note, notes, start


def loop():
    rank = train.get_context().get_world_rank()
    saved = checkpoint(only="rank 1") if rank == 1 else None
    train.report({"rank": rank}, checkpoint=saved, checkpoint_dir_name="one")
    note(rank, train.get_checkpoint() is not None)
    saved = checkpoint()
    os.makedirs(f"{saved.path}/both/rank{rank}")
    pathlib.Path(saved.path, "both", f"rank{rank}", "file").write_text("x")
    pathlib.Path(saved.path, "both", f"file{rank}").write_text("x")
    train.report({"rank": rank}, checkpoint=saved, checkpoint_dir_name="two")


start()
result = fit(loop)
notes()
show("metrics", lambda: result.metrics)
show("one", lambda: listing("run", "one"))
show(
    "two",
    lambda: sorted(
        str(path.relative_to(result.checkpoint.path))
        for path in pathlib.Path(result.checkpoint.path).rglob("*")
    ),
)
show("best", lambda: [metrics for saved, metrics in result.best_checkpoints])
