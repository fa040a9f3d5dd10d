"""ray.train.torch in one process, with a session made by hand: no cluster, no process group."""

import os
import random
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

import ray.train.torch as train_torch  # noqa: E402
from ports import free_port  # noqa: E402
from ranks_by_hand import become_rank  # noqa: E402
from ray.train import RunConfig, ScalingConfig  # noqa: E402
from ray.train.backend import BackendConfig  # noqa: E402
from ray.train.interfaces import addresses, interface_of  # noqa: E402
from ray.train.session import set_session  # noqa: E402
from ray.train.torch import process_group  # noqa: E402
from ray.train.torch.config import TorchBackend  # noqa: E402
from ray.train.torch.devices import positions  # noqa: E402


@pytest.fixture
def session():
    """session(world_size, **changes) makes this process rank 0 of `world_size` ranks."""
    yield become_rank
    set_session(None)


def numbers(count=10):
    return TensorDataset(torch.arange(count))


def run_python(program):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_imports_bring_no_torch():
    run_python(
        "import sys, ray.train.torch, ray.train.torch.config\n"
        "from ray.train.torch import TorchConfig, TorchTrainer\n"
        "assert 'torch' not in sys.modules and 'numpy' not in sys.modules\n"
        "assert set(dir(ray.train.torch)) >= set(ray.train.torch.__all__)"
    )


def test_without_torch_the_import_says_what_to_install():
    text = run_python(
        "import sys; sys.modules['torch'] = None\n"
        "try:\n    import ray.train.torch\n"
        "except ModuleNotFoundError as error:\n    print(error.name, error)"
    )
    assert text.startswith("torch ") and "python3-torch" in text


