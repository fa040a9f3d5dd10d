# Errors of the function in local mode.
import sys

from conform import show
from ray import train
from training import fit


def loop(what):
    if what == "raise":
        raise ValueError("no")
    if what == "exit":
        sys.exit(3)


show("raise", lambda: fit(loop, 0, config="raise"), "no")
show("exit", lambda: fit(loop, 0, config="exit"))
show("fine", lambda: fit(loop, 0, config="").return_value)
