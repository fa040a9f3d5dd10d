# Tasks can import py_modules and find the files beside them, except the excluded ones.
import os
import tempfile
import ray
from conform import show

folder = tempfile.mkdtemp()
for name, text in {
    "module_a/__init__.py": "X = 1",
    "module_a/inner.py": "Y = 2",
    "wd/beside.py": "Z = 3",
    "wd/left.log": "",
    "wd/kept.txt": "",
    "wd/sub/deep.log": "",
}.items():
    os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
    with open(os.path.join(folder, name), "w") as file:
        file.write(text)


def look():
    import beside
    import module_a.inner

    found = sorted(
        os.path.relpath(os.path.join(base, name))
        for base, _, names in os.walk(".")
        for name in names
        if "__pycache__" not in base
    )
    return module_a.X, module_a.inner.Y, beside.Z, found


env = {
    "py_modules": [os.path.join(folder, "module_a")],
    "working_dir": os.path.join(folder, "wd"),
    "excludes": ["*.log"],
}
show("init", lambda: ray.init(num_cpus=1, include_dashboard=False, runtime_env=env) and "ok")
show("task", lambda: ray.get(ray.remote(look).remote(), timeout=60))
show(
    "fields",
    lambda: sorted(
        name for name in ray.get_runtime_context().runtime_env if not name.startswith("_ray")
    ),
)
show(
    "uris",
    lambda: [
        uri.split("_ray_pkg_")[0] + uri[-4:]
        for uri in (
            ray.get_runtime_context().runtime_env.working_dir(),
            *ray.get_runtime_context().runtime_env.py_modules(),
        )
    ],
)
