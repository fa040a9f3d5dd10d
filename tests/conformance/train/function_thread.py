# A training function runs in a thread of its worker that is not the main one.
import os
import signal
import threading

from ray import train
from training import fit, note, notes, start


def loop():
    rank = train.get_context().get_world_rank()
    thread = threading.current_thread()
    note(rank, f"main {thread is threading.main_thread()}")
    note(rank, f"daemon {thread.daemon}")
    try:
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    except ValueError:
        note(rank, "no signal handler")
    inner = []
    child = threading.Thread(target=lambda: inner.append(train.get_context().get_world_rank()))
    child.start()
    child.join()
    note(rank, f"child thread {inner}")
    note("directory", "/".join(os.getcwd().rsplit("/", 2)[1:]))
    note("processes", os.getpid() == os.getppid())


start()
fit(loop)
notes()
