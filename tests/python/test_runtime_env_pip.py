"""Environments that pip makes, and the workers in them."""

import os
import socket
import sys
import zipfile
from pathlib import Path

import pytest

import ray
from ray.exceptions import RuntimeEnvSetupError

pytestmark = pytest.mark.usefixtures("no_cluster")


def wheel(folder, name, version, text):
    """A wheel as pip takes it."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}.py", text)
        archive.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )
        archive.writestr(
            f"{info}/WHEEL",
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        archive.writestr(f"{info}/RECORD", "")
    return path


def test_pip(tmp_path):
    wheel(tmp_path, "rt_sample", "1.0", "X = 'one'")
    wheel(tmp_path, "rt_sample", "2.0", "X = 'two'")
    ray.init(num_cpus=2)
    offline = ["--no-index", "--find-links", str(tmp_path)]

    @ray.remote
    def sample():
        import rt_sample

        return rt_sample.X, sys.prefix != sys.base_prefix

    def version(number):
        return sample.options(
            runtime_env={
                "pip": {"packages": [f"rt_sample=={number}"], "pip_install_options": offline}
            }
        )

    assert ray.get([version("1.0").remote(), version("2.0").remote()]) == [
        ("one", True),
        ("two", True),
    ]
    cache = Path(ray._private.worker.global_worker.context["session_dir"]) / "runtime_resources"
    # Each environment has one lock, even after the exec of its interpreter.
    assert len(list(cache.glob("pip_*.lock"))) == 2
    with pytest.raises(RuntimeEnvSetupError, match="(?s)rt_sample==3.0.*No matching distribution"):
        ray.get(version("3.0").remote())
    with pytest.raises(ModuleNotFoundError):
        ray.get(sample.remote())


def test_workers_of_pip_s_environment_are_forked_with_its_modules(tmp_path):
    wheel(tmp_path, "rt_sample", "1.0", "import os\nPID = os.getpid()")
    ray.init(num_cpus=2)
    pip = {
        "packages": ["rt_sample"],
        "pip_install_options": ["--no-index", "--find-links", str(tmp_path)],
    }

    @ray.remote
    class Sample:
        def where(self):
            import rt_sample

            in_environment = sys.prefix != sys.base_prefix
            return rt_sample.PID, os.getppid(), os.getpid(), in_environment

    def found(env):
        both = [Sample.options(runtime_env=env).remote() for _ in range(2)]
        try:
            return ray.get([sample.where.remote() for sample in both])
        finally:
            for sample in both:
                ray.kill(sample)

    for server, parent, own, in_environment in found({"pip": pip, "preload": ["rt_sample"]}):
        assert server == parent != own and in_environment
    # The interpreter is started once for all workers, even without modules to preload.
    first, second = found({"pip": pip})
    assert first[1] == second[1] and first[0] == first[2] and first[3] and second[3]


def test_the_time_limit_of_an_environment_ends_pip():
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(1000)
        ray.init(num_cpus=1)
        env = {
            "pip": ["rt_sample"],
            "env_vars": {"PIP_INDEX_URL": f"http://127.0.0.1:{silent.getsockname()[1]}/simple"},
            "config": {"setup_timeout_seconds": 3},
        }
        with pytest.raises(RuntimeEnvSetupError, match="setup_timeout_seconds"):
            ray.get(ray.remote(lambda: None).options(runtime_env=env).remote())
