"""Runtime environments of jobs, tasks and actors, made by real workers."""

import json
import os
import subprocess
import sys
import textwrap
import zipfile

import pytest

import ray
from ray import _raylet
from ray._private.runtime_env import plugin
from ray.exceptions import RuntimeEnvSetupError
from waiting import until

pytestmark = pytest.mark.usefixtures("no_cluster")


@ray.remote
def variable(name):
    return os.environ.get(name)


@ray.remote
def environment_string():
    return ray.get_runtime_context().get_runtime_env_string()


@ray.remote
class Actor:
    def variable(self, name):
        return os.environ.get(name)

    def of_a_child(self, name, **env_vars):
        task = variable.options(runtime_env={"env_vars": env_vars}) if env_vars else variable
        return ray.get(task.remote(name))

    def environment(self):
        return ray.get_runtime_context().runtime_env


def test_inheritance():
    ray.init(num_cpus=3, runtime_env={"env_vars": {"A": "job", "B": "job"}})
    actor = Actor.options(runtime_env={"env_vars": {"B": "actor"}}).remote()
    assert ray.get([actor.variable.remote("A"), actor.variable.remote("B")]) == ["job", "actor"]
    assert (
        ray.get(actor.of_a_child.remote("B")) == "actor"
        and ray.get(actor.of_a_child.remote("A")) == "job"
    )
    assert (
        ray.get(actor.of_a_child.remote("B", B="child")) == "child"
        and ray.get(actor.of_a_child.remote("A", B="child")) == "job"
    )
    assert ray.get(actor.environment.remote())["env_vars"] == {"A": "job", "B": "actor"}
    assert (
        ray.get(environment_string.remote())
        == '{"env_vars": {"A": "job", "B": "job"}}'
        == ray.get_runtime_context().get_runtime_env_string()
    )
    assert ray.get(variable.options(runtime_env={}).remote("A")) == "job"


def test_env_vars_may_refer_to_variables_of_the_node():
    ray.init(num_cpus=1)
    os.environ["NOT_OF_WORKERS"] = "x"
    env = {
        "env_vars": {
            "PATH": "/first:${PATH}",
            "EMPTY": "<${NO_SUCH_VARIABLE}>",
            "PLAIN": "$HOME $NO_SUCH_VARIABLE",
            "TZ": "UTC",
        }
    }
    path = ray.get(variable.options(runtime_env=env).remote("PATH"))
    assert (
        path.startswith("/first:/")
        and ray.get(variable.options(runtime_env=env).remote("EMPTY")) == "<>"
    )
    assert (
        ray.get(variable.options(runtime_env=env).remote("PLAIN"))
        == f"{os.environ['HOME']} $NO_SUCH_VARIABLE"
    )
    assert ray.get(variable.remote("PATH")) == path[len("/first:") :]


