"""Checkpoint: its place, how it is read, and its metadata."""

import os
import pathlib
import pickle
import sys
import tempfile
import threading

import pytest

from ray.train import Checkpoint


@pytest.fixture
def saved(tmp_path, monkeypatch):
    """A checkpoint with a file, a file in a directory and an empty directory. Temporary files have
    a directory of their own."""
    directory = tmp_path / "saved"
    (directory / "deep").mkdir(parents=True)
    (directory / "empty").mkdir()
    (directory / "model.pt").write_text("weights")
    (directory / "deep" / "state").write_text("state")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    return Checkpoint.from_directory(directory)


def contents(directory):
    return sorted(str(path.relative_to(directory)) for path in pathlib.Path(directory).rglob("*"))


ALL = ["deep", "deep/state", "empty", "model.pt"]


@pytest.mark.parametrize(
    "given, path",
    [
        ("/x/y", "/x/y"),
        ("/x/y/", "/x/y"),
        (pathlib.Path("/x/y"), "/x/y"),
        ("file:///x/y", "/x/y"),
        ("file:///x/a%20b", "/x/a b"),
        ("y", os.path.abspath("y")),
    ],
)
def test_paths(given, path):
    checkpoint = Checkpoint(given)
    assert checkpoint.path == path
    assert repr(checkpoint) == f"Checkpoint(filesystem=local, path={path})"


def test_the_home_directory(monkeypatch):
    monkeypatch.setenv("HOME", "/somebody")
    assert Checkpoint("~/y").path == "/somebody/y"


def test_wrong_paths():
    with pytest.raises(TypeError, match="str or a pathlib.Path"):
        Checkpoint(None)
    with pytest.raises(ValueError, match="empty"):
        Checkpoint("")
    with pytest.raises(TypeError, match="file system"):
        Checkpoint("/x", filesystem=5)
    with pytest.raises(ValueError, match="names no host"):
        Checkpoint("file://host/x")


def test_a_uri_without_the_package_names_it(monkeypatch):
    for package in ("pyarrow", "pyarrow.fs", "fsspec"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match="s3://bucket/x.*pyarrow"):
        Checkpoint("s3://bucket/x")


def test_pickles_and_is_the_same_directory(saved):
    restored = pickle.loads(pickle.dumps(saved))
    assert repr(restored) == repr(saved)
    assert restored.to_directory() == saved.to_directory()


def test_to_directory_copies(saved):
    copy = saved.to_directory()
    assert os.path.dirname(copy) == tempfile.gettempdir() and contents(copy) == ALL
    assert saved.to_directory() == copy
    assert os.listdir(tempfile.gettempdir()) == [os.path.basename(copy)]


def test_to_directory_with_a_path_merges(saved, tmp_path):
    target = tmp_path / "target"
    target.mkdir()
    (target / "old").write_text("old")
    (target / "model.pt").write_text("old")
    assert saved.to_directory(target) == str(target)
    assert contents(target) == sorted([*ALL, "old"])
    assert (target / "model.pt").read_text() == "weights"
    assert sorted(os.listdir(tmp_path)) == ["saved", "target", "temporary"]


def test_to_directory_returns_the_path_as_it_was_given(saved, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert saved.to_directory("copy") == "copy" and contents(tmp_path / "copy") == ALL


def test_a_missing_checkpoint(tmp_path):
    missing = Checkpoint(tmp_path / "missing")
    with pytest.raises(FileNotFoundError, match="missing"):
        missing.to_directory(tmp_path / "target")
    assert os.listdir(tmp_path) == []
    assert missing.get_metadata() == {}
    with pytest.raises(FileNotFoundError):
        missing.set_metadata({})


def test_a_failed_copy_leaves_nothing(saved, tmp_path):
    os.symlink("/nowhere", tmp_path / "saved" / "broken")
    with pytest.raises(FileNotFoundError):
        saved.to_directory()
    assert os.listdir(tempfile.gettempdir()) == []


def test_as_directory_of_a_local_one_is_itself(saved):
    with saved.as_directory() as directory:
        assert directory == saved.path
    assert contents(saved.path) == ALL


def test_threads_that_ask_for_the_same_copy_make_one(saved, monkeypatch):
    """While the first thread copies, the others arrive; all get the complete directory."""
    from ray.train import checkpoint as module

    copies, started, go_on = [], threading.Event(), threading.Event()

    def slow_copy(*arguments):
        copies.append(arguments)
        started.set()
        assert go_on.wait(30)
        return copy_tree(*arguments)

    copy_tree = module.copy_tree
    monkeypatch.setattr(module, "copy_tree", slow_copy)
    seen = []

    def ask():
        seen.append((path := saved.to_directory(), contents(path)))

    first = threading.Thread(target=ask)
    first.start()
    assert started.wait(30)
    others = [threading.Thread(target=ask) for _ in range(3)]
    for thread in others:
        thread.start()
    go_on.set()
    for thread in (first, *others):
        thread.join(30)
    assert len(copies) == 1 and len(seen) == 4 and len({path for path, _ in seen}) == 1
    assert all(found == ALL for _, found in seen)


def test_metadata(saved):
    assert saved.get_metadata() == {}
    saved.set_metadata({"a": 1, "b": {"c": None}})
    saved.update_metadata({"a": 2, "d": [1]})
    assert saved.get_metadata() == {"a": 2, "b": {"c": None}, "d": [1]}
    assert os.path.exists(os.path.join(saved.path, ".metadata.json"))
    saved.set_metadata({})
    assert saved.get_metadata() == {}


def test_what_a_checkpoint_is_not(saved):
    with pytest.raises(TypeError, match="as_directory"):
        os.fspath(saved)
    with pytest.raises(TypeError, match="as_directory"):
        open(saved)
    for name in ("from_dict", "from_bytes", "from_uri"):
        with pytest.raises(AttributeError, match=name):
            getattr(Checkpoint, name)
    for name in ("to_dict", "to_bytes", "uri", "nonsense"):
        with pytest.raises(AttributeError, match=name):
            getattr(saved, name)
    assert saved != Checkpoint(saved.path)
