"""Runtime environments without a cluster: fields, which files are uploaded, unpacking, the node's
cache."""

import io
import os
import stat
import tarfile
import zipfile

import pytest

from ray._private.runtime_env import packages
from ray._private.runtime_env.ignore import files_of
from ray._private.runtime_env.packages import Cache, SetupError, unpack
from ray._private.runtime_env.packaging import package_folder, py_module_upload, working_dir_upload
from ray._private.runtime_env.submit import JobEnv, check_task_env, merge_with_submitted, run_hook
from ray.runtime_env import RuntimeEnv, RuntimeEnvConfig


def write(root, **files):
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def names(root, excludes=()):
    return [name for name, _ in files_of(str(root), list(excludes))]


# ---- fields


@pytest.mark.parametrize(
    "fields, error",
    [
        ({"env_vars": {"a=b": "c"}}, ValueError),
        ({"py_modules": "a"}, TypeError),
        ({"py_modules": [1]}, TypeError),
        ({"excludes": "a"}, TypeError),
        ({"pip": {"packages": ["a"], "colour": 1}}, ValueError),
        ({"pip": {"pip_check": True}}, ValueError),
        ({"pip": "/no/such/file"}, ValueError),
        ({"uv": ["a"], "pip": ["b"]}, ValueError),
        ({"conda": 1}, TypeError),
        ({"py_executable": 1}, TypeError),
        ({"worker_process_setup_hook": 1}, TypeError),
        ({"image_uri": "a", "pip": ["b"]}, ValueError),
        ({"working_dir": "gcs://a"}, ValueError),
        ({"working_dir": "/no/such/dir"}, ValueError),
        ({"py_modules": ["/no/such/dir"]}, ValueError),
        ({"working_dir": "ftp://a.zip"}, ValueError),
        ({"config": {"setup_timeout_seconds": 0}}, ValueError),
        ({"config": {"setup_timeout_seconds": "1"}}, TypeError),
        ({"config": 1}, TypeError),
    ],
)
def test_bad_fields(fields, error):
    with pytest.raises(error):
        RuntimeEnv(**fields)
    with pytest.raises(error):
        JobEnv(fields)


def test_fields_are_normalised(tmp_path):
    write(tmp_path, requirements_dot_txt="# comment\nsome\n\nother==1\n")
    assert RuntimeEnv(pip=str(tmp_path / "requirements.txt"))["pip"] == {
        "packages": ["some", "other==1"],
        "pip_check": False,
    }
    assert RuntimeEnv(pip=["a", "a"]).pip_config() == {"packages": ["a"], "pip_check": False}
    env = RuntimeEnv(env_vars={"B": "1"}, config={"setup_timeout_seconds": 5}, some_plugin={"x": 1})
    assert env.get("config", data_class=RuntimeEnvConfig)[
        "setup_timeout_seconds"
    ] == 5 and env.plugins() == [("some_plugin", {"x": 1})]
    assert RuntimeEnv.deserialize(env.serialize()) == env and env.serialize().startswith(
        '{"config": '
    )
    with pytest.raises(TypeError):
        env.set("env_vars", [1])
    assert RuntimeEnv(nsight="default").nsight() == "default"


def test_local_places_are_for_jobs(tmp_path):
    for fields in (
        {"working_dir": str(tmp_path)},
        {"py_modules": [str(tmp_path)]},
        {"py_modules": [os]},
        {"excludes": ["a"]},
    ):
        with pytest.raises(ValueError):
            check_task_env(fields)
    check_task_env({"working_dir": "gcs://_ray_pkg_0.zip", "py_modules": ["file:///a.whl"]})


