"""The folder of a run: its marker, uploads, names that lead out of it, remains of killed
processes."""

import os
import pickle
import threading

import pytest

from ray.train import Checkpoint
from ray.train.storage import MARKER, SNAPSHOT, StorageContext


@pytest.fixture
def storage(tmp_path):
    context = StorageContext(str(tmp_path / "storage"), "run")
    context.make_marker()
    return context


@pytest.fixture
def save(tmp_path):
    """save(name, **files) makes a local checkpoint."""

    def make(name, **files):
        directory = tmp_path / name
        directory.mkdir()
        for file, text in files.items():
            (directory / file).write_text(text)
        return Checkpoint.from_directory(directory)

    return make


def texts(directory):
    return {name: open(os.path.join(directory, name)).read() for name in os.listdir(directory)}


@pytest.mark.parametrize("given", ["{}/storage", "{}/storage/", "file://{}/storage"])
def test_attributes(tmp_path, given):
    storage = StorageContext(given.format(tmp_path), "run")
    assert storage.storage_fs_path == f"{tmp_path}/storage"
    assert storage.experiment_fs_path == f"{tmp_path}/storage/run"
    assert storage.experiment_dir_name == "run"
    assert storage.storage_filesystem.type_name == "local"
    assert vars(pickle.loads(pickle.dumps(storage))) == vars(storage)
    assert os.listdir(tmp_path) == []


def test_the_folder_has_a_marker_and_nothing_else(storage):
    assert texts(storage.experiment_fs_path) == {MARKER: ""}
    storage.make_marker()
    storage.check_marker()


def test_storage_that_a_worker_does_not_see(storage, save):
    os.unlink(storage.place(MARKER))
    with pytest.raises(RuntimeError, match="storage of this run is not shared"):
        storage.persist(save("local", a="1"), "one")
    assert not storage.exists("one")


def test_storage_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="storage_path") as raised:
        StorageContext(str(tmp_path / "file"), "run").make_marker()
    assert raised.value.errno and raised.value.filename.endswith("file/run")


def test_checkpoints_of_ranks_become_one_directory(storage, save):
    storage.persist(save("first", both="0", only_first="0"), "one")
    kept = storage.persist(save("second", both="1", only_second="1"), "one")
    assert kept.path == storage.place("one") == storage.checkpoint_at("one").path
    assert texts(kept.path) == {"both": "1", "only_first": "0", "only_second": "1"}


def test_ranks_that_write_one_file_at_once_never_mix_it(storage, save):
    size = 1 << 20
    ranks = [save(f"rank{rank}", model=str(rank) * size) for rank in range(4)]
    barrier = threading.Barrier(len(ranks))

    def upload(checkpoint):
        barrier.wait(30)
        storage.persist(checkpoint, "one")

    threads = [threading.Thread(target=upload, args=(checkpoint,)) for checkpoint in ranks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    found = texts(storage.place("one"))
    assert list(found) == ["model"] and len(found["model"]) == size
    assert len(set(found["model"])) == 1


def test_a_missing_checkpoint_is_not_uploaded(storage, tmp_path):
    with pytest.raises(FileNotFoundError):
        storage.persist(Checkpoint(tmp_path / "missing"), "one")


def test_checkpoints_inside_the_folder_are_told_from_others(storage, tmp_path):
    inside = Checkpoint(storage.place("a/b"))
    assert storage.is_inside(inside) and storage.relative(inside) == "a/b"
    for outside in (
        storage.experiment_fs_path,
        storage.place(".."),
        storage.place("../other"),
        storage.place("a/../.."),
        storage.experiment_fs_path + "2/a",
        str(tmp_path),
    ):
        assert not storage.is_inside(Checkpoint(outside))
        with pytest.raises(ValueError, match="does not lie in the folder"):
            storage.relative(Checkpoint(outside))


def test_another_file_system_is_elsewhere(storage):
    fsspec = pytest.importorskip("fsspec")
    other = Checkpoint(storage.place("a"), fsspec.filesystem("memory"))
    assert not storage.is_inside(other)


def test_only_directories_of_the_run_are_deleted(storage, save):
    storage.persist(save("local", a="1"), "one")
    for name in ("..", "", ".", "../storage"):
        with pytest.raises(ValueError):
            storage.delete(name)
    assert storage.exists("one")
    storage.delete("one")
    storage.delete("one")
    assert texts(storage.experiment_fs_path) == {MARKER: ""}


def test_remains_of_killed_uploads_are_swept(storage, save):
    storage.persist(save("local", a="1"), "one")
    deep = os.path.join(storage.place("one"), "deep")
    os.mkdir(deep)
    for place in (storage.place("one"), deep):
        open(os.path.join(place, "a.part-0123abcd"), "w").close()
    storage.finish("one")
    storage.finish("missing")
    assert sorted(os.listdir(storage.place("one"))) == ["a", "deep"] and os.listdir(deep) == []


def test_snapshot(storage):
    assert storage.read_snapshot() is None
    storage.write_snapshot("äöü")
    storage.write_snapshot("new")
    assert storage.read_snapshot() == "new"
    open(storage.place(f"{SNAPSHOT}.part-0123abcd"), "w").close()
    storage.delete_unfinished(())
    assert set(os.listdir(storage.experiment_fs_path)) == {MARKER, SNAPSHOT}


def test_uploads_that_were_never_finished_go(storage, save):
    local = save("local", a="1")
    for name in ("finished", "registered", "unfinished", "deep/unfinished"):
        storage.persist(local, name)
    storage.finish("finished")
    os.mkdir(storage.place("foreign"))
    open(os.path.join(storage.place("registered"), "b.part-0123abcd"), "w").close()
    storage.delete_unfinished({"registered"})
    left = set(os.listdir(storage.experiment_fs_path))
    assert left == {MARKER, "finished", "registered", "foreign", "deep"}
    assert os.listdir(storage.place("deep")) == [] and texts(storage.place("registered")) == {
        "a": "1"
    }
    storage.persist(local, "again")
    storage.delete("again")
    assert set(os.listdir(storage.experiment_fs_path)) == left


def test_what_a_registered_checkpoint_lies_in_stays(storage, save):
    local = save("local", a="1")
    storage.persist(local, "a/b")
    storage.finish("a/b")
    storage.persist(local, "a")
    storage.delete_unfinished({"a/b"})
    assert texts(storage.place("a/b")) == {"a": "1"}


def test_a_name_in_a_note_that_leads_out_of_the_folder_deletes_nothing(storage, tmp_path):
    (tmp_path / "storage" / "other").mkdir()
    open(storage.place(".unfinished-..%2Fother"), "w").close()
    storage.delete_unfinished(())
    assert (tmp_path / "storage" / "other").exists()
