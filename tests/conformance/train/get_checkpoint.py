# get_checkpoint() gives a rank the checkpoint that it reported last itself.
from ray import train
from training import checkpoint, content, fit, note, notes, start


def loop():
    rank = train.get_context().get_world_rank()

    def name():
        saved = train.get_checkpoint()
        return saved and saved.path.rpartition("/")[2]

    note(rank, name())
    train.report({}, checkpoint=checkpoint(f=rank), checkpoint_dir_name="both")
    note(rank, name())
    train.report({}, checkpoint=checkpoint(f=1) if rank else None, checkpoint_dir_name="one")
    note(rank, name())
    train.report({})
    note(rank, name())


start()
fit(loop)
notes()
