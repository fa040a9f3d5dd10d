# The values of get_context() on each rank.
from conform import show
from ray import train
from training import fit, note, notes, start

NAMES = (
    "get_world_size get_world_rank get_local_rank get_local_world_size get_node_rank "
    "get_experiment_name"
).split()
REMOVED = "get_metadata get_trial_name get_trial_id get_trial_resources get_trial_dir".split()


def loop():
    context = train.get_context()
    rank = context.get_world_rank()
    for name in NAMES:
        note(rank, f"{name} {getattr(context, name)()}")
    note(rank, f"class {isinstance(context, train.TrainContext)}")
    note(rank, f"checkpoint {train.get_checkpoint()}")
    note(rank, f"preemption {train.get_preemption_info()}")
    for name in REMOVED:
        try:
            getattr(context, name)()
        except BaseException as error:
            note(rank, f"{name} {type(error).__name__}")
    storage = context.get_storage()
    note(rank, f"storage {storage.experiment_dir_name}")
    note(rank, f"storage {storage.storage_fs_path.rpartition('/')[2]}")
    note(rank, f"storage {'/'.join(storage.experiment_fs_path.rsplit('/', 2)[1:])}")
    note(rank, f"storage {type(storage.storage_filesystem).__name__}")


start()
fit(loop, 3, name="a name")
notes()
