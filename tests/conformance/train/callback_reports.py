# UserCallback.after_report: once per report of all ranks, with their metrics and the checkpoint.
from ray import train
from ray.train import UserCallback
from training import checkpoint, content, fit, note, notes, start


class Watch(UserCallback):
    def after_report(self, run_context, metrics, checkpoint):
        note("metrics", metrics)
        note("checkpoint", content(checkpoint))
        note("name", run_context.run_config.name)
        note("workers", run_context.scaling_config.num_workers)
        note("config", run_context.train_loop_config)


def loop(config):
    rank = train.get_context().get_world_rank()
    train.report({"rank": rank})
    train.report({"rank": rank}, checkpoint=checkpoint(**{f"f{rank}": 1}))


start()
fit(loop, config={"a": 1}, run={"callbacks": [Watch()]})
notes()
