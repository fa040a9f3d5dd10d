# Wrong arguments of report().
from conform import show
from ray import train
from training import fit, listing, note, notes, start


def loop():
    def attempt(label, *arguments, **options):
        try:
            note(label, train.report(*arguments, **options))
        except Exception as error:
            note(label, type(error).__name__)

    attempt("nothing")
    attempt("unknown", {}, step=1)
    attempt("fine", {"a": 1})
    # After a failed upload, Ray's next report waits for ever, so this one is the last.
    attempt("missing", {}, checkpoint=train.Checkpoint("/none"))


start()
fit(loop, 1)
notes()
show("folder", lambda: [name for name in listing("run") if not name.startswith("checkpoint_2")])
