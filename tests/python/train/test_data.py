"""Datasets: which values count as one, how each is divided, and the batches made of it."""

import gc
import pickle
import threading

import pytest

from ray import cloudpickle
from ray.train import DataConfig
from ray.train.data import shards_for, unknown_dataset
from ray.train.data.prefetch import ahead


def shards(dataset, ranks, **config):
    """Returns the iterators of all ranks for one dataset, as workers unpickle them."""
    parts = shards_for({"train": dataset}, DataConfig(**config), ranks)
    return [pickle.loads(cloudpickle.dumps(part["train"])) for part in parts]


def rows(shard):
    return list(shard.iter_rows())


class MapDataset:
    """A dataset of the kind that PyTorch indexes; it notes which rows were asked for."""

    def __init__(self, count):
        self.count, self.asked = count, []

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if not 0 <= index < self.count:
            raise IndexError(index)
        self.asked.append(index)
        return {"x": index, "asked": list(self.asked)}


class WalkedDataset:
    def __iter__(self):
        return iter(range(11))


def test_parts_are_disjoint_and_equal():
    parts = [[row["item"] for row in rows(shard)] for shard in shards(list(range(11)), 3)]
    assert parts == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    assert [len(rows(shard)) for shard in shards(list(range(2)), 3)] == [0, 0, 0]


def test_sets_that_are_not_divided():
    datasets = {"train": list(range(4)), "valid": list(range(3))}
    parts = shards_for(datasets, DataConfig(datasets_to_split=["train"]), 2)
    assert [len(rows(part["train"])) for part in parts] == [2, 2]
    assert [len(rows(part["valid"])) for part in parts] == [3, 3]
    assert set(parts[0]) == {"train", "valid"}


def test_kinds_of_datasets():
    expected = [{"x": 0, "y": "a"}, {"x": 1, "y": "b"}]
    assert rows(shards([{"x": 0, "y": "a"}, {"x": 1, "y": "b"}], 1)[0]) == expected
    assert rows(shards({"x": [0, 1], "y": ["a", "b"]}, 1)[0]) == expected
    assert rows(shards(lambda: {"x": [0, 1], "y": ["a", "b"]}, 1)[0]) == expected
    assert rows(shards(range(2), 1)[0]) == [{"item": 0}, {"item": 1}]
    assert rows(shards(("a",), 1)[0]) == [{"item": "a"}]
    assert rows(shards([], 1)[0]) == []


def test_a_map_dataset_is_asked_for_its_part_only():
    first, second = shards(MapDataset(10), 2)
    assert [row["x"] for row in rows(first)] == [0, 1, 2, 3, 4]
    assert [row["x"] for row in rows(second)] == [5, 6, 7, 8, 9]
    assert rows(second)[-1]["asked"] == [5, 6, 7, 8, 9] + [5, 6, 7, 8, 9]


def test_an_iterable_dataset_is_dealt_in_rounds():
    parts = [[row["item"] for row in rows(shard)] for shard in shards(WalkedDataset(), 3)]
    assert parts == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]
    whole = shards(WalkedDataset(), 3, datasets_to_split=[])[2]
    assert [row["item"] for row in rows(whole)] == list(range(11))


def test_arrays_are_split_by_rows():
    numpy = pytest.importorskip("numpy")
    first, second = shards(numpy.arange(8).reshape(4, 2), 2)
    assert [row["data"].tolist() for row in rows(second)] == [[4, 5], [6, 7]]
    batch = next(first.iter_batches())
    assert batch["data"].tolist() == [[0, 1], [2, 3]]


def test_wrong_datasets():
    with pytest.raises(TypeError, match="'train' is a builtins.int.*ray.data is not"):
        shards(5, 1)
    with pytest.raises(ValueError, match="differ in length"):
        shards({"x": [1], "y": []}, 1)
    assert isinstance(unknown_dataset("a", []), KeyError)
    assert "'b'" in str(unknown_dataset("a", ["b"]))


def test_many_rows_come_in_several_blocks():
    """There are more rows than one block of the store has, so that a batch is joined from two
    blocks."""
    shard = shards(list(range(10_000)), 1)[0]
    assert [row["item"] for row in rows(shard)] == list(range(10_000))
    pytest.importorskip("numpy")
    batches = list(shard.iter_batches(batch_size=3000))
    assert [len(batch["item"]) for batch in batches] == [3000, 3000, 3000, 1000]
    assert [int(value) for batch in batches for value in batch["item"]] == list(range(10_000))


