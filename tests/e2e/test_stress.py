"""Random task graphs with arguments near the size of the stores: the short form of stress.py."""

import pytest

import stress


@pytest.mark.parametrize("nodes", (1, 2, 3))
def test_random_task_graphs_give_right_results(nodes):
    stress.run(seed=22, count=nodes, rounds=4)
