"""Runs the standard microbenchmark from its file.

So any other package that is importable as `ray` can be measured with it (compare.py).
"""

import pathlib
import runpy

runpy.run_path(
    str(
        pathlib.Path(__file__).resolve().parents[1] / "python" / "ray" / "_private" / "ray_perf.py"
    ),
    run_name="__main__",
)
