"""File systems: the local one, and those of pyarrow and fsspec where they are installed."""

import os
import pickle

import pytest

from ray.train import Checkpoint
from ray.train.filesystem import LOCAL, copy_tree, is_part, operations, resolve
from ray.train.storage import StorageContext


@pytest.fixture(params=["local", "fsspec", "pyarrow", "pyarrow over fsspec"])
def place(request, tmp_path):
    """Yields (file system object, empty directory in it), for every kind of file system there
    is."""
    if request.param == "local":
        return LOCAL, str(tmp_path / "place")
    if request.param == "pyarrow":
        arrow = pytest.importorskip("pyarrow.fs")
        # pyarrow's local file system itself is not used, because it is taken for ours.
        return arrow.SubTreeFileSystem(str(tmp_path), arrow.LocalFileSystem()), "place"
    memory = pytest.importorskip("fsspec.implementations.memory")
    filesystem = memory.MemoryFileSystem()
    filesystem.store.clear()
    filesystem.pseudo_dirs[:] = [""]
    if request.param == "fsspec":
        return filesystem, "/place"
    arrow = pytest.importorskip("pyarrow.fs")
    return arrow.PyFileSystem(arrow.FSSpecHandler(filesystem)), "/place"


def fill(files, path):
    files.make_directory(f"{path}/deep")
    files.write(f"{path}/a", b"1")
    files.write(f"{path}/deep/b", b"2")


def test_files_are_written_walked_and_deleted(place):
    filesystem, path = place
    files = operations(filesystem)
    assert files.kind(path) is None
    fill(files, path)
    assert files.kind(path) == "directory" and files.kind(f"{path}/a") == "file"
    found = dict(files.walk(path))
    assert found == {"a": False, "deep": True, "deep/b": False}
    assert list(found).index("deep") < list(found).index("deep/b")
    files.write(f"{path}/a", b"22")
    assert files.read(f"{path}/a") == b"22"
    files.delete_file(f"{path}/a")
    assert files.kind(f"{path}/a") is None
    files.delete_directory(path)
    files.delete_directory(path)
    assert files.kind(path) is None
    assert files.same_as(operations(filesystem))


def test_a_run_folder_on_any_file_system(place, tmp_path):
    filesystem, path = place
    local = tmp_path / "local"
    fill(LOCAL, str(local))
    storage = pickle.loads(pickle.dumps(StorageContext(path, "run", filesystem)))
    with pytest.raises(RuntimeError, match="shared"):
        storage.persist(Checkpoint(local), "one")
    storage.make_marker()
    kept = storage.persist(Checkpoint(local), "one")
    assert kept.path.endswith("place/run/one") and storage.exists("one")
    with kept.as_directory() as directory:
        assert sorted(os.listdir(directory)) == ["a", "deep"]
        assert os.listdir(os.path.join(directory, "deep")) == ["b"]
    assert (directory == kept.path) == operations(filesystem).is_local
    assert os.path.exists(directory) == operations(filesystem).is_local
    kept.set_metadata({"x": 1})
    assert kept.get_metadata() == {"x": 1}
    assert storage.read_snapshot() is None
    storage.write_snapshot("text")
    assert storage.read_snapshot() == "text"
    storage.finish("one")
    storage.delete_unfinished(())
    storage.delete("one")
    assert not storage.exists("one")


def test_readers_share_one_copy_and_the_last_one_deletes_it(place, tmp_path, monkeypatch):
    filesystem, path = place
    files = operations(filesystem)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    fill(files, path)
    checkpoint = Checkpoint(path, filesystem)
    before = set(os.listdir(tmp_path))
    with checkpoint.as_directory() as first:
        with checkpoint.as_directory() as second:
            assert first == second
        assert sorted(os.listdir(first)) == ["a", "deep"]
    # Nothing of a copy is left, and nothing of a local directory, which is not copied, was deleted.
    assert set(os.listdir(tmp_path)) == before
    assert files.kind(f"{path}/a") == "file"


def test_local_objects_of_other_packages_are_local(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    assert operations(fsspec.filesystem("file")) is LOCAL
    arrow = pytest.importorskip("pyarrow.fs")
    assert operations(arrow.LocalFileSystem()) is LOCAL


def test_uris_that_packages_know(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    filesystem, path = resolve("memory://place/x")
    assert path == "/place/x" and isinstance(filesystem, fsspec.AbstractFileSystem)
    with pytest.raises(ValueError, match="nosuch://x"):
        resolve("nosuch://x")


def test_part_names():
    assert is_part("model.pt.part-0123abcd")
    for name in ("model.pt", "a.part-1", "a.part-0123abcg", ".part-"):
        assert not is_part(name)


def test_a_local_write_is_seen_whole_or_not_at_all(tmp_path, monkeypatch):
    path = str(tmp_path / "file")
    LOCAL.write(path, b"old")
    replaced = []

    def replace(part, target):
        replaced.append((open(part, "rb").read(), open(target, "rb").read()))
        raise OSError("the disk is gone")

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(OSError, match="the disk is gone"):
        LOCAL.write(path, b"new")
    assert replaced == [(b"new", b"old")]
    assert os.listdir(tmp_path) == ["file"] and LOCAL.read(path) == b"old"


def test_copies_leave_out_what_is_being_written(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    (source / "a").write_text("1")
    (source / "a.part-0123abcd").write_text("half")
    copy_tree(LOCAL, str(source), LOCAL, str(target))
    assert os.listdir(target) == ["a"]


def test_a_copy_into_the_source_is_one_copy(place):
    filesystem, path = place
    files = operations(filesystem)
    fill(files, path)
    copy_tree(files, path, files, f"{path}/deep/copy")
    copied = {name for name in dict(files.walk(path)) if name.startswith("deep/copy/")}
    assert copied == {f"deep/copy/{name}" for name in ("a", "deep", "deep/b")}


def test_what_cannot_be_copied(place, tmp_path):
    filesystem, path = place
    source = tmp_path / "source"
    (source / "deep").mkdir(parents=True)
    (source / "model").write_text("1")
    os.mkfifo(source / "deep" / "pipe")
    with pytest.raises(OSError, match="cannot be copied: remove it.*deep/pipe"):
        copy_tree(LOCAL, str(source), operations(filesystem), path)
    os.unlink(source / "deep" / "pipe")
    (source / "deep" / "up").symlink_to("..")
    with pytest.raises(OSError, match="leads back to .*: remove the link.*deep/up"):
        copy_tree(LOCAL, str(source), operations(filesystem), path)


def test_links_are_followed(tmp_path):
    (tmp_path / "other" / "below").mkdir(parents=True)
    (tmp_path / "other" / "below" / "file").write_text("1")
    source = tmp_path / "source"
    source.mkdir()
    # Two links to one directory make no circle.
    (source / "one").symlink_to(tmp_path / "other")
    (source / "two").symlink_to(tmp_path / "other")
    copy_tree(LOCAL, str(source), LOCAL, str(tmp_path / "target"))
    found = dict(LOCAL.walk(str(tmp_path / "target")))
    assert sorted(found) == [
        *("one", "one/below", "one/below/file"),
        *("two", "two/below", "two/below/file"),
    ]
