# FailureConfig, CheckpointConfig and LoggingConfig: defaults, removed options and wrong values.
from conform import show
from ray.train import CheckpointConfig, FailureConfig, LoggingConfig

FAILURE = (
    "max_failures controller_failure_limit max_preemption_failures "
    "relax_collectives_on_preemption preemption_grace_s"
).split()
KEEP = "num_to_keep checkpoint_score_attribute checkpoint_score_order".split()


def fields(config, names):
    return {name: getattr(config, name) for name in names}


show("failure", lambda: fields(FailureConfig(), FAILURE))
show("positional", lambda: FailureConfig(3).max_failures)
show("-1", lambda: FailureConfig(max_failures=-1).max_failures)
show("fail_fast", lambda: FailureConfig(fail_fast=True), "fail_fast")
show("fail_fast False", lambda: FailureConfig(fail_fast=False), "fail_fast")
show(
    "limits",
    lambda: fields(FailureConfig(controller_failure_limit=2, max_preemption_failures=1), FAILURE),
)

show("checkpoint", lambda: fields(CheckpointConfig(), KEEP))
show("one", lambda: CheckpointConfig(num_to_keep=1).num_to_keep)
show("zero", lambda: CheckpointConfig(num_to_keep=0), "num_to_keep", "0")
show("negative", lambda: CheckpointConfig(num_to_keep=-1), "num_to_keep")
show(
    "order",
    lambda: CheckpointConfig(checkpoint_score_order="best"),
    "checkpoint_score_order",
    "max",
)
show("MIN", lambda: CheckpointConfig(checkpoint_score_order="MIN"), "checkpoint_score_order")
show("min", lambda: CheckpointConfig(checkpoint_score_order="min").checkpoint_score_order)
show(
    "nested", lambda: CheckpointConfig(checkpoint_score_attribute="a/b").checkpoint_score_attribute
)
show("frequency", lambda: CheckpointConfig(checkpoint_frequency=1), "checkpoint_frequency")
show("frequency 0", lambda: CheckpointConfig(checkpoint_frequency=0), "checkpoint_frequency")
show("at end", lambda: CheckpointConfig(checkpoint_at_end=False), "checkpoint_at_end")

show("logging", LoggingConfig)
show("debug", lambda: LoggingConfig(log_level="debug").log_level)
show("number", lambda: LoggingConfig(log_level=10), "log_level")
show("unknown", lambda: LoggingConfig(log_level="LOUD"), "log_level", "LOUD")
