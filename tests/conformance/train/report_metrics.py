# Metrics without a checkpoint are in no Result and on no disk.
from conform import show
from ray import train
from training import fit, listing, note, notes, start


def loop():
    rank = train.get_context().get_world_rank()
    for step in range(3):
        note(rank, train.report({"loss": 1 / (step + 1), "rank": rank}))
    note(rank, train.get_checkpoint())
    note(rank, train.get_all_reported_checkpoints())


start()
result = fit(loop)
notes()
show("metrics", lambda: result.metrics)
show("best", lambda: result.best_checkpoints)
show("folder", lambda: listing("run"))
