"""rayctl job submit with a runtime environment: the program and its workers have it."""

import json
import os
import textwrap
import threading

import pytest

PROGRAM = textwrap.dedent("""
    import os, ray
    import beside
    ray.init()
    @ray.remote
    def look():
        import beside
        return beside.X, open("data.txt").read(), os.environ["COLOUR"]
    print("driver", beside.X, open("data.txt").read(), os.environ["COLOUR"])
    print("worker", *ray.get(look.remote()))
""")


@pytest.fixture
def running(shell):
    shell.ok("start", "--head", "--port=0", "--num-cpus=1")
    return shell


@pytest.fixture
def folder(tmp_path):
    for name, text in {
        "program.py": PROGRAM,
        "beside.py": "X = 7",
        "data.txt": "content",
        "left_out.log": "x",
    }.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_working_dir_and_variables(running, folder, tmp_path):
    env = json.dumps({"env_vars": {"COLOUR": "red"}, "excludes": ["*.log"]})
    out = running.ok(
        "job",
        "submit",
        "--working-dir",
        str(folder),
        "--runtime-env-json",
        env,
        "--",
        "sh",
        "-c",
        "python program.py; ls; echo $COLOUR",
    )
    assert (
        "driver 7 content red" in out
        and "worker 7 content red" in out
        and "left_out.log" not in out
        and "\nred\n" in out
    )
    assert (
        "runtime_env={'env_vars': {'COLOUR': 'red'}, 'working_dir': 'gcs://_ray_pkg_"
        in running.ok("job", "list")
    )
    (job,) = json.loads(running.ok("job", "list", "--format", "json"))
    assert job["runtime_env"]["env_vars"] == {"COLOUR": "red"}
    (tmp_path / "env.json").write_text(env)
    assert "\nred\n" in running.ok(
        "job",
        "submit",
        "--runtime-env",
        str(tmp_path / "env.json"),
        "--",
        "sh",
        "-c",
        "echo $COLOUR",
    )


def test_an_environment_in_a_file_of_yaml(running, tmp_path):
    file = tmp_path / "env.yaml"
    file.write_text("# the colour\nenv_vars:\n  COLOUR: red\n")
    submit = "job", "submit", "--runtime-env", str(file), "--", "sh", "-c", "echo $COLOUR"
    assert "\nred\n" in running.ok(*submit)
    # A file that can be read only once, as <(command) of a shell is.
    os.unlink(file)
    os.mkfifo(file)
    writer = threading.Thread(target=file.write_text, args=("env_vars:\n  COLOUR: blue\n",))
    writer.start()
    assert "\nblue\n" in running.ok(*submit)
    writer.join()
    os.unlink(file)
    for text, said in (
        ("a: [", "while parsing a flow node"),
        ("- a\n", "is no object"),
        ("a: 2026-01-01\n", "JSON serializable"),
    ):
        file.write_text(text)
        error = running.fails(*submit, code=2)
        assert f"--runtime-env (file {file})" in error and said in error and error.count("\n") == 1
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexit 3\n")
    python.chmod(0o755)
    error = running.fails(*submit, RAY_PYTHON=str(python))
    assert "apt-get install python3-yaml" in error


def test_what_the_driver_asks_for_beside_it(running, folder):
    code = "import ray; ray.init(runtime_env={'env_vars': {'%s': 'driver'}}); print(ray.get(ray.remote(lambda: __import__('os').environ['A']).remote()))"
    submit = (
        "job",
        "submit",
        "--runtime-env-json",
        '{"env_vars": {"A": "job"}}',
        "--",
        "python",
        "-c",
    )
    assert "\njob\n" in running.ok(*submit, code % "B")
    done = running.run(*submit, code % "A")
    assert done.returncode == 1 and "conflict" in done.stdout


def test_wrong_environments_are_refused(running, folder):
    submit = ("job", "submit", "--", "true")

    def refused(*options, code=1):
        return running.fails(*submit[:2], *options, *submit[2:], code=code)

    assert "no JSON object" in refused("--runtime-env-json", "[1]", code=2)
    assert "cannot be read" in refused("--runtime-env", "/no/such/file", code=2)
    assert "Only one of" in refused("--runtime-env", "a", "--runtime-env-json", "{}", code=2)
    missing = "--working-dir is '/no/such/dir': there is no such folder"
    assert missing in refused("--working-dir", "/no/such/dir", code=2)
    # The option is checked before the cluster is asked.
    nowhere = {"RAY_ADDRESS": "127.0.0.1:1"}
    assert missing in running.fails(
        "job", "submit", "--working-dir=/no/such/dir", "--", "true", code=2, **nowhere
    )
    assert "env_vars" in refused("--runtime-env-json", '{"env_vars": {"A": 1}}')
    assert (
        "_ray_pkg_0.zip"
        in running.run(
            "job",
            "submit",
            "--submission-id",
            "gone",
            "--working-dir",
            "gcs://_ray_pkg_0.zip",
            "--",
            "true",
        ).stdout
    )
    (job,) = [
        job
        for job in json.loads(running.ok("job", "list", "--format", "json"))
        if job["submission_id"] == "gone"
    ]
    assert (
        job["status"] == "FAILED"
        and job["error_type"] == "RUNTIME_ENV_SETUP_FAILURE"
        and "_ray_pkg_0.zip" in job["message"]
    )


def test_a_python_path_of_the_job_keeps_the_package(running, folder):
    env = json.dumps({"env_vars": {"PYTHONPATH": str(folder)}})
    said = running.ok(
        *("job", "submit", "--runtime-env-json", env, "--"),
        *("python", "-c", "import beside, ray; print('both', beside.X)"),
    )
    assert "both 7" in said
