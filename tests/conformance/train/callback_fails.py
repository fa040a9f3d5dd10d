# A callback that raises ends the run with a ControllerError.
from ray import train
from ray.train import ControllerError, UserCallback
from training import fit, start


class Bad(UserCallback):
    def after_report(self, run_context, metrics, checkpoint):
        raise ValueError("bad callback")


def loop():
    train.report({"a": 1})
    train.report({"a": 2})
    return "value"


start()
try:
    print(fit(loop, 1, run={"callbacks": [Bad()]}).return_value)
except ControllerError as error:
    print(
        type(error).__name__, "bad callback" in str(error), type(error.controller_failure).__name__
    )
