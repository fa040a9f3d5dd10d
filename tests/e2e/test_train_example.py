"""The example of docs/training.md, docs/examples/train_fashion_mnist.py, run as a person would run
it."""

import importlib.util
import re
import subprocess
import sys

import fashion_mnist
import pytest
from shell import REPO

EXAMPLE = REPO / "docs" / "examples" / "train_fashion_mnist.py"
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torchvision") is None, reason="torchvision is not installed"
)


def test_it_trains_and_goes_on(shell, tmp_path):
    fashion_mnist.write(tmp_path / "data", train=1280, test=200)

    def run(epochs):
        words = ["--data", "data", "--storage", "runs", "--epochs", epochs]
        done = subprocess.run(
            [sys.executable, EXAMPLE, *map(str, words)],
            env=shell.env,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=200,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    said = run(3)
    assert [int(epoch) for epoch in re.findall(r"Epoch (\d+): accuracy", said)] == [0, 1, 2]
    assert float(re.search(r"^accuracy (\S+),", said, re.MULTILINE)[1]) > 0.9
    said = run(4)
    assert re.findall(r"Epoch (\d+): accuracy", said) == ["3"]
    assert str(tmp_path / "runs" / "fashion" / "checkpoint_") in said
    assert len(list((tmp_path / "runs" / "fashion").glob("checkpoint_*/state.pt"))) == 2
