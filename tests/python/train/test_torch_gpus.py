"""Runs with GPUs that are only declared: which rank gets which, and what workers see of them."""

import pytest

pytest.importorskip("torch")

import ray
from ray.train import RunConfig, ScalingConfig
from ray.train.torch import TorchConfig, TorchTrainer


@pytest.fixture
def gpu_cluster(no_cluster):
    ray.init(num_cpus=2, num_gpus=4)


def test_workers_see_the_gpus_of_the_run(gpu_cluster, tmp_path):
    def look():
        import os

        import torch

        from ray.train.torch import get_device, get_devices

        mine = (os.environ["CUDA_VISIBLE_DEVICES"], os.environ["ACCELERATE_TORCH_DEVICE"])
        mine += ([str(device) for device in get_devices()], str(get_device()))
        ranks = [None] * torch.distributed.get_world_size()
        torch.distributed.all_gather_object(ranks, mine)
        return ranks

    # The backend is gloo, because NCCL needs real GPUs.
    ranks = (
        TorchTrainer(
            look,
            torch_config=TorchConfig("gloo"),
            scaling_config=ScalingConfig(
                num_workers=2, use_gpu=True, resources_per_worker={"GPU": 2}
            ),
            run_config=RunConfig(name="run", storage_path=str(tmp_path)),
        )
        .fit()
        .return_value
    )
    visible = ranks[0][0]
    assert sorted(visible.split(",")) == ["0", "1", "2", "3"] and ranks[1][0] == visible
    assert ranks[0][2] == ["cuda:0", "cuda:1"] and ranks[1][2] == ["cuda:2", "cuda:3"]
    assert [rank[1] for rank in ranks] == ["cuda:0", "cuda:2"] == [rank[3] for rank in ranks]
