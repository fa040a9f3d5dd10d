"""A rank is killed in the middle of an upload: nothing of the upload is left, in any store."""

import os
import signal

import pytest

import ray.train
from ray.train import Checkpoint, WorkerGroupError
from ray.train.filesystem import LOCAL, FileSystem
from ray.train.storage import MARKER
from train_support import stay


class Store(FileSystem):
    """A store that is no local file system: data that is written to it appears at once, part by
    part."""

    type_name = "store"

    def same_as(self, other):
        return isinstance(other, Store)

    kind = staticmethod(LOCAL.kind)
    walk = staticmethod(LOCAL.walk)
    make_directory = staticmethod(LOCAL.make_directory)
    delete_directory = staticmethod(LOCAL.delete_directory)
    delete_file = staticmethod(LOCAL.delete_file)
    open_input_stream = staticmethod(LOCAL.open_input_stream)
    open_output_stream = staticmethod(LOCAL.open_output_stream)


class Source(FileSystem):
    """Holds a checkpoint whose second file kills its reader halfway."""

    type_name = "source"

    def kind(self, path):
        return "directory"

    def walk(self, path):
        yield "deep", True
        yield "deep/first", False
        yield "second", False

    def open_input_stream(self, path):
        return Reader(path.endswith("second"))

    def open_output_stream(self, path):
        raise AssertionError("it is read only")

    make_directory = delete_directory = delete_file = open_output_stream


class Reader:
    """Reads a file of one block; the deadly one kills its reader after that."""

    def __init__(self, is_deadly):
        self._is_deadly = is_deadly
        self._reads = 0

    def read(self, size=-1):
        self._reads += 1
        if self._reads == 1:
            return b"x" * 100_000
        if self._is_deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        return b""

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


@pytest.mark.parametrize("where", ["local", "store"])
def test_a_rank_that_is_killed_while_it_uploads(fit, tmp_path, where):
    def function():
        if ray.train.get_context().get_world_rank() == 1:
            ray.train.report({"n": 1}, Checkpoint("/place", Source()))
        ray.train.report({"n": 1})
        stay()

    filesystem = Store() if where == "store" else None
    (tmp_path / "runs").mkdir()
    with pytest.raises(WorkerGroupError):
        fit(function, storage_path=str(tmp_path / "runs"), storage_filesystem=filesystem)
    assert os.listdir(tmp_path / "runs" / "run") == [MARKER]
