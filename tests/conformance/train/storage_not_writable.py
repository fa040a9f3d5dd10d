# A storage path that cannot be made ends fit() at once.
import pathlib

import ray
from conform import show
from training import fit

pathlib.Path("file").write_text("x")
show(
    "below a file",
    lambda: fit(lambda: 1, 1, run={"storage_path": str(pathlib.Path("file/x").absolute())}),
)
show("unknown scheme", lambda: fit(lambda: 1, 1, run={"storage_path": "xyz://a/b"}), "xyz")
show(
    "uri",
    lambda: fit(lambda: 1, 1, run={"storage_path": f"file://{pathlib.Path('u').absolute()}"}).path,
)
