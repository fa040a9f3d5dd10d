"""Threads of our own in drivers and workers."""

import threading


def start(run, name: str) -> threading.Thread:
    """Starts a daemon thread; `name` begins with "ray-", which is how profiles know whose it is, and has at most 15 bytes, which is what the kernel keeps."""

    def named():
        try:
            with open("/proc/thread-self/comm", "w") as comm:
                comm.write(name)
        except OSError:  # no /proc: only profiles miss it
            pass
        run()

    thread = threading.Thread(target=named, name=name, daemon=True)
    thread.start()
    return thread
