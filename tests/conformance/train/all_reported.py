# get_all_reported_checkpoints() lists what was registered so far, with metrics and statuses.
from ray import train
from ray.train import CheckpointConfig, CheckpointConsistencyMode
from training import checkpoint, fit, note, notes, start


def loop():
    rank = train.get_context().get_world_rank()

    def look(label, **options):
        found = train.get_all_reported_checkpoints(**options)
        note(
            rank,
            f"{label} "
            + str(
                [
                    (one.checkpoint.path.rpartition("/")[2], one.metrics, one.status.name)
                    for one in found
                ]
            ),
        )

    look("none")
    for step, score in enumerate((3, 5, 1)):
        train.report(
            {"score": score, "rank": rank},
            checkpoint=checkpoint(f=step),
            checkpoint_dir_name=f"step{step}",
        )
        look("all")
    train.report({"score": 9})
    look("metrics")
    look("committed", consistency_mode=CheckpointConsistencyMode.COMMITTED)
    look("timeout", timeout_s=5)
    note(rank, type(train.get_all_reported_checkpoints()[0]).__name__)


start()
fit(loop, run={"checkpoint_config": CheckpointConfig(checkpoint_score_attribute="score")})
notes()
