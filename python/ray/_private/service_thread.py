"""Threads of this package in drivers and workers."""

import threading


def start(run, name: str) -> threading.Thread:
    """Starts a daemon thread.

    `name` begins with "ray-", by which profiles recognize threads of this package, and has at most
    15 bytes, the kernel's limit.
    """

    def named():
        try:
            with open("/proc/thread-self/comm", "w") as comm:
                comm.write(name)
        # Without /proc only profiles lack the name.
        except OSError:
            pass
        run()

    thread = threading.Thread(target=named, name=name, daemon=True)
    thread.start()
    return thread
