# RAY_TRAIN_COLLECTIVE_TIMEOUT_S: a rank that does not come ends the others' wait.
# env: RAY_TRAIN_COLLECTIVE_TIMEOUT_S=1
from ray import train
from ray.train import collective
from training import fit, note, notes, show_failure, start


def loop(call):
    if train.get_context().get_world_rank() == 0:
        try:
            collective.barrier() if call == "barrier" else train.report({})
        except Exception as error:
            note("rank 0", "raises")
            note("rank 0", f"names the rank {'1' in str(error)}")


start()
show_failure("barrier", lambda: fit(loop, config="barrier").metrics)
notes()
