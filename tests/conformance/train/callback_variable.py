# RAY_TRAIN_CALLBACKS names more callbacks by module and class; wrong names end fit().
import os
import pathlib
import sys

# Ray makes such an object, but calls no method of a UserCallback.
pathlib.Path("mine.py").write_text(
    """
from ray.train import UserCallback

class First(UserCallback):
    def __init__(self):
        print("first", flush=True)

class Second(UserCallback):
    def __init__(self):
        print("second", flush=True)
"""
)
sys.path.insert(0, os.getcwd())
os.environ["PYTHONPATH"] += ":" + os.getcwd()
from conform import show
from training import fit, start

start()
os.environ["RAY_TRAIN_CALLBACKS"] = "mine.First,mine.Second"
show("both", lambda: fit(lambda: "ran", 1).return_value)
for value in ("mine.Third", "absent_module.First", "builtins.dict", "plain"):
    os.environ["RAY_TRAIN_CALLBACKS"] = value
    show(value, lambda: fit(lambda: "ran", 1), value)
