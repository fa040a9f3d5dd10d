"""Runs while ranks, controllers and nodes are killed: the short form of train_faults.py."""

import pytest

pytest.importorskip("torch")


def test_runs_end_with_the_weights_of_an_undisturbed_one_whatever_is_killed():
    import train_faults

    train_faults.run(rounds=6, seed=24)
