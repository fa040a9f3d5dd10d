# checkpoint_dir_name: rank 0's counts, the default has the time, slashes make folders.
import re

from conform import show
from ray import train
from training import checkpoint, content, fit, listing, note, notes, start


def loop():
    rank = train.get_context().get_world_rank()
    train.report({}, checkpoint=checkpoint(f="1"), checkpoint_dir_name=f"of_rank{rank}")
    train.report({}, checkpoint=checkpoint(f="2"))
    name = train.get_checkpoint().path.rpartition("/")[2]
    note(rank, bool(re.fullmatch(r"checkpoint_\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d\.\d{6}", name)))
    # A name may come again: the new files are added to the old ones.
    train.report({"again": 1}, checkpoint=checkpoint(g="3"), checkpoint_dir_name="of_rank0")


start()
result = fit(loop)
notes()
show("folder", lambda: [re.sub(r"_\d.*", "_TIME", name) for name in listing("run")])
show("checkpoint", lambda: content(result.checkpoint))
