# get_dataset_shard of an unknown name is a KeyError.
from ray import train
from training import fit, note, notes, start


def loop():
    for name in ("train", "x"):
        try:
            train.get_dataset_shard(name)
        except KeyError as error:
            note("error", f"KeyError {name in str(error)}")


start()
fit(loop, 1)
notes()
