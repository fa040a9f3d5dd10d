"""Runs every program of this directory on this project and on Ray from PyPI, and prints where
their outputs differ.

The exit code is 1 when a difference is listed neither in explained.toml nor in known_differences.
With --ours, the outputs of Ray are those stored under expected/, which --ray --store writes.

The programs of train/ need ray[train] and PyTorch, which --train-python (or the variable
RAY_TRAIN_PYTHON) names by its interpreter. Without it their stored outputs stand for Ray's.
"""

import argparse
import concurrent.futures
import difflib
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib

from programs import EXTRAS, HERE, compare, discover, execute

RAY_VERSION = "==2.60.0"


@functools.cache
def known_differences():
    """Maps programs to the features they wait for; the tests do not compare them until then."""
    pairs = (
        line.split(": ", 1)
        for line in (HERE / "known_differences").read_text().split("\n")
        if line and not line.startswith("#")
    )
    return dict(pairs)


# Maps programs to the reason why they differ from Ray for good.
@functools.cache
def explained():
    with open(HERE / "explained.toml", "rb") as file:
        return tomllib.load(file)["programs"]


# Installs Ray, and with `extras` what some programs need; returns Ray's interpreter.
def install(extras):
    python = compare.install_ray(RAY_VERSION)
    if extras and not EXTRAS.exists():
        listed = subprocess.run(
            [python, "-c", "import importlib.metadata as m; print(*m.requires('ray'), sep='\\n')"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.splitlines()
        names = [
            line.split(";")[0].strip()
            for line in listed
            if re.search(r"extra == ['\"]default['\"]", line)
        ]
        subprocess.run(
            [python, "-m", "pip", "install", "--quiet", "--target", str(EXTRAS), *names, "joblib"],
            check=True,
        )
    return python


# Runs the programs `found`, `jobs` at once; returns their outputs by name. Programs that need to
# be alone run after the others. `note` is called with every progress message.
def run_side(found, python, ours, jobs, note):
    outputs = {}

    def finished(program, output, errors):
        outputs[program.name] = output
        note(f"{'ours' if ours else 'ray '} {program.name}")
        if output.endswith(("[timeout]\n", "[exit 1]\n")):
            note(errors[-1500:])

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        futures = {
            pool.submit(execute, program, python, ours): program
            for program in found
            if not program.alone
        }
        for future in concurrent.futures.as_completed(futures):
            finished(futures[future], *future.result())
    for program in found:
        if program.alone:
            finished(program, *execute(program, python, ours))
    return outputs


# Runs the programs `found` on Ray, those of train/ with the interpreter that was named for them;
# returns their outputs by name.
def run_on_ray(found, args, note):
    train = [program for program in found if program.group == "train"]
    others = [program for program in found if program.group != "train"]
    outputs = {}
    if others:
        python = install(any(program.extras for program in others))
        outputs.update(run_side(others, python, False, args.jobs, note))
    # Two training runs at once starve each other on a small machine, and Ray's start has limits.
    outputs.update(run_side(train, args.train_python, False, 1, note))
    return outputs


def stored(found):
    return {
        program.name: program.expected.read_text() for program in found if program.expected.exists()
    }


def store(found, outputs):
    for program in found:
        program.expected.parent.mkdir(parents=True, exist_ok=True)
        program.expected.write_text(outputs[program.name])


# Prints the differences; returns 1 if one of them is not listed, else 0.
def report(found, ours, ray, args):
    reasons, waiting = explained(), known_differences()
    rows = []
    for program in found:
        same = ours.get(program.name) == ray.get(program.name)
        diff = (
            []
            if same
            else list(
                difflib.unified_diff(
                    ray.get(program.name, "").splitlines(),
                    ours.get(program.name, "").splitlines(),
                    "ray",
                    "ours",
                    lineterm="",
                    n=1,
                )
            )
        )
        rows.append(
            {
                "program": program.name,
                "behaviour": program.behaviour,
                "same": same,
                "explained": reasons.get(program.name),
                "known": waiting.get(program.name),
                "diff": diff,
            }
        )
    open_rows = [
        row for row in rows if not row["same"] and not row["explained"] and not row["known"]
    ]
    waits = [row for row in rows if not row["same"] and not row["explained"] and row["known"]]
    if args.json:
        print(
            json.dumps(
                {
                    "programs": len(rows),
                    "agree": sum(row["same"] for row in rows),
                    "wait": len(waits),
                    "unexplained": len(open_rows),
                    "rows": rows,
                },
                indent=1,
            )
        )
    else:
        for row in rows:
            if not row["same"]:
                print(f"\n=== {row['program']}: {row['behaviour']}")
                print(
                    f"    {'explained: ' + row['explained'] if row['explained'] else 'known difference: ' + row['known'] if row['known'] else 'NOT EXPLAINED'}"
                )
                print(*row["diff"][2:], sep="\n")
        print(
            f"\n{len(rows)} programs, {sum(row['same'] for row in rows)} agree, "
            f"{sum(not row['same'] and bool(row['explained']) for row in rows)} differ and are explained, "
            f"{len(waits)} wait for a feature or a correction, "
            f"{len(open_rows)} differ unexplained"
        )
        agree = [
            row["program"] for row in rows if row["same"] and (row["known"] or row["explained"])
        ]
        if agree:
            print("listed as different, but agree now:", *agree)
    return 1 if open_rows else 0


# Prints where Ray's outputs are not those that were stored before; returns 1 if there are any.
def report_changes(before, ray):
    changed = [name for name in ray if name in before and before[name] != ray[name]]
    for name in changed:
        print(
            f"\n=== {name}",
            *list(
                difflib.unified_diff(
                    before[name].splitlines(),
                    ray[name].splitlines(),
                    "stored",
                    "now",
                    lineterm="",
                    n=1,
                )
            )[2:],
            sep="\n",
        )
    print(
        f"{len(ray)} programs on Ray, {len(changed)} differ from the stored outputs, "
        f"{len(ray) - len([n for n in ray if n in before])} new"
    )
    return 1 if changed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only",
        default="",
        metavar="PATTERN",
        help="programs whose name has this regular expression",
    )
    side = parser.add_mutually_exclusive_group()
    side.add_argument(
        "--ours", action="store_true", help="run only this project, against expected/"
    )
    side.add_argument(
        "--ray", action="store_true", help="run only Ray, against expected/ (is it stable?)"
    )
    parser.add_argument("--store", action="store_true", help="write Ray's outputs to expected/")
    parser.add_argument(
        "--train-python",
        default=os.environ.get("RAY_TRAIN_PYTHON"),
        metavar="PATH",
        help="an interpreter that has ray[train] and torch (default: $RAY_TRAIN_PYTHON)",
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.jobs < 1:
        parser.error(f"--jobs is {args.jobs}: at least one program runs at a time")
    if args.train_python and not shutil.which(args.train_python):
        parser.error(f"--train-python {args.train_python}: there is no such program")

    try:
        found = discover(args.only)
    except re.error as error:
        parser.error(f"--only {args.only}: this is no regular expression: {error}")
    if not found:
        print(f"no program matches {args.only!r}", file=sys.stderr)
        return 1

    def note(text):
        print(text, file=sys.stderr, flush=True)

    missing = [
        name
        for name in {**explained(), **known_differences()}
        if name not in {program.name for program in discover()}
    ]
    if missing:
        parser.error(f"listed, but no such program: {' '.join(missing)}")

    def compare_with_stored():
        own = [program for program in found if not program.missing]
        return report(own, run_side(own, sys.executable, True, args.jobs, note), stored(own), args)

    if args.ours:
        return compare_with_stored()
    on_ray = [program for program in found if program.group != "train" or args.train_python]
    if len(on_ray) < len(found):
        note(f"no --train-python: {len(found) - len(on_ray)} programs of train/ do not run on Ray")
    try:
        ray = run_on_ray(on_ray, args, note)
    except (subprocess.CalledProcessError, OSError) as error:
        if args.ray or args.store:
            parser.error(f"Ray cannot be installed: {error}")
        note(f"Ray cannot be installed ({error}); comparing with its stored outputs")
        return compare_with_stored()
    before = stored(found)
    if args.store:
        store(on_ray, ray)
    if args.ray:
        return report_changes(before, ray)
    ours = [program for program in found if not program.missing]
    return report(
        ours, run_side(ours, sys.executable, True, args.jobs, note), {**before, **ray}, args
    )


if __name__ == "__main__":
    sys.exit(main())