def test_all_names_are_there():
    for name in train_torch.__all__:
        assert getattr(train_torch, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        train_torch.nonsense


def test_trainer_chooses_the_backend():
    given = train_torch.TorchConfig()
    assert given == train_torch.TorchConfig(backend=None, init_method="env", timeout_s=1800)
    for scaling, backend in ((None, "gloo"), (ScalingConfig(use_gpu=True), "nccl")):
        trainer = train_torch.TorchTrainer(print, torch_config=given, scaling_config=scaling)
        assert trainer.backend_config.backend == backend and given.backend is None
    own = train_torch.TorchConfig(backend="mpi")
    assert train_torch.TorchTrainer(print, torch_config=own).backend_config.backend == "mpi"


@pytest.mark.parametrize(
    "given",
    [
        {"torch_config": BackendConfig()},
        {"scaling_config": {"num_workers": 2}},
        {"run_config": ScalingConfig()},
        {"dataset_config": RunConfig()},
    ],
)
def test_trainer_refuses_other_classes(given):
    with pytest.raises(ValueError, match=next(iter(given))):
        train_torch.TorchTrainer(print, **given)


def test_removed_functions():
    for name in ("accelerate", "backward", "prepare_optimizer"):
        with pytest.raises(DeprecationWarning, match=name):
            getattr(train_torch, name)(torch.nn.Linear(1, 1))


def test_outside_of_a_training_function():
    set_session(None)
    for call in (
        train_torch.get_device,
        train_torch.get_devices,
        lambda: train_torch.prepare_model(torch.nn.Linear(1, 1)),
        lambda: train_torch.prepare_data_loader(DataLoader(numbers())),
    ):
        with pytest.raises(RuntimeError, match="training function"):
            call()


def test_devices(session, monkeypatch):
    session()
    assert train_torch.get_devices() == [torch.device("cpu")] == [train_torch.get_device()]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,5,7")
    session(gpu_ids=["7", "5"])
    assert train_torch.get_devices() == [torch.device("cuda:2"), torch.device("cuda:1")]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a, GPU-b")
    assert positions(["GPU-b"]) == [1]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    with pytest.raises(RuntimeError, match="CUDA_VISIBLE_DEVICES=1 hides 0"):
        positions(["0"])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert positions(["3"]) == [3]


def test_prepare_model_alone(session):
    session()
    model = torch.nn.Linear(1, 1)
    assert train_torch.prepare_model(model) is model
    assert train_torch.prepare_model(model, parallel_strategy="fsdp") is model
    moved = train_torch.prepare_model(model, move_to_device=torch.device("meta"))
    assert moved.weight.device.type == "meta"


def test_prepare_model_leaves_a_model_where_it_is(session):
    session()
    model = torch.nn.Linear(1, 1, device="meta")
    assert train_torch.prepare_model(model, move_to_device=False).weight.device.type == "meta"


def test_prepare_model_with_several_workers(session):
    session(2)
    model = torch.nn.Linear(1, 1)
    assert train_torch.prepare_model(model, parallel_strategy=None) is model
    with pytest.raises(ValueError, match="parallel_strategy='other'"):
        train_torch.prepare_model(model, parallel_strategy="other")
    with pytest.raises(RuntimeError, match="use_gpu=True"):
        train_torch.prepare_model(model, parallel_strategy="fsdp")


def test_enable_reproducibility(monkeypatch):
    numpy = pytest.importorskip("numpy")
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", "")
    benchmark = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = True
    try:
        seen = []
        for _ in range(2):
            train_torch.enable_reproducibility(7)
            seen.append((torch.rand(1).item(), random.random(), numpy.random.rand()))
        assert seen[0] == seen[1]
        assert torch.are_deterministic_algorithms_enabled()
        assert torch.backends.cudnn.benchmark is False
        assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
    finally:
        torch.use_deterministic_algorithms(False)
        torch.backends.cudnn.benchmark = benchmark


@pytest.mark.parametrize(
    ("seed", "error"),
    [(None, TypeError), ("1", TypeError), (1.0, TypeError), (-1, ValueError), (2**32, ValueError)],
)
def test_a_seed_that_cannot_be_one(seed, error):
    before = torch.initial_seed()
    with pytest.raises(error, match=r"enable_reproducibility\(seed=.*: the seed must be"):
        train_torch.enable_reproducibility(seed)
    assert torch.initial_seed() == before
    assert not torch.are_deterministic_algorithms_enabled()


def test_torch_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    model = torch.nn.Linear(2, 1)
    state = {f"module.{name}": value for name, value in model.state_dict().items()}
    other = torch.nn.Linear(2, 1)
    checkpoint = train_torch.TorchCheckpoint.from_state_dict(state)
    assert torch.equal(checkpoint.get_model(other).weight, model.weight)
    with pytest.raises(ValueError, match="parameters only"):
        checkpoint.get_model()
    whole = train_torch.TorchCheckpoint.from_model(model)
    assert torch.equal(whole.get_model().weight, model.weight)


def test_interfaces():
    assert interface_of("127.0.0.1") == "lo" and interface_of("203.0.113.7") is None
    assert ("lo", "127.0.0.1") in list(addresses())


@pytest.fixture
def clean_environment(monkeypatch):
    for name in (
        "GLOO_SOCKET_IFNAME NCCL_SOCKET_IFNAME ACCELERATE_TORCH_DEVICE MASTER_ADDR MASTER_PORT "
        "TORCH_NCCL_ASYNC_ERROR_HANDLING TORCH_NCCL_BLOCKING_WAIT"
    ).split():
        # monkeypatch restores the old value when the test has ended.
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    return monkeypatch


def test_preparation_sets_the_environment(session, clean_environment):
    session(2)
    port = process_group.prepare("gloo")
    assert 0 < port < 65536
    assert os.environ["GLOO_SOCKET_IFNAME"] == os.environ["NCCL_SOCKET_IFNAME"] == "lo"
    assert os.environ["ACCELERATE_TORCH_DEVICE"] == "cpu"
    assert "TORCH_NCCL_ASYNC_ERROR_HANDLING" not in os.environ
    session(2, world_rank=1)
    assert process_group.prepare("nccl") is None
    assert os.environ["TORCH_NCCL_ASYNC_ERROR_HANDLING"] == "1"


def test_preparation_respects_the_user(session, clean_environment):
    session(2)
    clean_environment.setenv("GLOO_SOCKET_IFNAME", "eth7")
    clean_environment.setenv("TORCH_NCCL_BLOCKING_WAIT", "1")
    process_group.prepare("nccl")
    assert os.environ["GLOO_SOCKET_IFNAME"] == "eth7"
    assert "TORCH_NCCL_ASYNC_ERROR_HANDLING" not in os.environ


def test_a_torch_without_distributed(session, clean_environment):
    session()
    clean_environment.setattr(torch.distributed, "is_available", lambda: False)
    with pytest.raises(RuntimeError, match="without torch.distributed"):
        process_group.prepare("gloo")


@pytest.mark.parametrize("method", ["env", "tcp"])
def test_a_group_of_one(session, clean_environment, method):
    session()
    config = train_torch.TorchConfig("gloo", method)
    port = process_group.prepare("gloo")
    process_group.enter(config, ("127.0.0.1", port))
    try:
        assert torch.distributed.get_world_size() == 1
        assert ("MASTER_PORT" in os.environ) == (method == "env")
        process_group.leave()
        # Only groups of several ranks are destroyed.
        assert torch.distributed.is_initialized()
    finally:
        process_group.leave(1)
    assert not torch.distributed.is_initialized()


def test_a_wrong_init_method_is_refused_before_anything():
    config = train_torch.TorchConfig(init_method="file")
    with pytest.raises(ValueError, match="init_method='file'"):
        TorchBackend().on_start(None, config)


def test_the_training_thread_is_limited(session, monkeypatch):
    session()
    before = torch.get_num_threads()
    monkeypatch.setenv("OMP_NUM_THREADS", str(before + 1))
    try:
        with process_group.training_thread():
            assert torch.get_num_threads() == before + 1
        monkeypatch.setenv("OMP_NUM_THREADS", "4,2")
        with process_group.training_thread():
            assert torch.get_num_threads() == before + 1
    finally:
        torch.set_num_threads(before)


def test_local_mode_under_torchrun(clean_environment):
    """num_workers=0 in a process that has the variables of torchrun enters the group of
    torchrun."""

    def train():
        return torch.distributed.get_world_size(), train_torch.get_device().type

    port = free_port()
    environment = {
        "RANK": "0",
        "WORLD_SIZE": "1",
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    trainer = train_torch.TorchTrainer(train, scaling_config=ScalingConfig(num_workers=0))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        assert trainer.fit().return_value == (1, "cpu")
    assert not torch.distributed.is_initialized()
    alone = train_torch.TorchTrainer(
        torch.distributed.is_initialized, scaling_config=ScalingConfig(num_workers=0)
    )
    assert alone.fit().return_value is False


def test_prepare_model_on_a_gpu(session, monkeypatch):
    """Checks the arguments of the wrapper on a worker with a GPU, which the torch here cannot
    use."""
    session(2, gpu_ids=["3"])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,3")
    seen = []

    def wrapper(model, **options):
        seen.append(options)
        return model

    wrapper.__name__ = "DistributedDataParallel"
    monkeypatch.setattr("ray.train.torch.model.DistributedDataParallel", wrapper)
    model = torch.nn.Linear(1, 1, device="meta")
    device = torch.device("cuda:1")
    train_torch.prepare_model(model, move_to_device=False)
    own = {"output_device": None, "bucket_cap_mb": 7}
    train_torch.prepare_model(model, move_to_device=False, parallel_strategy_kwargs=own)
    assert seen == [
        {"device_ids": [device], "output_device": device},
        {"device_ids": [device], **own},
    ]