def test_job_in_a_job(monkeypatch):
    given = {"env_vars": {"A": "job"}, "working_dir": "gcs://a.zip"}
    assert merge_with_submitted({}, {}) == {} and merge_with_submitted({"pip": ["x"]}, {}) == {
        "pip": ["x"]
    }
    assert merge_with_submitted({"env_vars": {"B": "driver"}}, given) == {
        "env_vars": {"A": "job", "B": "driver"},
        "working_dir": "gcs://a.zip",
    }
    for env in ({"env_vars": {"A": "driver"}}, {"working_dir": "gcs://b.zip"}):
        with pytest.raises(ValueError, match="conflict"):
            merge_with_submitted(env, given)
    monkeypatch.setenv("RAY_OVERRIDE_JOB_RUNTIME_ENV", "1")
    assert merge_with_submitted(
        {"env_vars": {"A": "driver"}, "working_dir": "gcs://b.zip"}, given
    ) == {"env_vars": {"A": "driver"}, "working_dir": "gcs://b.zip"}


def rewrite(env):
    return {**env, "env_vars": {"FROM": "hook"}}


def test_hook_of_the_driver(monkeypatch):
    assert run_hook({"pip": ["x"]}) == {"pip": ["x"]}
    monkeypatch.setenv("RAY_RUNTIME_ENV_HOOK", f"{__name__}.rewrite")
    assert run_hook({}) == {"env_vars": {"FROM": "hook"}}
    monkeypatch.setenv("RAY_RUNTIME_ENV_HOOK", "nonsense")
    with pytest.raises(ValueError, match="nonsense"):
        run_hook({})


# ---- what is uploaded


def test_defaults_are_left_out(tmp_path, monkeypatch):
    write(tmp_path, a_dot_py="", venv__x="", sub__b_dot_py="", sub____pycache____c="")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("")
    (tmp_path / "sub" / "__pycache__").mkdir()
    (tmp_path / "sub" / "__pycache__" / "c.pyc").write_text("")
    assert [name for name in names(tmp_path) if "c" not in name] == ["a.py", "sub/b.py"]
    assert not any("__pycache__" in name or ".git" in name for name in names(tmp_path))
    monkeypatch.setenv("RAY_OVERRIDE_RUNTIME_ENV_DEFAULT_EXCLUDES", "sub")
    assert ".git/HEAD" in names(tmp_path) and not any(
        name.startswith("sub") for name in names(tmp_path)
    )


@pytest.mark.parametrize(
    "pattern, left",
    [
        ("*.log", ["a.txt", "deep/a.txt", "deep/er/b.txt"]),
        ("/a.txt", ["a.log", "deep/a.log", "deep/a.txt", "deep/er/b.txt"]),
        ("deep/", ["a.log", "a.txt"]),
        ("deep/*.log", ["a.log", "a.txt", "deep/a.txt", "deep/er/b.txt"]),
        ("deep/**", ["a.log", "a.txt"]),
        ("**/er", ["a.log", "a.txt", "deep/a.log", "deep/a.txt"]),
        ("a.[lx]og", ["a.txt", "deep/a.txt", "deep/er/b.txt"]),
        ("# a.txt", None),
        ("a?txt", ["a.log", "deep/a.log", "deep/er/b.txt"]),
    ],
)
def test_patterns(tmp_path, pattern, left):
    write(
        tmp_path,
        a_dot_txt="",
        a_dot_log="",
        deep__a_dot_txt="",
        deep__a_dot_log="",
        deep__er__b_dot_txt="",
    )
    everything = ["a.log", "a.txt", "deep/a.log", "deep/a.txt", "deep/er/b.txt"]
    assert names(tmp_path) == everything
    assert names(tmp_path, [pattern]) == (left if left is not None else everything)


def test_ignore_files(tmp_path, monkeypatch):
    write(
        tmp_path, a_dot_log="", keep_dot_log="", b_dot_tmp="", sub__c_dot_dat="", sub__d_dot_dat=""
    )
    (tmp_path / ".gitignore").write_text("*.log\n!keep.log\n")
    (tmp_path / ".rayignore").write_text("*.tmp\n")
    (tmp_path / "sub" / ".gitignore").write_text("/c.dat\n")
    shown = [name for name in names(tmp_path) if "ignore" not in name]
    assert shown == ["keep.log", "sub/d.dat"]
    assert "keep.log" not in names(tmp_path, ["keep.log"])
    monkeypatch.setenv("RAY_RUNTIME_ENV_IGNORE_GITIGNORE", "1")
    assert {"a.log", "sub/c.dat"} <= set(names(tmp_path)) and "b.tmp" not in names(tmp_path)