def test_variables_only_the_start_of_a_program_honours(tmp_path):
    ray.init(num_cpus=1)
    (tmp_path / "module_beside.py").write_text("X = 7")

    @ray.remote
    def start():
        import subprocess

        return (
            hash("a"),
            sys.flags.dont_write_bytecode,
            sys.flags.utf8_mode,
            ray.get_runtime_context().get_worker_id() != "",
            subprocess.run(
                ["sh", "-c", "echo $LD_LIBRARY_PATH"], capture_output=True, text=True, check=True
            ).stdout.strip(),
        )

    env = {"env_vars": {"PYTHONHASHSEED": "5", "PYTHONUTF8": "1", "LD_LIBRARY_PATH": "/nowhere"}}
    told = subprocess.run(
        [sys.executable, "-c", "print(hash('a'))"],
        env={**os.environ, "PYTHONHASHSEED": "5"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    found = ray.get(start.options(runtime_env=env).remote())
    assert found[0] == int(told) and found[2:] == (1, True, "/nowhere")

    @ray.remote
    def from_path():
        import module_beside

        return module_beside.X

    assert (
        ray.get(from_path.options(runtime_env={"env_vars": {"PYTHONPATH": str(tmp_path)}}).remote())
        == 7
    )


def test_threads_of_math_libraries():
    ray.init(num_cpus=2)
    assert ray.get(variable.options(num_cpus=2).remote("OMP_NUM_THREADS")) == "2"
    # An actor's methods run with the number of threads of its constructor.
    actor = Actor.options(num_cpus=2).remote()
    assert ray.get(actor.variable.remote("OMP_NUM_THREADS")) == "2"
    ray.kill(actor)
    assert (
        ray.get(
            variable.options(num_cpus=2, runtime_env={"env_vars": {"OMP_NUM_THREADS": "7"}}).remote(
                "OMP_NUM_THREADS"
            )
        )
        == "7"
    )


def test_packages_of_another_interpreter_come_first(monkeypatch):
    monkeypatch.delenv("PYTHONPATH")
    ray.init(num_cpus=1)
    path = ray.get(
        ray.remote(lambda: sys.path).options(runtime_env={"py_executable": sys.executable}).remote()
    )
    ours = os.path.dirname(os.path.dirname(ray.__file__))
    assert ours in path and path.index(ours) > max(
        i for i, entry in enumerate(path) if entry.startswith(sys.prefix + "/lib")
    )


def test_another_interpreter(tmp_path):
    ray.init(num_cpus=1)
    python = tmp_path / "python with space"
    python.symlink_to(sys.executable)
    executable = ray.remote(lambda: (os.path.basename(sys.executable), sys.flags.dev_mode))
    assert ray.get(
        executable.options(runtime_env={"py_executable": f"'{python}' -X dev"}).remote()
    ) == ("python with space", True)
    with pytest.raises(RuntimeEnvSetupError, match="no_such_python"):
        ray.get(executable.options(runtime_env={"py_executable": "no_such_python"}).remote())


def test_working_dir_and_modules(tmp_path):
    for path, text in {
        "wd/data.txt": "content",
        "wd/beside.py": "X = 1",
        "wd/big.log": "",
        "wd/sub/__init__.py": "",
        "mod/__init__.py": "Y = 2",
        "mod/inner.py": "Z = 3",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    with zipfile.ZipFile(tmp_path / "wheel-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("from_wheel.py", "W = 4")
    ray.init(
        num_cpus=2,
        runtime_env={
            "working_dir": str(tmp_path / "wd"),
            "py_modules": [str(tmp_path / "mod"), str(tmp_path / "wheel-1.0-py3-none-any.whl")],
            "excludes": ["*.log"],
        },
    )

    @ray.remote
    def look():
        import beside
        import from_wheel
        import mod.inner

        child = subprocess.run(
            [sys.executable, "-c", "import beside, mod; print(beside.X + mod.Y)"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        return (
            open("data.txt").read(),
            sorted(os.listdir(".")),
            beside.X,
            mod.Y,
            mod.inner.Z,
            from_wheel.W,
            child,
            sys.path[0] == os.getcwd(),
        )

    data, listed, *found, child, first = ray.get(look.remote())
    assert (
        data == "content"
        and [name for name in listed if name != "__pycache__"] == ["beside.py", "data.txt", "sub"]
        and found == [1, 2, 3, 4]
        and child == "3"
        and first
    )
    context = ray.get_runtime_context().runtime_env
    assert (
        context.working_dir().startswith("gcs://_ray_pkg_")
        and context.working_dir().endswith(".zip")
        and "excludes" not in context
    )
    # A task takes the job's package by its URI, beside an environment of its own.
    assert (
        ray.get(
            look.options(
                runtime_env={"env_vars": {"A": "1"}, "working_dir": context.working_dir()}
            ).remote()
        )[0]
        == "content"
    )


def test_modules_of_the_driver_are_not_those_of_a_working_dir(tmp_path):
    for name, text in {"wd/which.py": "X = 'working dir'", "here/which.py": "X = 'here'"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "here" / "program.py").write_text(
        textwrap.dedent(f"""
        import ray
        ray.init(num_cpus=1, runtime_env={{"working_dir": {str(tmp_path / "wd")!r}}})
        def which():
            import which
            return which.X
        print(ray.get(ray.remote(which).remote()))
    """)
    )
    assert (
        subprocess.run(
            [sys.executable, str(tmp_path / "here" / "program.py")],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        == "working dir"
    )


def test_archives_of_the_node(tmp_path):
    with zipfile.ZipFile(tmp_path / "repo.zip", "w") as archive:
        archive.writestr("repo-main/data.txt", "one")
    ray.init(num_cpus=1)
    read = ray.remote(lambda: open("data.txt").read())
    env = {"working_dir": f"file://{tmp_path}/repo.zip"}
    assert ray.get(read.options(runtime_env=env).remote()) == "one"
    for uri in (f"file://{tmp_path}/none.zip", "gcs://_ray_pkg_0123.zip", "s3://bucket/a.zip"):
        with pytest.raises(RuntimeEnvSetupError):
            ray.get(read.options(runtime_env={"working_dir": uri}).remote())
    with zipfile.ZipFile(tmp_path / "evil.zip", "w") as archive:
        archive.writestr("../../evil.txt", "x")
    with pytest.raises(RuntimeEnvSetupError, match="evil.txt"):
        ray.get(read.options(runtime_env={"working_dir": f"file://{tmp_path}/evil.zip"}).remote())


def test_setup_hooks_run_by_name_and_by_value(tmp_path):
    (tmp_path / "hooks.py").write_text(
        "import os\ndef mark(): os.environ['HOOKED'] = 'by name'\ndef fail(): raise ValueError('the hook is wrong')\n"
    )
    ray.init(
        num_cpus=1,
        runtime_env={
            "py_modules": [str(tmp_path / "hooks.py")],
            "worker_process_setup_hook": "hooks.mark",
        },
    )
    assert ray.get(variable.remote("HOOKED")) == "by name"

    def in_place():
        os.environ["HOOKED"] = "by value"

    assert (
        ray.get(
            variable.options(runtime_env={"worker_process_setup_hook": in_place}).remote("HOOKED")
        )
        == "by value"
    )
    with pytest.raises(RuntimeEnvSetupError, match="the hook is wrong"):
        ray.get(
            variable.options(runtime_env={"worker_process_setup_hook": "hooks.fail"}).remote(
                "HOOKED"
            )
        )


def test_an_environment_that_fails_fails_its_tasks_and_actors():
    ray.init(num_cpus=1)
    bad = {"conda": "no_such_environment"}
    with pytest.raises(RuntimeEnvSetupError, match="conda"):
        ray.get(variable.options(runtime_env=bad).remote("A"))
    actor = Actor.options(runtime_env=bad, max_restarts=3).remote()
    with pytest.raises(RuntimeEnvSetupError, match="conda") as raised:
        ray.get(actor.variable.remote("A"))
    assert raised.value.error_message
    with pytest.raises(RuntimeEnvSetupError, match="setup_timeout_seconds"):
        ray.get(
            variable.options(
                runtime_env={
                    "worker_process_setup_hook": _sleep,
                    "config": {"setup_timeout_seconds": 1},
                }
            ).remote("A")
        )
    # The node works as before.
    assert (
        ray.get(variable.remote("A")) is None
        and ray.get(Actor.remote().variable.remote("A")) is None
    )


def _sleep():
    import threading

    threading.Event().wait()


def test_workers_of_an_environment_are_used_again():
    ray.init(num_cpus=1)
    pid = ray.remote(lambda: os.getpid())
    red, blue = (
        pid.options(runtime_env={"env_vars": {"COLOUR": name}}) for name in ("red", "blue")
    )
    first = ray.get(red.remote())
    assert ray.get(red.remote()) == first != ray.get(blue.remote())
    assert (
        ray.get(
            [
                variable.options(runtime_env={"env_vars": {"COLOUR": name}}).remote("COLOUR")
                for name in ("red", "blue") * 5
            ]
        )
        == ["red", "blue"] * 5
    )


def test_packages_go_with_their_job(tmp_path):
    from ray._private.runtime_env.packaging import NAMESPACE

    (tmp_path / "data.txt").write_text("content")
    code = textwrap.dedent(f"""
        import os, ray
        ray.init(runtime_env={{"working_dir": {str(tmp_path)!r}}})
        print(ray.get(ray.remote(lambda: open("data.txt").read()).remote()), flush=True)
        input()
    """)
    info = ray.init(num_cpus=1).address_info
    env = {**os.environ, "RAY_ADDRESS": info["gcs_address"]}

    def packages():
        return [key for key in _raylet.kv_list(NAMESPACE, "") if b"#" not in key]

    drivers = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    try:
        assert [driver.stdout.readline().strip() for driver in drivers] == ["content"] * 2
        assert len(packages()) == 1
        drivers[0].communicate("\n")
        assert len(packages()) == 1
        drivers[1].communicate("\n")
        until(packages, lambda found: not found)
    finally:
        for driver in drivers:
            driver.kill()
            driver.wait()


def test_on_another_node(tmp_path):
    from ray.cluster_utils import Cluster

    (tmp_path / "data.txt").write_text("content")
    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": 80 << 20}
    )
    try:
        cluster.add_node(num_cpus=1, resources={"there": 1}, object_store_memory=80 << 20)
        ray.init(
            address=cluster.address,
            runtime_env={"working_dir": str(tmp_path), "env_vars": {"A": "b"}},
        )
        read = ray.remote(
            lambda: (
                open("data.txt").read(),
                os.environ["A"],
                ray.get_runtime_context().get_node_id(),
            )
        )
        here, there = ray.get([read.remote(), read.options(resources={"there": 1}).remote()])
        assert here[:2] == there[:2] == ("content", "b") and there[2] != cluster.head_node.node_id
    finally:
        ray.shutdown()
        cluster.shutdown()


def test_who_asks_for_none_imports_nothing():
    code = (
        "import sys, ray; ray.init(num_cpus=1); f = ray.remote(lambda: [m for m in sys.modules if 'runtime_env' in m]); print(ray.get(f.remote()), "
        "[m for m in sys.modules if 'runtime_env' in m or m == 'zipfile'])"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "[] []"
    )


def test_a_failed_upload_leaves_no_session(tmp_path, monkeypatch):
    from ray._private.runtime_env.packaging import Upload

    def fail(self):
        raise ConnectionError("no head")

    monkeypatch.setattr(Upload, "send", fail)
    with pytest.raises(ConnectionError):
        ray.init(num_cpus=1, runtime_env={"working_dir": str(tmp_path)})
    assert not ray.is_initialized()


def test_plugins(tmp_path, monkeypatch):
    (tmp_path / "plugins_of_the_node.py").write_text(
        textwrap.dedent("""
        from ray._private.runtime_env.plugin import RuntimeEnvPlugin

        class First(RuntimeEnvPlugin):
            name = "first"
            def modify_context(self, uris, runtime_env, context, logger):
                context.env_vars["ORDER"] = context.env_vars.get("ORDER", "") + runtime_env["first"]

        class Second(RuntimeEnvPlugin):
            name = "second"
            @staticmethod
            def validate(env):
                if env["second"] != "b":
                    raise ValueError("b it must be")
            async def create(self, uri, runtime_env, context, logger):
                context.env_vars["CREATED"] = str(uri)
                return 0
            def modify_context(self, uris, runtime_env, context, logger):
                context.env_vars["ORDER"] = context.env_vars.get("ORDER", "") + runtime_env["second"]

        class Nice(RuntimeEnvPlugin):
            name = "nice"
            def modify_context(self, uris, runtime_env, context, logger):
                context.env_vars["GIVEN"] = ",".join(runtime_env.env_vars())
                context.py_executable = f"nice -n {runtime_env['nice']} " + context.py_executable
    """)
    )
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ['PYTHONPATH']}")
    monkeypatch.setenv(
        "RAY_RUNTIME_ENV_PLUGINS",
        json.dumps(
            [
                {"class": "plugins_of_the_node.First", "priority": 20},
                {"class": "plugins_of_the_node.Second", "priority": 5},
                {"class": "plugins_of_the_node.Nice"},
            ]
        ),
    )
    ray.init(num_cpus=1)
    env = {"first": "a", "second": "b"}
    assert ray.get(
        [variable.options(runtime_env=env).remote(name) for name in ("ORDER", "CREATED")]
    ) == ["ba", "None"]
    assert ray.get(variable.remote("ORDER")) is None
    nice = {"nice": 3, "env_vars": {"A": "b"}}
    priority = ray.remote(lambda: (os.nice(0), os.environ["GIVEN"]))
    assert ray.get(priority.options(runtime_env=nice).remote()) == (os.nice(0) + 3, "A")
    with pytest.raises(RuntimeEnvSetupError, match="b it must be"):
        ray.get(variable.options(runtime_env={"second": "c"}).remote("ORDER"))


def test_plugins_that_leave_the_interpreter_cause_no_exec(monkeypatch):
    class Idle(plugin.RuntimeEnvPlugin):
        def modify_context(self, uris, runtime_env, context, logger):
            assert context.py_executable == (runtime_env.py_executable() or sys.executable)

    monkeypatch.setattr(plugin, "load_plugins", lambda: {"idle": (10, Idle())})
    for env in ({"idle": 1}, {"idle": 1, "py_executable": "python"}):
        assert plugin.apply_plugins(env) == {**env, "env_vars": {}}
    assert plugin.RuntimeEnvContext().py_executable == sys.executable


def test_archives_behind_http(tmp_path):
    import functools
    import http.server
    import threading

    with zipfile.ZipFile(tmp_path / "code.zip", "w") as archive:
        archive.writestr("data.txt", "fetched")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        ray.init(num_cpus=1)
        read = ray.remote(lambda: open("data.txt").read())
        where = f"http://127.0.0.1:{server.server_address[1]}"
        assert (
            ray.get(read.options(runtime_env={"working_dir": f"{where}/code.zip"}).remote())
            == "fetched"
        )
        with pytest.raises(RuntimeEnvSetupError, match="404"):
            ray.get(read.options(runtime_env={"working_dir": f"{where}/none.zip"}).remote())
    finally:
        server.shutdown()
        server.server_close()
