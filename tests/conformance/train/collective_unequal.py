# One rank calls barrier while the other calls broadcast_from_rank_zero.
# env: RAY_TRAIN_COLLECTIVE_TIMEOUT_S=5
from ray import train
from ray.train import collective
from training import fit, note, notes, start


def loop():
    rank = train.get_context().get_world_rank()
    try:
        note(rank, collective.barrier() if rank else collective.broadcast_from_rank_zero("x"))
    except Exception as error:
        note(rank, f"raises {type(error).__name__}")


start()
fit(loop)
notes()