@pytest.mark.parametrize(
    "options, sizes",
    [
        ({}, [10]),
        ({"batch_size": 4}, [4, 4, 2]),
        ({"batch_size": 4, "drop_last": True}, [4, 4]),
        ({"batch_size": 5}, [5, 5]),
        ({"batch_size": 4, "prefetch_batches": 0}, [4, 4, 2]),
        ({"batch_size": None}, [10]),
    ],
)
def test_sizes_of_batches(options, sizes):
    pytest.importorskip("numpy")
    for dataset in (list(range(10)), {"item": list(range(10))}, MapDataset(10)):
        batches = list(shards(dataset, 1)[0].iter_batches(**options))
        assert [len(next(iter(batch.values()))) for batch in batches] == sizes


@pytest.mark.parametrize(
    "name, options, count",
    [
        ("iter_rows", {}, 10),
        ("iter_batches", {"batch_size": 4}, 3),
        ("iter_batches", {"batch_size": 4, "prefetch_batches": 0}, 3),
        ("iter_torch_batches", {"batch_size": 4, "device": "cpu"}, 3),
    ],
)
def test_each_walk_is_a_pass_of_its_own(name, options, count):
    pytest.importorskip("torch" if name == "iter_torch_batches" else "numpy")
    passes = getattr(shards(list(range(10)), 1)[0], name)(**options)
    next(passes)
    assert [len(list(passes)) for _ in range(2)] == [count, count]
    # The pass of next() goes on beside the others, and ends.
    assert sum(1 for _ in iter(lambda: next(passes, None), None)) == count - 1


@pytest.mark.parametrize(
    "options",
    [
        {"batch_size": 0},
        {"batch_size": "2"},
        {"batch_format": "lists"},
        {"prefetch_batches": -1},
        {"local_shuffle_buffer_size": 0},
    ],
)
def test_wrong_options_of_batches(options):
    pytest.importorskip("numpy")
    with pytest.raises(ValueError, match=next(iter(options))):
        shards([1], 1)[0].iter_batches(**options)


def test_local_shuffle():
    pytest.importorskip("numpy")
    shard = shards(list(range(100)), 1)[0]

    def order(seed):
        batches = shard.iter_batches(local_shuffle_buffer_size=50, local_shuffle_seed=seed)
        return [int(value) for batch in batches for value in batch["item"]]

    assert sorted(order(1)) == list(range(100)) != order(1)
    assert order(1) == order(1) != order(2)
    # The first row is chosen among the first 51 rows.
    assert order(3)[0] <= 50


def test_values_without_a_common_shape():
    pytest.importorskip("numpy")
    batch = next(shards([{"x": [1]}, {"x": [1, 2]}], 1)[0].iter_batches())
    assert [list(value) for value in batch["x"]] == [[1], [1, 2]]


def test_what_is_absent_says_so():
    shard = shards([1], 1)[0]
    with pytest.raises(AttributeError, match="DataIterator.materialize: not in this release"):
        shard.materialize()
    assert not hasattr(shard, "to_tf")


def test_prefetch_makes_so_many_ahead_and_no_more():
    made = []
    room = threading.Semaphore(0)

    def make():
        for number in range(10):
            made.append(number)
            room.release()
            yield number

    values = ahead(make, 2)
    assert next(values) == 0
    # These are the batch that was taken, and two ahead.
    for _ in range(3):
        assert room.acquire(timeout=120)
    assert made == [0, 1, 2]
    assert list(values) == list(range(1, 10)) and made == list(range(10))


def test_prefetch_raises_what_was_raised():
    def make():
        yield 1
        raise KeyError("x")

    values = ahead(make, 1)
    assert next(values) == 1
    with pytest.raises(KeyError):
        next(values)


@pytest.mark.parametrize("end", ["close", "drop"])
def test_the_thread_of_a_prefetch_ends_with_it(end):
    def make():
        while True:
            yield threading.current_thread()

    values = ahead(make, 3)
    thread = next(values)
    assert thread is not threading.current_thread() and thread.is_alive()
    if end == "close":
        values.close()
    else:
        del values
        gc.collect()
    thread.join(30)
    assert not thread.is_alive()


