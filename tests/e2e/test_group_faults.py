"""Placement groups while nodes and heads are killed: the short form of group_faults.py."""

import group_faults


def test_groups_survive_nodes_and_heads_that_are_killed():
    group_faults.run(rounds=6, seed=23)
