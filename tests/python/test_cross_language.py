"""Python calls C++ (a real shared library) and C++ calls Python, on a cluster."""

import os
import pathlib
import pickle
import shutil
import subprocess
import sys
import tempfile

import pytest

import ray
from ray.cross_language import cpp_actor_class, cpp_function
from ray.exceptions import (
    ActorDiedError,
    CrossLanguageError,
    RayTaskError,
    RuntimeEnvSetupError,
    TaskCancelledError,
)
from ray.job_config import JobConfig

HERE = pathlib.Path(__file__).resolve().parent
BUILD = HERE.parents[1] / "build"
pytestmark = pytest.mark.skipif(
    not (BUILD / "bin" / "ray-cpp-worker").exists(), reason="not built: ray-cpp-worker"
)


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, **options)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def built():
    """The build directory: libraries/libcross.so with cross_module.py beside it, and the program
    `driver`."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="rtx-", dir="/tmp"))
    run(
        "cmake",
        "-S",
        str(HERE / "cross_library"),
        "-B",
        str(path),
        f"-DCMAKE_PREFIX_PATH={BUILD}",
        "-DCMAKE_BUILD_TYPE=Debug",
    )
    run("cmake", "--build", str(path), "-j2")
    shutil.copy(HERE / "cross_library" / "cross_module.py", path / "libraries")
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def cpp(built):
    """A cluster whose job loads the library."""
    ray.init(
        num_cpus=3,
        resources={"thing": 1},
        job_config=JobConfig(code_search_path=[str(built / "libraries")]),
    )
    yield
    ray.shutdown(wait_for_processes=True)


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        127,
        2**31,
        2**64 - 1,
        -1,
        -(2**63),
        1.5,
        "text",
        "π",
        b"\x00\xff",
        [1, [2, "x"]],
        {"a": [1], "b": {"c": None}},
        [],
        {},
    ],
)
def test_values_come_back_as_they_went(cpp, value):
    back = ray.get(cpp_function("Echo").remote(value))
    assert back == value
    assert type(back) is type(value)


def test_arguments_of_c_types(cpp):
    assert ray.get(cpp_function("Plus").remote(1, 2)) == 3
    assert ray.get(cpp_function("Half").remote(3)) == 1.5
    # A tuple arrives as an array, too.
    assert ray.get(cpp_function("Joined").remote(("a", "b"), "-")) == "a-b"
    assert ray.get(cpp_function("Doubled").remote({"x": [1, 2]})) == {"x": [2, 4]}
    assert ray.get(cpp_function("Nothing").remote()) is None


def test_runtime_environments(cpp):
    red = {"env_vars": {"COLOUR": "red ${NO_SUCH_VARIABLE}$COLOUR_OF_NOBODY"}}
    assert (
        ray.get(cpp_function("Variable").options(runtime_env=red).remote("COLOUR"))
        == "red $COLOUR_OF_NOBODY"
    )
    assert ray.get(cpp_function("Variable").remote("COLOUR")) == ""
    with pytest.raises(RuntimeEnvSetupError, match="'pip' is for Python workers only"):
        ray.get(cpp_function("Variable").options(runtime_env={"pip": ["x"]}).remote("COLOUR"))


def test_large_values(cpp):
    assert ray.get(cpp_function("Length").remote(b"x" * 1_000_000)) == 1_000_000
    assert ray.get(cpp_function("Zeros").remote(1_000_000)) == bytes(1_000_000)


def test_values_that_have_no_plain_form(cpp):
    with pytest.raises(
        TypeError, match="A value of type set cannot go to a program of another language"
    ):
        cpp_function("Echo").remote([{1}])
    with pytest.raises(OverflowError, match="64 bits"):
        cpp_function("Echo").remote(2**64)
    loop = []
    loop.append(loop)
    with pytest.raises(RecursionError):
        cpp_function("Echo").remote(loop)
    with pytest.raises(ValueError, match="not UTF-8"):
        ray.get(cpp_function("NotText").remote())


def test_references_are_arguments(cpp):
    @ray.remote
    def ten():
        return 10

    assert ray.get(cpp_function("Plus").remote(ray.put(1), ten.remote())) == 11
    assert ray.get(cpp_function("Plus").remote(cpp_function("Plus").remote(1, 2), 3)) == 6
    value = {
        "list": [1, "two", 3.0, None, True, (4, 5)],
        "bytes": b"b",
        "big": 2**40,
        "text": "x" * 300,
    }
    assert ray.get(cpp_function("Echo").remote(ray.put(value))) == {
        **value,
        "list": [1, "two", 3.0, None, True, [4, 5]],
    }

    @ray.remote
    def total(pair):
        return sum(pair)

    assert ray.get(total.remote(cpp_function("Echo").remote([4, 5]))) == 9


def test_references_inside_values(cpp):
    refs = [ray.put(1), cpp_function("Plus").remote(1, 1)]
    assert ray.get(cpp_function("SumOf").remote(refs)) == 3
    made = ray.get(cpp_function("MakeRefs").remote(3))
    assert ray.get(made) == [0, 1, 4]


def test_a_reference_to_what_cpp_cannot_read(cpp):
    class Thing:
        pass

    for value in (Thing(), {1, 2}, 2**70):
        with pytest.raises(CrossLanguageError, match="which Python stored: it holds"):
            ray.get(cpp_function("Echo").remote(ray.put(value)))


def test_errors_of_cpp_functions_reach_python(cpp):
    with pytest.raises(CrossLanguageError, match="std::out_of_range: x is 3") as caught:
        ray.get(cpp_function("Throws").remote(3))
    assert isinstance(caught.value, RayTaskError)
    with pytest.raises(CrossLanguageError, match="The function Absent is not registered"):
        ray.get(cpp_function("Absent").remote())
    with pytest.raises(CrossLanguageError, match="takes 2 arguments and was called with 1"):
        ray.get(cpp_function("Plus").remote(1))
    with pytest.raises(CrossLanguageError, match="cannot be read as int"):
        ray.get(cpp_function("Plus").remote("1", 2))


def test_an_error_passes_through_python(cpp):
    @ray.remote
    def waits(ref):
        return ray.get(ref[0])

    with pytest.raises(RayTaskError, match="out_of_range: x is 4"):
        ray.get(waits.remote([cpp_function("Throws").remote(4)]))
    with pytest.raises(RayTaskError, match="out_of_range: x is 5"):
        ray.get(cpp_function("Plus").remote(cpp_function("Throws").remote(5), 1))


def test_keywords_are_refused(cpp):
    with pytest.raises(TypeError, match="keyword"):
        cpp_function("Plus").remote(1, b=2)
    with pytest.raises(TypeError, match="keyword"):
        cpp_actor_class("Counter::Create", "Counter").remote(start=2)
    counter = cpp_actor_class("Counter::Create", "Counter").remote(0)
    with pytest.raises(TypeError, match="keyword"):
        counter.Add.remote(n=2)
    with pytest.raises(TypeError, match="directly"):
        cpp_function("Plus")(1, 2)


def test_num_returns(cpp):
    number, text = cpp_function("Pair").options(num_returns=2).remote(7)
    assert ray.get([number, text]) == [7, "7"]
    assert cpp_function("Pair").options(num_returns=0).remote(7) is None
    with pytest.raises(CrossLanguageError, match="num_returns=3"):
        ray.get(cpp_function("Pair").options(num_returns=3).remote(7)[0])


def test_options_of_a_cpp_function_are_those_of_a_task(cpp, tmp_path):
    assert (
        ray.get(
            cpp_function("Plus")
            .options(resources={"thing": 1}, num_cpus=0, name="a sum")
            .remote(1, 2)
        )
        == 3
    )
    ready, rest = ray.wait(
        [
            cpp_function("Plus").options(resources={"absent": 1}).remote(1, 2),
            cpp_function("Nothing").remote(),
        ]
    )
    assert len(ready) == len(rest) == 1
    ray.cancel(rest[0])
    with pytest.raises(TaskCancelledError):
        ray.get(rest[0])
    retried = cpp_function("ThrowsFirst").options(max_retries=2, retry_exceptions=True)
    assert ray.get(retried.remote(str(tmp_path / "calls"), 2)) == 3
    with pytest.raises(ValueError, match="retry_exceptions"):
        cpp_function("Plus").options(retry_exceptions=[ValueError])


def test_cancel(cpp, tmp_path):
    """A running call ends as if it were not cancelled; with force its process ends."""

    def running(name):
        started, go = tmp_path / f"{name} started", tmp_path / f"{name} go"
        ref = cpp_function("Wait").options(max_retries=0).remote(str(started), str(go))
        while not started.exists():
            assert not ray.wait([ref], timeout=0.02)[0]
        return ref, go

    ref, go = running("plain")
    ray.cancel(ref)
    go.touch()
    assert ray.get(ref) == 7
    ref, go = running("forced")
    ray.cancel(ref, force=True)
    with pytest.raises(TaskCancelledError):
        ray.get(ref)


def test_python_calls_cpp_actors(cpp):
    Counter = cpp_actor_class("Counter::Create", "Counter")
    counter = Counter.remote(10)
    assert ray.get([counter.Add.remote(1), counter.Add.remote(ray.put(2))]) == [11, 13]
    # The method is registered as &Base::Kind.
    assert ray.get(counter.Kind.remote()) == "base"
    with pytest.raises(CrossLanguageError, match="std::logic_error: as asked"):
        ray.get(counter.Fail.remote())
    with pytest.raises(CrossLanguageError, match="Absent"):
        ray.get(counter.Absent.remote())
    with pytest.raises(AttributeError):
        counter._private
    assert repr(counter).startswith("Actor(Counter, ")
    broken = cpp_actor_class("Counter::Broken", "Counter").remote(1)
    with pytest.raises(ActorDiedError, match="no luck"):
        ray.get(broken.Add.remote(1))


def test_actor_options_and_names(cpp):
    Counter = cpp_actor_class("Counter::Create", "Counter")
    counter = Counter.options(
        name="cpp counter", max_restarts=1, max_task_retries=-1, num_cpus=1
    ).remote(5)
    found = ray.get_actor("cpp counter")
    assert found == counter
    assert ray.get(found.Add.remote(1)) == 6
    pid = ray.get(found.Pid.remote())
    ray.kill(found, no_restart=False)
    while ray.get(counter.Pid.remote()) == pid:
        pass
    assert ray.get(counter.Add.remote(1)) == 6
    made_elsewhere = (
        cpp_actor_class("MakeCounter", "Counter")
        .options(name="cpp counter", get_if_exists=True)
        .remote()
    )
    assert made_elsewhere == counter
    ray.kill(counter)
    with pytest.raises(ActorDiedError):
        ray.get(counter.Add.remote(1))


def test_handles_and_functions_travel(cpp):
    @ray.remote
    def use(counter, add, plus):
        return ray.get(
            [
                counter.Add.remote(1),
                add.remote(2),
                plus.remote(1, 1),
                cpp_function("Plus").remote(2, 2),
            ]
        )

    counter = cpp_actor_class("Counter::Create", "Counter").remote(0)
    assert ray.get(use.remote(counter, counter.Add, cpp_function("Plus"))) == [1, 3, 2, 4]
    assert (
        pickle.loads(pickle.dumps(cpp_function("Plus").options(num_cpus=2)))._options["num_cpus"]
        == 2
    )
    made = ray.get(
        ray.remote(lambda c: c.remote(3))
        .options(num_cpus=0)
        .remote(cpp_actor_class("Counter::Create", "Counter"))
    )
    assert made._info.class_name == "Counter"


def test_cpp_calls_python_back(cpp):
    assert ray.get(cpp_function("TwicePython").remote(4)) == 10


def test_java_is_absent_by_name(cpp):
    with pytest.raises(NotImplementedError, match="Java"):
        ray.java_function("a.B", "c").remote()
    with pytest.raises(NotImplementedError, match="Java"):
        ray.java_actor_class("a.B").remote()


def test_a_cpp_program_calls_python(built, tmp_path):
    env = {key: value for key, value in os.environ.items() if key != "RAY_ADDRESS"}
    env.update(RAY_BIN=str(BUILD / "bin"), RAY_PYTHON=sys.executable)
    out = run(str(built / "driver"), f"--ray_code_search_path={built / 'libraries'}", env=env)
    lines = [line for line in out.splitlines() if not line.startswith("(")]
    assert lines == [
        "function: 2",
        "decorated: 25",
        "reference: 12",
        "table: 2 2.5",
        "bytes: 300000",
        "raises: as expected",
        "no module: as expected",
        "no function: as expected",
        "no plain result: as expected",
        "arguments: as expected",
        "another type: as expected",
        "actor: 15",
        "found: 20",
        "absent: not there",
        "method raises: as expected",
        "no method: as expected",
        "from Python: 21",
        "killed: as expected",
    ]
