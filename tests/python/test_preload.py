"""runtime_env={"preload": [...]}: workers that are forked with modules already imported."""

import importlib.util
import json
import os
import time
import zipfile

import pytest

import ray
from ray.exceptions import RuntimeEnvSetupError
from ray.runtime_env import RuntimeEnv

pytestmark = pytest.mark.usefixtures("no_cluster")
needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="torch is not installed"
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder on the import path of the node's interpreters."""
    path = tmp_path / "on_path"
    path.mkdir()
    monkeypatch.setenv("PYTHONPATH", f"{path}{os.pathsep}{os.environ['PYTHONPATH']}")
    return path


def write(path, text):
    """Writes a module that notes each import of it, with its process, in a file beside it."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        "import os\nPID = os.getpid()\n"
        f"open({str(path) + '.imports'!r}, 'a').write(str(PID) + '\\n')\n{text}\n"
    )
    return path


def imports(path):
    try:
        with open(str(path) + ".imports") as file:
            return len(file.read().split())
    except FileNotFoundError:
        return 0


@ray.remote
def where(name):
    import sys

    # The module was loaded before the task began.
    module = sys.modules[name]
    return module.PID == os.getppid(), module.PID == os.getpid(), getattr(module, "X", None)


IN_SERVER, IN_WORKER = (True, False), (False, True)


def found(name, **env):
    return ray.get(where.options(runtime_env=env).remote(name))


@pytest.mark.parametrize(
    "value, error, text",
    [
        ("torch", TypeError, r"List\[str\], got 'torch'"),
        (("torch",), TypeError, r"List\[str\]"),
        ([1], TypeError, r"List\[str\], got \[1\]"),
        ([""], ValueError, "'' is not the name of a module"),
        (["a b"], ValueError, "'a b' is not the name of a module"),
        (["a..b"], ValueError, "is not the name"),
        ([".a"], ValueError, "is not the name"),
        ([f"m{i}" for i in range(101)], ValueError, "101 modules, more than the 100"),
    ],
)
def test_values_that_are_refused(value, error, text):
    with pytest.raises(error, match=text):
        RuntimeEnv(preload=value)
    with pytest.raises(error, match=text):
        where.options(runtime_env={"preload": value})


def test_is_a_field_as_the_others_are(caplog):
    env = RuntimeEnv(preload=["json", "torch.nn", "json"])
    assert env["preload"] == ["json", "torch.nn"] and not env.plugins()
    assert RuntimeEnv.deserialize(env.serialize()) == env
    where.options(runtime_env=env)
    assert "not recognized" not in caplog.text


def test_workers_share_one_import(folder):
    tiny = write(folder / "tiny.py", "X = 1")
    ray.init(num_cpus=3)

    @ray.remote
    class Holder:
        def where(self):
            import tiny

            return tiny.PID, os.getppid(), os.getpid()

    holders = [Holder.options(runtime_env={"preload": ["tiny"]}).remote() for _ in range(2)]
    (first, *its), (second, *others) = ray.get([holder.where.remote() for holder in holders])
    assert first == second == its[0] == others[0] and its[1] != others[1]
    # Another environment with the same modules comes from the same server.
    assert found("tiny", preload=["tiny"], env_vars={"A": "b"}) == (*IN_SERVER, 1)
    assert imports(tiny) == 1
    # Plain workers have not imported the module.
    loaded = ray.remote(lambda: "tiny" in __import__("sys").modules)
    assert not ray.get(loaded.remote())


def test_the_modules_of_a_task_replace_those_of_its_job(folder):
    write(folder / "of_job.py", "")
    write(folder / "of_task.py", "")
    ray.init(num_cpus=1, runtime_env={"preload": ["of_job"], "env_vars": {"A": "b"}})

    @ray.remote
    def loaded():
        import sys

        env = json.loads(ray.get_runtime_context().get_runtime_env_string())
        return [name for name in ("of_job", "of_task") if name in sys.modules], env

    job = {"env_vars": {"A": "b"}, "preload": ["of_job"]}
    assert ray.get(loaded.remote()) == (["of_job"], job)
    own = loaded.options(runtime_env={"preload": ["of_task"]})
    assert ray.get(own.remote()) == (["of_task"], {**job, "preload": ["of_task"]})


def test_failures_name_the_module_and_the_reason(folder):
    bad = write(folder / "bad.py", "raise ValueError('boom')")
    exits = write(folder / "exits.py", "os._exit(7)")
    ray.init(num_cpus=1)
    with pytest.raises(RuntimeEnvSetupError, match="'no_such_module' cannot be imported: ModuleNo"):
        found("json", preload=["no_such_module"])
    for _ in range(2):
        with pytest.raises(
            RuntimeEnvSetupError, match="(?s)'bad' cannot be imported: ValueError: boom.*bad.py"
        ):
            found("json", preload=["bad"])
    # The server, which is still there, has imported it once, and each worker once.
    assert imports(bad) == 3

    @ray.remote
    class Actor:
        def ping(self):
            pass

    with pytest.raises(RuntimeEnvSetupError, match="'bad'"):
        ray.get(Actor.options(runtime_env={"preload": ["bad"]}).remote().ping.remote())
    # A module that ends the process is tried once, although the start of a worker is repeated.
    with pytest.raises(RuntimeEnvSetupError, match="(?s)the module 'exits'.*exited with code 7"):
        found("json", preload=["exits"])
    assert imports(exits) == 1
    assert ray.get(ray.remote(lambda: 7).remote()) == 7


def test_a_long_import_has_the_time_limit_of_the_environment(folder):
    write(folder.parent / "slow.py", "import signal\nsignal.pause()")
    ray.init(num_cpus=1)
    # With this variable, which is read at the start, no server can help.
    env = {
        "preload": ["slow"],
        "env_vars": {"PYTHONPATH": str(folder.parent)},
        "config": {"setup_timeout_seconds": 1},
    }
    with pytest.raises(RuntimeEnvSetupError, match="setup_timeout_seconds"):
        found("json", **env)


def test_a_module_that_leaves_a_thread_is_imported_by_the_workers(folder):
    threads = write(
        folder / "threads.py",
        "import threading\nlock = threading.Lock()\n"
        "def hold():\n    with lock: threading.Event().wait()\n"
        "threading.Thread(target=hold, daemon=True).start()",
    )
    write(folder / "calm.py", "")
    ray.init(num_cpus=1)
    assert found("threads", preload=["threads", "calm"])[:2] == IN_WORKER
    assert found("calm", preload=["threads", "calm"])[:2] == IN_SERVER
    assert imports(threads) == 2


def test_the_fork_applies_the_variables_that_the_server_did_not_take(folder):
    """The server's start takes the variables that are read when a program starts; the fork applies
    the others."""
    write(
        folder / "tiny.py", "X = os.environ.get('A'), os.environ.get('LD_LIBRARY_PATH'), hash('a')"
    )
    ray.init(num_cpus=1)
    env = {
        "A": "after",
        "LD_LIBRARY_PATH": "/a:${LD_LIBRARY_PATH}",
        "PYTHONHASHSEED": "5",
        "LAST": "${LD_LIBRARY_PATH}",
    }
    server, _, (late, early, hashed) = found("tiny", preload=["tiny"], env_vars=env)
    assert server and late is None and early == "/a:" + os.environ.get("LD_LIBRARY_PATH", "")
    read = ray.remote(lambda: (hash("a"), *map(os.environ.get, ("A", "LD_LIBRARY_PATH", "LAST"))))
    told = ray.get(read.options(runtime_env={"preload": ["tiny"], "env_vars": env}).remote())
    assert told == (hashed, "after", early, early)


def test_modules_of_packages(folder, tmp_path):
    """The workers import these modules, even where the server has found others of the same name."""
    write(folder / "both.py", "X = 'on path'")
    write(folder / "other.py", "X = 'on path'")
    wd = tmp_path / "wd"
    write(wd / "both.py", "X = 'working dir'")
    write(wd / "mine.py", "X = 'working dir'")
    ray.init(num_cpus=1)
    with zipfile.ZipFile(tmp_path / "wd.zip", "w") as archive:
        for name in ("both.py", "mine.py"):
            archive.write(wd / name, name)
    with zipfile.ZipFile(tmp_path / "small.zip", "w") as archive:
        archive.write(wd / "mine.py", "mine.py")
        archive.writestr("other.txt", "")
    small, large = (f"file://{tmp_path}/{name}.zip" for name in ("small", "wd"))
    names = ["other", "mine"]
    assert found("mine", preload=names, working_dir=small) == (*IN_WORKER, "working dir")
    assert found("other", preload=names, working_dir=small) == (*IN_SERVER, "on path")
    assert found("both", preload=["both"]) == (*IN_SERVER, "on path")
    assert found("both", preload=["both"], working_dir=large) == (*IN_WORKER, "working dir")
    path = {"PYTHONPATH": str(wd)}
    assert found("both", preload=["both"], env_vars=path) == (*IN_WORKER, "working dir")
    assert found("both", preload=["both"], py_modules=[large]) == (*IN_WORKER, "working dir")


def test_another_interpreter_has_a_server_of_its_own(folder, tmp_path):
    tiny = write(folder / "tiny.py", "import sys\nX = sys.flags.dev_mode")
    script = tmp_path / "python"
    script.write_text('#!/bin/sh\nexec /usr/bin/env python3 -X dev "$@"\n')
    script.chmod(0o755)
    ray.init(num_cpus=2)
    for _ in range(2):
        assert found("tiny", preload=["tiny"], py_executable=str(script)) == (*IN_SERVER, True)
    assert found("tiny", preload=["tiny"]) == (*IN_SERVER, False)
    assert imports(tiny) == 2


def test_an_interpreter_that_cannot_be_made_is_left_to_the_workers(folder):
    tiny = write(folder / "tiny.py", "")
    ray.init(num_cpus=1)
    for _ in range(2):
        with pytest.raises(RuntimeEnvSetupError, match="py_executable: no_such_python cannot be"):
            found("tiny", preload=["tiny"], py_executable="no_such_python")
    assert imports(tiny) == 0
    assert ray.get(ray.remote(lambda: 7).remote()) == 7


def test_an_interpreter_that_is_none_is_named_with_its_output(folder, tmp_path):
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\necho this is no Python >&2\nexit 3\n")
    script.chmod(0o755)
    ray.init(num_cpus=1)
    with pytest.raises(RuntimeEnvSetupError, match="(?s)made its interpreter.*no Python"):
        found("json", py_executable=str(script))


def test_the_hook_finds_them_imported(folder):
    write(folder / "tiny.py", "X = 'import'")
    ray.init(num_cpus=1)

    def hook():
        import sys

        sys.modules["tiny"].X += " and hook"

    env = {"preload": ["tiny"], "worker_process_setup_hook": hook}
    assert found("tiny", **env) == (*IN_SERVER, "import and hook")


@needs_torch
def test_torch_in_forked_workers():
    ray.init(num_cpus=4)

    @ray.remote
    class Trainer:
        def __init__(self):
            import sys

            self.loaded = "torch" in sys.modules
            import torch

            self.at_start = torch.get_num_threads()

        def train(self):
            import torch

            before = torch.get_num_threads()
            torch.set_num_threads(2)
            model = torch.nn.Sequential(
                torch.nn.Conv2d(3, 8, 3), torch.nn.Flatten(), torch.nn.Linear(8 * 30 * 30, 10)
            )
            optimizer = torch.optim.SGD(model.parameters(), 0.01)
            for _ in range(3):
                model(torch.randn(16, 3, 32, 32)).square().sum().backward()
                optimizer.step()
            torch.mm(torch.randn(400, 400), torch.randn(400, 400))
            return self.loaded, self.at_start, before, torch.get_num_threads()

        def number(self):
            import torch

            return torch.rand(1).item(), torch.get_num_threads()

    trainer = Trainer.options(runtime_env={"preload": ["torch"]})
    if "OMP_NUM_THREADS" not in os.environ:
        wide = trainer.options(num_cpus=3).remote()
        assert ray.get(wide.train.remote()) == (True, 3, 3, 2)
        assert ray.get(wide.number.remote())[1] == 2  # Later calls leave the user's number alone.
        ray.kill(wide)
    env = {"preload": ["torch"], "env_vars": {"OMP_NUM_THREADS": "3"}}
    told = Trainer.options(runtime_env=env).remote()
    assert ray.get(told.train.remote()) == (True, 3, 3, 2)
    ray.kill(told)
    both = [trainer.remote() for _ in range(2)]
    numbers = ray.get([actor.number.remote() for actor in both])
    assert numbers[0][0] != numbers[1][0], "each worker has random numbers of its own"


@needs_torch
def test_the_second_worker_does_not_wait_for_imports():
    ray.init(num_cpus=1)

    @ray.remote
    class Actor:
        def ping(self):
            import torch

            return torch.__name__

    def first_answer():
        begin = time.perf_counter()
        actor = Actor.options(runtime_env={"preload": ["torch"]}).remote()
        ray.get(actor.ping.remote())
        took = time.perf_counter() - begin
        ray.kill(actor)
        return took

    cold, warm = first_answer(), min(first_answer() for _ in range(3))
    assert warm < cold / 3, (cold, warm)
