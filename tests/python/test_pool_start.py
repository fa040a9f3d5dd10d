"""ray.util.multiprocessing.Pool connects the process by itself where nothing is connected yet."""

import pytest

import ray
from ray.util.multiprocessing import Pool

pytestmark = pytest.mark.usefixtures("no_cluster")


def test_starts_a_cluster_of_its_size():
    with Pool(2) as pool:
        assert ray.cluster_resources()["CPU"] == 2 and pool.map(abs, [-1, 2]) == [1, 2]


def test_a_wrong_number_starts_nothing():
    with pytest.raises(ValueError):
        Pool(0)
    assert not ray.is_initialized()


def test_unreachable_address():
    with pytest.raises(ConnectionError):
        Pool(1, ray_address="127.0.0.1:1")