def test_links_are_followed_once(tmp_path):
    write(tmp_path, real__a="x")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "real" / "up").symlink_to(tmp_path)
    (tmp_path / "broken").symlink_to("/no/such/file")
    os.mkfifo(tmp_path / "pipe")
    assert names(tmp_path) == ["link/a", "real/a"]


def test_packages_are_named_by_their_content(tmp_path):
    write(tmp_path, one__a="x", two__a="x", three__a="y")
    (tmp_path / "one" / "run").write_text("#!")
    (tmp_path / "one" / "run").chmod(0o755)
    uploads = [
        package_folder(str(tmp_path / name), excludes)
        for name, excludes in (("one", ["run"]), ("two", []), ("three", []), ("one", []))
    ]
    try:
        assert (
            uploads[0].name == uploads[1].name != uploads[2].name
            and uploads[0].name.startswith("_ray_pkg_")
            and uploads[0].name.endswith(".zip")
        )
        unpack(uploads[3].path, str(tmp_path / "out"), uploads[3].name)
        assert os.access(tmp_path / "out" / "run", os.X_OK) and not os.access(
            tmp_path / "out" / "a", os.X_OK
        )
    finally:
        for upload in uploads:
            upload.discard()
    assert not any(os.path.exists(upload.path) for upload in uploads)


def test_a_folder_in_which_nothing_is_is_packed(tmp_path):
    write(tmp_path, source__a="x", source__only__left_out="x", source__unused__b="x")
    (tmp_path / "source" / "empty" / "below").mkdir(parents=True)
    upload = package_folder(str(tmp_path / "source"), ["left_out", "unused"])
    try:
        unpack(upload.path, str(tmp_path / "out"), upload.name)
    finally:
        upload.discard()
    below = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*")}
    assert below == {"a", "empty", "empty/below"} and (tmp_path / "out" / "empty/below").is_dir()


def test_size_limit_and_warning(tmp_path, monkeypatch, caplog):
    (tmp_path / "big").write_bytes(os.urandom(300_000))
    monkeypatch.setenv("RAY_max_grpc_message_size", "200000")
    with pytest.raises(ValueError, match="excludes"):
        working_dir_upload(str(tmp_path), [])
    working_dir_upload(str(tmp_path), ["big"]).discard()
    monkeypatch.setenv("RAY_max_grpc_message_size", "400000")
    with caplog.at_level("WARNING", "ray"):
        working_dir_upload(str(tmp_path), []).discard()
    assert "is large" in caplog.text
    with pytest.raises(ValueError):
        working_dir_upload(str(tmp_path / "big"), [])


def test_py_modules(tmp_path):
    import json as module

    write(tmp_path, alone_dot_py="X = 1")
    for given, inside in ((module, "json/decoder.py"), (str(tmp_path / "alone.py"), "alone.py")):
        upload = py_module_upload(given, [])
        assert inside in zipfile.ZipFile(upload.path).namelist()
        upload.discard()
    with pytest.raises(ValueError):
        py_module_upload(str(tmp_path / "none"), [])


# ---- unpacking what others made


def zip_of(path, *entries):
    with zipfile.ZipFile(path, "w") as archive:
        for name, mode in entries:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            archive.writestr(info, "/etc/passwd")


@pytest.mark.parametrize(
    "name, mode",
    [
        ("../evil", 0o100644),
        ("/evil", 0o100644),
        ("a/../../evil", 0o100644),
        ("..\\evil", 0o100644),
        ("link", stat.S_IFLNK | 0o777),
        ("device", stat.S_IFCHR | 0o600),
    ],
)
def test_a_zip_cannot_write_elsewhere(tmp_path, name, mode):
    zip_of(tmp_path / "bad.zip", ("good", 0o100644), (name, mode))
    with pytest.raises(SetupError, match="evil|link|device"):
        unpack(str(tmp_path / "bad.zip"), str(tmp_path / "in" / "out"), "bad.zip")
    assert not (tmp_path / "in" / "evil").exists() and not (tmp_path / "evil").exists()


