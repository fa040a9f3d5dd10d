# barrier and broadcast_from_rank_zero: values, None, large ones, what others pass.
import ray.train.collective
from ray import train
from ray.train import collective
from training import fit, note, notes, start


def loop():
    rank = train.get_context().get_world_rank()
    note(rank, collective.barrier())
    note(rank, collective.broadcast_from_rank_zero({"from": rank}))
    note(rank, collective.broadcast_from_rank_zero(None if rank == 0 else rank))
    note(rank, len(collective.broadcast_from_rank_zero("x" * 5000 if rank == 0 else None)))
    note(rank, sum(collective.broadcast_from_rank_zero(rank + step) for step in range(20)))
    for label, arguments in {"nothing": (), "two": (1, 2)}.items():
        try:
            collective.broadcast_from_rank_zero(*arguments)
        except TypeError:
            note(rank, label)


start()
fit(loop, 3)
notes()
