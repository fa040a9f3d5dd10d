"""prepare_data_loader() in one process, with a session made by hand."""

import collections

import pytest

torch = pytest.importorskip("torch")

from torch.utils.data import DataLoader, IterableDataset, RandomSampler, TensorDataset  # noqa: E402
from torch.utils.data.distributed import DistributedSampler  # noqa: E402

import ray.train.torch as train_torch  # noqa: E402
from ranks_by_hand import become_rank  # noqa: E402
from ray.train.session import get_session, set_session  # noqa: E402
from ray.train.torch.data_loader import PreparedDataLoader  # noqa: E402


@pytest.fixture
def session():
    """session(world_size, **changes) makes this process rank 0 of `world_size` ranks."""
    yield become_rank
    set_session(None)


def numbers(count=10):
    return TensorDataset(torch.arange(count))


def values(loader):
    return [batch[0].tolist() for batch in loader]


@pytest.mark.parametrize("shuffle", [False, True])
def test_a_loader_is_divided(session, shuffle):
    parts = []
    for rank in (0, 1):
        session(2, world_rank=rank)
        loader = DataLoader(numbers(), batch_size=3, shuffle=shuffle)
        prepared = train_torch.prepare_data_loader(loader)
        assert isinstance(prepared, DataLoader) and prepared.batch_size == 3
        assert isinstance(prepared.sampler, DistributedSampler)
        assert prepared.sampler.shuffle is shuffle and prepared.dataset is loader.dataset
        assert len(prepared) == 2
        parts.append([value for batch in values(prepared) for value in batch])
    assert sorted(parts[0] + parts[1]) == list(range(10))
    if not shuffle:
        assert parts[0] == [0, 2, 4, 6, 8]


def test_epochs_shuffle_anew(session):
    session(2)
    prepared = train_torch.prepare_data_loader(DataLoader(numbers(100), shuffle=True))
    first = values(prepared)
    assert values(prepared) == first
    prepared.sampler.set_epoch(1)
    assert values(prepared) != first


def test_options_of_a_loader_stay(session):
    session(2)

    def collate(rows):
        return [torch.stack([row[0] for row in rows]) * 2]

    def begin(worker):
        pass

    generator = torch.Generator()
    loader = DataLoader(
        numbers(),
        batch_size=3,
        num_workers=1,
        collate_fn=collate,
        drop_last=True,
        timeout=5,
        worker_init_fn=begin,
        generator=generator,
        prefetch_factor=3,
        persistent_workers=True,
        multiprocessing_context="fork",
    )
    prepared = train_torch.prepare_data_loader(loader)
    for name in (
        "num_workers collate_fn drop_last timeout worker_init_fn generator pin_memory "
        "prefetch_factor persistent_workers multiprocessing_context batch_size"
    ).split():
        assert getattr(prepared, name) == getattr(loader, name), name
    assert values(prepared) == [[0, 4, 8]]


class Walked(IterableDataset):
    def __iter__(self):
        return iter([torch.zeros(1), torch.ones(1)])


def test_loaders_that_are_not_divided(session):
    session()
    alone = DataLoader(numbers(), batch_size=3, shuffle=True)
    prepared = train_torch.prepare_data_loader(alone)
    assert prepared is not alone and prepared.sampler is alone.sampler
    assert train_torch.prepare_data_loader(alone, move_to_device=False) is alone
    session(2)
    kept = train_torch.prepare_data_loader(alone, add_dist_sampler=False)
    assert kept.sampler is alone.sampler
    own = DistributedSampler(numbers(), num_replicas=2, rank=1)
    divided = DataLoader(numbers(), sampler=own)
    assert train_torch.prepare_data_loader(divided).sampler is own
    assert len(list(train_torch.prepare_data_loader(DataLoader(Walked(), batch_size=2)))) == 1


@pytest.mark.parametrize("rank", [0, 1])
def test_another_sampler_is_replaced_and_rank_0_says_so(session, caplog, rank):
    session(2, world_rank=rank)
    loader = DataLoader(numbers(), sampler=torch.utils.data.SubsetRandomSampler([1, 2]))
    assert isinstance(train_torch.prepare_data_loader(loader).sampler, DistributedSampler)
    assert ("SubsetRandomSampler" in caplog.text) == (rank == 0)
    caplog.clear()
    train_torch.prepare_data_loader(DataLoader(numbers(), sampler=RandomSampler(numbers())))
    assert caplog.text == ""


