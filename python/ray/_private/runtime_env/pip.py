"""The pip field: a virtual environment for each set of packages, shared by the workers of a node.

It is made on top of the worker's interpreter and the packages installed there.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess

from ray._private.runtime_env.errors import SetupError
from ray._private.runtime_env.packages import Cache

_LINES_SHOWN = 15


def _run(command: list[str], what: str):
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    if done.returncode:
        last = "\n".join(done.stdout.strip().splitlines()[-_LINES_SHOWN:])
        raise SetupError(f"pip: {what} failed with code {done.returncode}. Its last lines:\n{last}")


def _own_site_packages(python: str) -> list[str]:
    """The site-packages of an interpreter that belongs to a virtual environment, else [].

    A new environment is made on top of the same base interpreter and would not see them.
    """
    code = (
        "import json, site, sys; print(json.dumps(site.getsitepackages() if sys.prefix != "
        "sys.base_prefix else []))"
    )
    return json.loads(
        subprocess.run(
            [python, "-c", code],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    )


def make_environment(pip: dict, cache: Cache, python: str) -> str:
    """Returns the interpreter of the environment for these packages.

    The environment is made if this node does not have it. Raises SetupError with pip's last lines.
    """
    options = pip.get("pip_install_options") or []
    identity = json.dumps(
        [
            pip,
            os.path.realpath(python),
            python,
            os.environ.get("PIP_INDEX_URL"),
            os.environ.get("PIP_FIND_LINKS"),
        ],
        sort_keys=True,
    )

    def make(path: str):
        _run(
            [python, "-m", "venv", "--system-site-packages", "--without-pip", path],
            "making a virtual environment",
        )
        inner = os.path.join(path, "bin", "python")
        # The interpreter's own pip serves as well as a copy of it, which would take seconds.
        if subprocess.run(
            [inner, "-m", "pip", "--version"], stdin=subprocess.DEVNULL, capture_output=True
        ).returncode:
            _run(
                [inner, "-m", "ensurepip"],
                "installing pip into the virtual environment (is python3-venv installed?)",
            )
        parents = _own_site_packages(python)
        if parents:
            found = subprocess.run(
                [inner, "-c", "import site; print(site.getsitepackages()[0])"],
                capture_output=True,
                text=True,
                check=True,
            ).stdout.strip()
            with open(
                os.path.join(found, "_ray_parent_environment.pth"), "w", encoding="utf-8"
            ) as file:
                file.write("\n".join(parents) + "\n")
        base = [inner, "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
        if pip.get("pip_version"):
            _run([*base, f"pip{pip['pip_version']}"], f"installing pip{pip['pip_version']}")
        if pip["packages"]:
            requirements = os.path.join(path, "ray_requirements.txt")
            with open(requirements, "w", encoding="utf-8") as file:
                file.write("\n".join(pip["packages"]) + "\n")
            _run([*base, *options, "-r", requirements], f"installing {', '.join(pip['packages'])}")
        if pip.get("pip_check"):
            _run([inner, "-m", "pip", "check", "--disable-pip-version-check"], "pip check")

    name = "pip_" + hashlib.blake2b(identity.encode(), digest_size=16).hexdigest()
    path, made = cache.folder(name, make, in_place=True)
    if made:
        cache.sweep(lambda other: True)
    return os.path.join(path, "bin", "python")