def test_tables_are_split_and_come_in_every_batch_format(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet")
    table = arrow.table({"x": list(range(10)), "y": [str(n) for n in range(10)]})
    first, second = shards(table, 2)
    assert rows(second) == [{"x": n, "y": str(n)} for n in range(5, 10)]
    batch = next(first.iter_batches(batch_size=3))
    assert batch["x"].tolist() == [0, 1, 2] and list(batch["y"]) == ["0", "1", "2"]
    assert next(first.iter_batches(batch_format="pyarrow", batch_size=2)).to_pydict() == {
        "x": [0, 1],
        "y": ["0", "1"],
    }


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_files_are_split_among_the_ranks(tmp_path, suffix):
    arrow = pytest.importorskip("pyarrow")
    parquet, csv = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow.csv")
    for index in range(2):
        table = arrow.table({"x": list(range(index * 7, index * 7 + 7))})
        path = str(tmp_path / f"{index}.{suffix}")
        if suffix == "parquet":
            parquet.write_table(table, path, row_group_size=2)
        else:
            csv.write_csv(table, path)
    for place in (tmp_path, str(tmp_path / f"*.{suffix}")):
        parts = [[row["x"] for row in rows(shard)] for shard in shards(place, 3)]
        assert parts == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    whole = shards(tmp_path / f"1.{suffix}", 2, datasets_to_split=[])[0]
    assert [row["x"] for row in rows(whole)] == list(range(7, 14))
    with pytest.raises(FileNotFoundError):
        shards(tmp_path / "missing" / "*.csv", 1)
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(ValueError, match="x.json"):
        shards(tmp_path / "x.json", 1)


def test_files_need_pyarrow(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(ImportError, match="dataset 'train' needs the package 'pyarrow'"):
        shards("/x.parquet", 1)


def test_data_frames_are_split_by_rows():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": [0, 1, 2, 3], "y": list("abcd")})
    second = shards(frame, 2)[1]
    assert rows(second) == [{"x": 2, "y": "c"}, {"x": 3, "y": "d"}]
    found = next(second.iter_batches(batch_format="pandas"))
    assert found.to_dict("list") == {"x": [2, 3], "y": ["c", "d"]}


def test_batches_of_tensors():
    torch = pytest.importorskip("torch")
    shard = shards([{"x": n, "y": float(n), "s": str(n), "t": torch.ones(2)} for n in range(5)], 1)[
        0
    ]
    batches = list(shard.iter_torch_batches(batch_size=2, device="cpu"))
    assert [batch["x"].tolist() for batch in batches] == [[0, 1], [2, 3], [4]]
    assert batches[0]["t"].shape == (2, 2) and batches[0]["s"] == ["0", "1"]
    assert batches[0]["x"].dtype is torch.int64
    cast = next(shard.iter_torch_batches(device="cpu", dtypes={"x": torch.float16}))
    assert cast["x"].dtype is torch.float16 and cast["y"].dtype is torch.float64
    assert next(shard.iter_torch_batches(device="cpu", dtypes=torch.int8))["y"].dtype is torch.int8


@pytest.mark.filterwarnings("error")
def test_batches_of_tensors_from_arrays_and_tensors():
    """Arrays from the store are read-only, about which torch would warn."""
    torch = pytest.importorskip("torch")
    numpy = pytest.importorskip("numpy")
    array = numpy.arange(6, dtype=numpy.float32).reshape(3, 2)
    array.flags.writeable = False
    for values in (array, torch.from_numpy(array.copy())):
        batches = list(shards({"x": values}, 1)[0].iter_torch_batches(batch_size=2, device="cpu"))
        assert [batch["x"].tolist() for batch in batches] == [[[0, 1], [2, 3]], [[4, 5]]]
        assert batches[0]["x"].dtype is torch.float32


def test_batches_of_a_torch_dataset():
    torch = pytest.importorskip("torch")
    dataset = torch.utils.data.TensorDataset(torch.arange(4), torch.arange(4) * 2)
    images, labels = next(shards(dataset, 2)[1].iter_torch_batches(device="cpu"))["item"]
    assert images.tolist() == [2, 3] and labels.tolist() == [4, 6]


def test_own_collate_function():
    torch = pytest.importorskip("torch")
    numpy = pytest.importorskip("numpy")
    seen = []

    def collate(batch):
        seen.append(type(batch["x"]))
        return torch.from_numpy(batch["x"]) + 1

    shard = shards({"x": [1, 2]}, 1)[0]
    assert next(shard.iter_torch_batches(collate_fn=collate, device="cpu")).tolist() == [2, 3]
    assert seen == [numpy.ndarray]
    with pytest.raises(ValueError, match="exclude each other"):
        shard.iter_torch_batches(collate_fn=collate, dtypes=torch.int8)


def test_auto_device_needs_a_training_function():
    pytest.importorskip("torch")
    with pytest.raises(RuntimeError, match="training function"):
        shards([1], 1)[0].iter_torch_batches()


def test_workers_get_their_parts(fit):
    """On a cluster the rows come out of the object store."""

    def train():
        import ray.train

        train_part = [row["item"] for row in ray.train.get_dataset_shard("train").iter_rows()]
        valid_part = [row["item"] for row in ray.train.get_dataset_shard("valid").iter_rows()]
        try:
            ray.train.get_dataset_shard("test")
        except KeyError as error:
            text = str(error)
        return train_part, valid_part, text

    result = fit(
        train,
        datasets={"train": list(range(10_001)), "valid": lambda: [7, 8]},
        dataset_config=DataConfig(datasets_to_split=["train"]),
    )
    train_part, valid_part, text = result.return_value
    assert train_part == list(range(5000)) and valid_part == [7, 8]
    assert "'test'" in text and "'train', 'valid'" in text
