"""Checks of the tree itself: include directions, generated documents, example files."""

import glob
import json
import os
import re
import subprocess
import sys

import pytest

from shell import BIN, REPO

sys.path.insert(0, str(REPO / "scripts"))
import check_imports
import check_includes
import check_style


def test_include_directions():
    assert list(check_includes.violations(REPO)) == []


@pytest.mark.parametrize(
    "path, line",
    [
        ("daemons/head/service/x.cc", '#include "daemons/node_manager/core/types.h"'),
        ("worker/service/x.cc", "#include <boost/asio.hpp>"),
        ("worker/core/x.h", '#include "common/net/loop.h"'),
        ("daemons/head/core/x.cc", "#include <thread>"),
        ("daemons/head/core/x.cc", "auto now = steady_now_us();"),
        ("common/base/x.h", '#include "common/net/loop.h"'),
    ],
)
def test_a_wrong_include_is_found(tmp_path, path, line):
    file = tmp_path / path
    file.parent.mkdir(parents=True)
    file.write_text(line + "\n")
    (found,) = check_includes.violations(tmp_path)
    assert found.startswith(f"{path}:1:")


@pytest.mark.parametrize(
    "link, found",
    [
        ("other.md", ""),
        ("other.md#the-second-part", ""),
        ("#here", ""),
        ("https://example.org/absent", ""),
        ("absent.md", "no file"),
        ("other.md#the-third-part", "no heading"),
        ("#there", "no heading"),
    ],
)
def test_dead_links_are_found(tmp_path, link, found):
    (tmp_path / "other.md").write_text(
        "# Other\n```\n# The third part\n```\n## The `second` part\n"
    )
    document = tmp_path / "document.md"
    document.write_text(f"# Here\nsee [it]({link}), not `[code](absent)`\n")
    links = list(check_style.dead_links(document, tmp_path))
    assert [found in text for text in links] == [True] * bool(found)


def test_imports_have_no_circles():
    assert list(check_imports.violations(REPO)) == []
    # A module that is gone would not be checked any more.
    assert set(check_imports.BOTTOM) <= set(check_imports.modules_of(REPO))


def test_a_circle_of_imports_is_found(tmp_path):
    package = tmp_path / "python" / "ray"
    package.mkdir(parents=True)
    for name, text in {
        "__init__": "from ray.a import f",
        "a": "def f():\n    from ray import b",
        "b": "import ray.c",
        "c": "if TYPE_CHECKING:\n    from ray import a\nfrom ray import _raylet",
    }.items():
        (package / f"{name}.py").write_text(text + "\n")
    assert list(check_imports.violations(tmp_path)) == []
    (package / "c.py").write_text("from .a import f\n")
    (found,) = check_imports.violations(tmp_path)
    assert found.endswith("python/ray/a.py:2, python/ray/b.py:1, python/ray/c.py:1")


def test_an_import_at_the_bottom_is_found(tmp_path):
    session = tmp_path / "python" / "ray" / "_private" / "session.py"
    session.parent.mkdir(parents=True)
    (session.parent / "init.py").write_text("")
    session.write_text("def connect():\n    from ray._private import init\n")
    (found,) = check_imports.violations(tmp_path)
    assert found.startswith("python/ray/_private/session.py:2: ")


def test_no_program_looks_for_libraries_in_the_current_directory():
    """An empty entry in an RPATH means the current directory, where another user could put a
    library that the program then runs."""
    files = [*BIN.iterdir(), *REPO.glob("build/lib/*.so"), *REPO.glob("build/python/ray/*.so")]
    assert len(files) > 8
    for file in files:
        said = subprocess.run(["readelf", "-d", file], capture_output=True, text=True).stdout
        for line in said.splitlines():
            if "(RPATH)" in line or "(RUNPATH)" in line:
                entries = line.partition("[")[2].rpartition("]")[0].split(":")
                assert all(entry.startswith(("/", "$ORIGIN")) for entry in entries), (file, line)


def test_the_settings_document_is_current():
    table = subprocess.run(
        [BIN / "rayctl", "settings-doc"], capture_output=True, text=True, check=True
    ).stdout
    assert table in (REPO / "docs" / "configuration.md").read_text(), "run make docs"


def test_every_setting_is_read():
    """A setting that nothing reads is listed, accepted and checked, and has no effect."""
    table = (REPO / "common" / "config" / "settings.def").read_text()
    names = set(re.findall(r"^RT_SETTING\(\w+, (\w+),", table, re.MULTILINE))
    assert len(names) > 50
    for tree in ("common", "observability", "launch", "daemons", "worker", "python", "cpp", "cli"):
        for path in [*(REPO / tree).rglob("*.cc"), *(REPO / tree).rglob("*.h")]:
            names -= set(re.findall(r"(?:\.|->)(\w+)", path.read_text()))
    assert not names


@pytest.mark.parametrize(
    "path", sorted(glob.glob(str(REPO / "config" / "*.json"))), ids=os.path.basename
)
def test_example_files_are_accepted(shell, path):
    assert json.load(open(path))
    shell.ok(
        "start",
        "--head",
        "--port=0",
        "--config",
        path,
        "--num-cpus=1",
        "--object-store-memory=100000000",
    )
