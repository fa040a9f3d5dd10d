# The Result of a run that reports nothing; the value is that of rank 0.
from conform import show
from ray import train
from training import STORAGE, fit, listing, start


def loop():
    return {"rank": train.get_context().get_world_rank()}


start()
result = fit(loop)
for name in "metrics checkpoint error best_checkpoints metrics_dataframe return_value".split():
    show(name, lambda: getattr(result, name))
show("path", lambda: result.path == str(STORAGE / "run"))
show("filesystem", lambda: type(result.filesystem).__name__)
show("folder", lambda: listing("run"))
show("config", lambda: result.config)
show("best", lambda: result.get_best_checkpoint("loss", "min"))
show("fields", lambda: [part.split("=")[0] for part in repr(result).split("(", 1)[1].split(", ")])