@pytest.mark.parametrize(
    "name, kind, target",
    [
        ("../evil", tarfile.REGTYPE, ""),
        ("link", tarfile.SYMTYPE, "/etc"),
        ("hard", tarfile.LNKTYPE, "/etc/passwd"),
        ("fifo", tarfile.FIFOTYPE, ""),
    ],
)
def test_a_tar_cannot_write_elsewhere(tmp_path, name, kind, target):
    with tarfile.open(tmp_path / "bad.tar.gz", "w:gz") as archive:
        info = tarfile.TarInfo(name)
        info.type, info.linkname = kind, target
        archive.addfile(info, io.BytesIO())
    with pytest.raises(SetupError):
        unpack(str(tmp_path / "bad.tar.gz"), str(tmp_path / "in" / "out"), "bad.tar.gz")
    assert not (tmp_path / "in" / "evil").exists() and not os.path.lexists(
        tmp_path / "in" / "out" / "link"
    )


def test_bombs_and_rubbish_are_refused(tmp_path, monkeypatch):
    (tmp_path / "rubbish.zip").write_text("this is no archive")
    for name in ("rubbish.zip", "rubbish.tar.gz"):
        with pytest.raises(SetupError, match="unpacked"):
            unpack(str(tmp_path / "rubbish.zip"), str(tmp_path / name.replace(".", "-")), name)
    monkeypatch.setattr(packages, "_MAX_UNPACKED", 5)
    zip_of(tmp_path / "big.zip", ("file", 0o100644))
    with pytest.raises(SetupError, match="too large"):
        unpack(str(tmp_path / "big.zip"), str(tmp_path / "big"), "big.zip")


def test_a_name_that_is_both_file_and_folder(tmp_path):
    zip_of(tmp_path / "both.zip", ("a", 0o100644), ("a/b", 0o100644))
    zip_of(tmp_path / "reversed.zip", ("a/b", 0o100644), ("a", 0o100644))
    for name in ("both.zip", "reversed.zip"):
        with pytest.raises(SetupError, match="'a' is both a file and a folder"):
            unpack(str(tmp_path / name), str(tmp_path / "out" / name), name)


def test_names_that_are_no_text_are_refused(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    with open(os.fsencode(folder) + b"/\xff", "w"):
        pass
    with pytest.raises(ValueError, match=r"xff.*excludes"):
        working_dir_upload(str(folder), [])


# ---- the cache of a node


def fill(path):
    os.makedirs(path)
    with open(os.path.join(path, "file"), "w") as file:
        file.write("x" * 1000)


def test_folders_are_made_once_and_a_failure_leaves_nothing(tmp_path):
    cache = Cache(str(tmp_path))

    def fail(path):
        fill(path)
        raise SetupError("no")

    with pytest.raises(SetupError):
        cache.folder("a", fail)
    assert sorted(os.listdir(cache.root)) == ["a.lock"]
    assert cache.folder("a", fill)[1] and not cache.folder("a", fail)[1]


def test_what_nobody_uses_is_swept(tmp_path, monkeypatch):
    cache = Cache(str(tmp_path))
    mine, _ = cache.folder("mine", fill)
    child = os.fork()
    if child == 0:
        packages._held.clear()
        os._exit(0 if cache.folder("theirs", fill)[1] else 1)
    assert os.waitpid(child, 0)[1] == 0
    theirs = os.path.join(cache.root, "theirs")
    cache.sweep(lambda name: True)
    assert os.path.isdir(theirs)
    # No job uses it any more.
    cache.sweep(lambda name: False)
    assert (
        not os.path.exists(theirs) and not os.path.exists(theirs + ".lock") and os.path.isdir(mine)
    )
    monkeypatch.setenv("RAY_RUNTIME_ENV_CACHE_SIZE_GB", "0")
    cache.sweep(lambda name: True)
    # It belongs to a living process.
    assert os.path.isdir(mine)
