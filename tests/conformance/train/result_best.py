# Result.get_best_checkpoint: metrics, modes, nested names and errors.
from conform import show
from ray import train
from training import checkpoint, fit, start


def loop():
    for step, loss in enumerate((3, 1, 2)):
        train.report(
            {"loss": loss, "eval": {"acc": step}, "text": "x"},
            checkpoint=checkpoint(f=step),
            checkpoint_dir_name=f"s{step}",
        )
    train.report({"loss": 0, "late": 1})


start()
result = fit(loop, 1)


def best(*arguments):
    return result.get_best_checkpoint(*arguments).path.rpartition("/")[2]


show("min", lambda: best("loss", "min"))
show("max", lambda: best("loss", "max"))
show("nested", lambda: best("eval/acc", "min"))
show("unknown", lambda: best("nope", "min"), "nope")
show("only in metrics", lambda: best("late", "min"), "late")
show("mode", lambda: best("loss", "best"), "max", "min")
show("no mode", lambda: best("loss"))
show("metrics", lambda: result.metrics)
