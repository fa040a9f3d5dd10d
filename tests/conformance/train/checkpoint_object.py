# A Checkpoint of a local directory: path, copies, context, metadata, pickling, equality.
import os
import pathlib
import pickle

import ray
from conform import show
from ray.train import Checkpoint

os.makedirs("c/sub")
pathlib.Path("c/a").write_text("A")
pathlib.Path("c/sub/b").write_text("B")
path = os.path.abspath("c")
saved = Checkpoint(path)
show("repr", lambda: saved)
show("path", lambda: saved.path)
show("filesystem", lambda: type(saved.filesystem).__name__)
show("from_directory", lambda: Checkpoint.from_directory(path).path)
show("slash", lambda: Checkpoint(path + "/").path)
show("uri", lambda: Checkpoint("file://" + path).path)
show("Path", lambda: Checkpoint(pathlib.Path(path)).path)
show("missing", lambda: Checkpoint("/none").path)
with saved.as_directory() as found:
    show("as_directory", lambda: found)
show("kept", lambda: sorted(os.listdir(path)))
show("to_directory", lambda: saved.to_directory("copy"))
show("copied", lambda: sorted(str(p) for p in pathlib.Path("copy").rglob("*") if p.is_file()))
show("again", lambda: saved.to_directory("copy"))
temporary = saved.to_directory()
show("temporary", lambda: (sorted(os.listdir(temporary)), saved.to_directory() == temporary))
show("copy of missing", lambda: Checkpoint("/none").to_directory("copy2"))
show("context of missing", lambda: Checkpoint("/none").as_directory().__enter__())
show("metadata", saved.get_metadata)
show("set", lambda: saved.set_metadata({"a": 1, "b": {"c": [2]}}))
show("update", lambda: saved.update_metadata({"a": 2, "d": None}))
show("metadata", Checkpoint(path).get_metadata)
show("file", lambda: pathlib.Path("c/.metadata.json").exists())
show("set number", lambda: saved.set_metadata(3))
show("set object", lambda: saved.set_metadata({"a": object}))
show("pickled", lambda: pickle.loads(pickle.dumps(saved)))
show("equal", lambda: Checkpoint(path) == Checkpoint(path))
show("fspath", lambda: os.fspath(saved))
for name in "from_dict to_dict from_uri to_bytes".split():
    show(name, lambda: getattr(saved, name), name)