def test_batch_samplers(session):
    session(2)
    sampler = torch.utils.data.BatchSampler(RandomSampler(numbers()), 4, drop_last=True)
    prepared = train_torch.prepare_data_loader(DataLoader(numbers(), batch_sampler=sampler))
    assert prepared.batch_size == 4 and prepared.drop_last and len(values(prepared)) == 1
    with pytest.raises(ValueError, match="add_dist_sampler=False"):
        train_torch.prepare_data_loader(DataLoader(numbers(), batch_sampler=[[0, 1], [2]]))
    single = train_torch.prepare_data_loader(DataLoader(numbers(), batch_size=None))
    assert [int(row[0]) for row in single] == [0, 2, 4, 6, 8]


def test_only_a_data_loader_is_prepared(session):
    session()
    with pytest.raises(TypeError, match="not a list"):
        train_torch.prepare_data_loader([1, 2])


class Table(dict):
    pass


class Moves:
    def to(self, device):
        return ("moved", device)


def test_tensors_move_wherever_they_are(session, monkeypatch):
    """A stand-in replaces the device: the method `to` of every object that has one is called."""
    session()
    pair = collections.namedtuple("Pair", "a b")
    batch = pair(
        torch.ones(1),
        {"s": "text", "l": [torch.ones(1), 3, None], "t": Table(k=(torch.ones(1),)), "m": Moves()},
    )
    monkeypatch.setattr("ray.train.torch.data_loader.get_device", lambda: torch.device("meta"))
    loader = DataLoader([0], collate_fn=lambda rows: batch)
    (moved,) = list(train_torch.prepare_data_loader(loader))
    assert type(moved) is pair and moved.a.device.type == "meta"
    assert moved.b["s"] == "text" and moved.b["l"][0].device.type == "meta"
    assert moved.b["l"][1:] == [3, None]
    assert type(moved.b["t"]) is Table and moved.b["t"]["k"][0].device.type == "meta"
    assert moved.b["m"] == ("moved", torch.device("meta"))


def test_packed_sequences_move_as_a_whole(session):
    session()
    packed = torch.nn.utils.rnn.pack_sequence([torch.ones(2), torch.ones(1)])
    loader = DataLoader([0], collate_fn=lambda rows: packed)
    (moved,) = list(train_torch.prepare_data_loader(loader))
    assert type(moved) is type(packed) and moved.data.tolist() == [1, 1, 1]


def test_one_batch_is_fetched_ahead(session):
    session()
    asked = []

    class Noted(torch.utils.data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            asked.append(index)
            return index

    prepared = train_torch.prepare_data_loader(DataLoader(Noted()))
    batches = iter(prepared)
    next(batches)
    assert asked == [0, 1]
    assert [int(batch) for batch in batches] == [1, 2, 3] and asked == [0, 1, 2, 3]
    assert prepared.wait_s > 0
    assert get_session().times.to_dict()["data_s"] == round(prepared.wait_s, 6)
    assert [int(batch) for batch in prepared] == [0, 1, 2, 3]


class Recorded:
    """Stands for CUDA where there is none: notes in order what would have happened."""

    def __init__(self, monkeypatch):
        self.notes = []
        note = self.notes.append

        class Stream:
            def __init__(self, device):
                note("copies have a stream")

            def wait_stream(self, stream):
                note("computing waits for the copy")

        class Use:
            def __init__(self, stream):
                pass

            def __enter__(self):
                note("copy")

            def __exit__(self, *error):
                pass

        computing = Stream.__new__(Stream)
        monkeypatch.setattr(torch.cuda, "Stream", Stream)
        monkeypatch.setattr(torch.cuda, "stream", Use)
        monkeypatch.setattr(torch.cuda, "current_stream", lambda device: computing)
        monkeypatch.setattr(torch.Tensor, "record_stream", lambda tensor, s: note("recorded"))


def test_copies_to_a_gpu_run_beside_its_computations(monkeypatch):
    recorded = Recorded(monkeypatch)
    loader = DataLoader([0, 1], collate_fn=lambda rows: {"x": [torch.tensor(rows)]})
    prepared = PreparedDataLoader(loader, torch.device("cpu"), beside=True)
    for batch in prepared:
        recorded.notes.append(f"batch {batch['x'][0].item()}")
    received = ["computing waits for the copy", "recorded"]
    assert recorded.notes == [
        "copies have a stream",
        *("copy", *received, "copy", "batch 0"),
        *(*received, "batch 1"),
    ]
