"""Measures the same lines on this project and on Ray from PyPI, and prints ratios.

The two alternate line by line in one run, with separate temporary roots and tokens. `make
bench-compare` installs Ray into a virtual environment of its own under build/, and draws the
figure from the results (figure.py). With --no-ray only this project is measured (`make bench`).
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
VENV = ROOT / "build" / "ray-venv"
BENCH = ROOT / "bench"

# The ratios to Ray that this project must reach.
FLOORS = {
    "single client get calls (Plasma Store)": 20,
    "single client put calls (Plasma Store)": 50,
    "multi client put calls (Plasma Store)": 50,
    "single client put gigabytes": 4,
    "multi client put gigabytes": 1.5,
    "single client tasks and get batch": 20,
    "single client get object containing 10k refs": 5,
    "single client wait 1k refs": 20,
    "single client tasks sync": 10,
    "single client tasks async": 20,
    "multi client tasks async": 20,
    "1:1 actor calls sync": 8,
    "1:1 actor calls async": 15,
    "1:1 actor calls concurrent": 5,
    "1:n actor calls async": 15,
    "n:n actor calls async": 15,
    "n:n actor calls with arg async": 15,
    "1:1 async-actor calls sync": 8,
    "1:1 async-actor calls async": 8,
    "1:1 async-actor calls with args async": 8,
    "1:n async-actor calls async": 8,
    "n:n async-actor calls async": 8,
    "placement group create/removal": 20,
}
LINES = "\n".join(f"  {line}" for line in FLOORS)


def environment(root, ours):
    env = {k: v for k, v in os.environ.items() if not k.startswith("RAY_") and k != "PYTHONPATH"}
    env.update(
        RAY_TMPDIR=str(root),
        RAY_AUTH_TOKEN_PATH=str(root / "token"),
        RAY_USAGE_STATS_ENABLED="0",
        RAY_DEDUP_LOGS="1",
    )
    (root / "token").write_text("0" * 64)
    os.chmod(root / "token", 0o600)
    if ours:
        env["PYTHONPATH"] = str(ROOT / "build" / "python")
    return env


def run(python, env, script, extra, cwd):
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        done = subprocess.run(
            [python, str(BENCH / script), "--out", out.name, *extra],
            env=env,
            cwd=cwd,
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            print(
                f"failed: {script} {' '.join(extra)}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}",
                file=sys.stderr,
            )
            return {}
        return json.load(open(out.name))


def install_ray(version):
    """Returns the interpreter of an environment with Ray; raises OSError or CalledProcessError."""
    python = VENV / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
    subprocess.run(
        [str(python), "-m", "pip", "install", "--quiet", f"ray{version}", "numpy"], check=True
    )
    return str(python)


def versions(systems, roots):
    """Returns the version of each system, for this project with the measured commit."""
    found = {}
    for name, python in systems.items():
        done = subprocess.run(
            [python, "-c", "import ray; print(ray.__version__)"],
            env=environment(roots[name], name == "ours"),
            cwd=roots[name],
            check=False,
            capture_output=True,
            text=True,
        )
        found[name] = done.stdout.strip()
    project = re.search(
        r"^project\(\w+ VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE
    ).group(1)
    commit = subprocess.run(
        ["git", "-C", str(ROOT), "describe", "--always", "--dirty"],
        check=False,
        capture_output=True,
        text=True,
    ).stdout.strip()
    found["ours"] = f"{project} ({commit})" if commit else project
    return found


def machine():
    """Returns processors, memory and kernel as text for the figure."""
    processor = re.search(
        r"^model name\s*: (.+)$", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    name = " ".join(processor.group(1).split()) if processor else platform.machine()
    cores = len(os.sched_getaffinity(0))
    return f"{cores} cores of {name}, {memory:.0f} GiB, Linux {platform.release().split('-')[0]}"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-ray", action="store_true")
    parser.add_argument("--only", default="", help="lines whose name contains this")
    parser.add_argument(
        "--quick", action="store_true", help="one warm second, two rounds of one second"
    )
    parser.add_argument("--ray-version", default="", help="e.g. ==2.60.0")
    parser.add_argument("--programs", action="store_true", help="also the users' programs")
    parser.add_argument(
        "--out",
        default=str(ROOT / "build" / "bench.json"),
        help="the figures of both systems, as JSON (default: build/bench.json)",
    )
    args = parser.parse_args()
    if not any(args.only in line for line in FLOORS):
        parser.error(f"--only {args.only}: no line has this in its name; they are:\n" + LINES)
    if not os.access(pathlib.Path(args.out).absolute().parent, os.W_OK):
        parser.error(f"--out {args.out}: its directory is not there, or cannot be written")
    return args


def compare_lines(args, systems, roots, results):
    extra = (
        ["--rounds", "2", "--seconds", "1", "--warm", "0.5", "--rest", "0.5"] if args.quick else []
    )
    for line in FLOORS:
        if args.only not in line:
            continue
        row = results.setdefault(line, {})
        for name, python in systems.items():
            found = run(
                python,
                environment(roots[name], name == "ours"),
                "lines.py",
                ["--only", line, "--exact", *extra],
                roots[name],
            )
            row[name] = found.get(line)
        show(line, row)


def compare_programs(args, systems, roots, results):
    programs = {
        name: run(python, environment(roots[name], name == "ours"), "programs.py", [], roots[name])
        for name, python in systems.items()
    }
    results["programs"] = programs
    for key, value in programs["ours"].items():
        other = programs.get("ray", {}).get(key)
        print(
            f"{key:50s} {value:10.3f}"
            + (
                f" {other:10.3f}   {other / value if value else 0:7.1f}x"
                if other is not None
                else ""
            )
        )
    recording = run(
        systems["ours"],
        environment(roots["ours"], True),
        "recording_cost.py",
        ["--turns", "10"] if args.quick else [],
        roots["ours"],
    )
    results["recording"] = recording
    for key, value in recording.items():
        print(f"{key:50s} {value:10.1f} %")


def main():
    args = arguments()
    systems = {"ours": sys.executable}
    if not args.no_ray:
        try:
            systems["ray"] = install_ray(args.ray_version)
        except (subprocess.CalledProcessError, OSError):
            sys.exit(
                f"compare.py: Ray cannot be installed into {VENV}, for the reason above: it comes "
                "from PyPI, so pip needs a network or an index of its own (PIP_INDEX_URL), and venv "
                "needs python3-venv (Debian); --no-ray measures this project alone"
            )
    roots = {name: pathlib.Path(tempfile.mkdtemp(prefix=f"bench-{name}-")) for name in systems}
    results = {
        "about": {
            **versions(systems, roots),
            "machine": machine(),
            "date": datetime.date.today().isoformat(),
            "method": "two rounds of one second a line"
            if args.quick
            else "four rounds of two seconds a line",
        }
    }
    try:
        compare_lines(args, systems, roots, results)
        if args.programs:
            compare_programs(args, systems, roots, results)
    finally:
        for root in roots.values():
            shutil.rmtree(root, ignore_errors=True)
    with open(args.out, "w") as out:
        json.dump(results, out, indent=1)


def show(line, row):
    ours, ray = row.get("ours"), row.get("ray")
    text = f"{line:46s}" + (f" {ours[0]:14.2f} +- {ours[1]:10.2f}" if ours else "         failed")
    if ours and ray:
        ratio = ours[0] / ray[0]
        text += (
            f"   ray {ray[0]:12.2f} +- {ray[1]:9.2f}   {ratio:7.1f}x (floor "
            f"{FLOORS[line]}x{'' if ratio >= FLOORS[line] else ' MISSED'})"
        )
    print(text, flush=True)


if __name__ == "__main__":
    main()
