# A second run of the same name and path goes on from the latest checkpoint of the first.
from conform import show
from ray import train
from training import checkpoint, content, fit, listing, note, notes, start


def loop(steps):
    rank = train.get_context().get_world_rank()
    saved = train.get_checkpoint()
    note(rank, f"starts with {content(saved)}")
    first = int(content(saved)["f"]) + 1 if saved else 0
    for step in range(first, first + steps):
        train.report({"step": step}, checkpoint=checkpoint(f=step), checkpoint_dir_name=f"s{step}")
    found = train.get_all_reported_checkpoints()
    note(rank, [one.metrics["step"] for one in found])


start()
show("first", lambda: fit(loop, config=2).metrics)
notes()
result = fit(loop, config=1)
notes()
show("second", lambda: result.metrics)
show("best", lambda: [metrics for saved, metrics in result.best_checkpoints])
show("folder", lambda: listing("run"))
