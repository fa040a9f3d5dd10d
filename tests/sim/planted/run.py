#!/usr/bin/env python3
"""Plants one wrong decision in each core, one at a time, and looks at which seed the simulator
finds it and by which invariant.

A copy of the tree is built in a directory of its own with all plants (plants.py); while a program
runs, SIM_PLANTED says which of them counts. Prints a table in Markdown. The exit status is 1 if a
plant is not found, or if the simulator reports something without any.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys

from plants import PLANTS

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAMS = (
    "groups",
    "churn",
    "links",
    "graphs",
    "owners",
    "copies",
    "shares",
    "streams",
    "borrows",
    "records",
    "arenas",
    "watches",
)
CHUNK = 25  # seeds of one run of the simulator
SWITCH = """#pragma once
#include <cstdlib>
namespace rt {
inline bool planted(int plant) {
  static const int chosen = std::getenv("SIM_PLANTED") ? std::atoi(std::getenv("SIM_PLANTED")) : -1;
  return plant == chosen;
}
}  // namespace rt
"""


def put(path, text):
    """Writes the file unless it has this text already, so that little is compiled again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_bytes() != text:
        path.write_bytes(text)


def switched(plant, number):
    if plant.old.endswith((";", "}")):
        return f"if (::rt::planted({number})) {{ {plant.new} }} else {{ {plant.old} }}"
    return f"(::rt::planted({number}) ? ({plant.new}) : ({plant.old}))"


def planted_sources():
    """The text of each file with plants, by its path."""
    texts = {}
    for number, plant in enumerate(PLANTS):
        original = (ROOT / plant.file).read_text()
        if original.count(plant.old) != 1:
            sys.exit(
                f"{plant.file} has {original.count(plant.old)} times, not once, what the plant of"
                f" {plant.core} replaces: {plant.old}"
            )
        text = texts.get(plant.file, original)
        if plant.old not in text:
            sys.exit(f"{plant.file}: the plant of {plant.core} overlaps with an earlier one")
        texts[plant.file] = text.replace(plant.old, switched(plant, number))
    include = '#include "tests/sim/planted/switch.h"\n'
    return {file: (include + text).encode() for file, text in texts.items()}


def build(scratch):
    """Builds the simulator with all plants, and returns where the program is."""
    source, objects = scratch / "source", scratch / "build"
    planted = planted_sources()
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            put(source / name, planted.get(name) or (ROOT / name).read_bytes())
            shutil.copymode(ROOT / name, source / name)
    put(source / "tests/sim/planted/switch.h", SWITCH.encode())
    unpacked = source / "build" / "third_party"  # by scripts/setup
    if not unpacked.is_symlink():
        unpacked.parent.mkdir(exist_ok=True)
        unpacked.symlink_to(ROOT / "build" / "third_party")
    if not (objects / "build.ninja").exists():
        subprocess.run(
            ["cmake", "-S", source, "-B", objects, "-G", "Ninja", "-DRT_TESTS=ON"],
            check=True,
            stdout=subprocess.DEVNULL,
        )
    subprocess.run(["ninja", "-C", objects, "--quiet", "sim"], check=True)
    return objects / "bin" / "sim"


def said(stderr):
    """The message with which the simulator aborted."""
    message = re.search(r"^violation: (.*)|^.*(check failed: .*)", stderr, re.MULTILINE)
    return (message.group(1) or message.group(2)) if message else "it ends abnormally"


def try_seeds(sim, environment, program, first, count, limit_s):
    """Returns the first seed at which the simulator aborts and its message, or None."""
    command = [sim, "--only", program, "--seed", str(first), "--seeds", str(count)]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=limit_s
        )
    except subprocess.TimeoutExpired:
        if count == 1:
            return first, f"{program}: does not end within {limit_s} s"
    else:
        if done.returncode == 0:
            return None
        if count == 1:
            return first, f"{program}: {said(done.stderr)}"
    for seed in range(first, first + count):
        if found := try_seeds(sim, environment, program, seed, 1, limit_s):
            return found
    return None


def run(sim, number, seeds, limit_s):
    """Returns where the plant is found and by what, or None if nothing finds it."""
    environment = {**os.environ, "SIM_PLANTED": str(number)}
    for first in range(0, seeds, CHUNK):
        count = min(CHUNK, seeds - first)
        tried = [try_seeds(sim, environment, p, first, count, limit_s) for p in PROGRAMS]
        if found := list(filter(None, tried)):
            return min(found)
    return None


def shown(message):
    """A message without what differs from run to run, short enough for a table."""
    message = re.sub(r"[0-9a-f]{16,}", "…", message.split("\n")[0]).replace("|", "/")
    message = re.sub(r" at /\S*/source/", " at ", message)
    return message if len(message) <= 150 else message[:147] + "..."


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "--check", action="store_true", help="see only whether each plant is where it belongs"
    )
    parser.add_argument("--seeds", type=int, default=1000, help="most seeds tried (default: 1000)")
    parser.add_argument("--only", default="", help="only plants whose core has this in its name")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="plants run at once")
    parser.add_argument("--limit", type=int, default=60, help="seconds of one run of the simulator")
    parser.add_argument("--scratch", type=pathlib.Path, default="/var/tmp/rt-planted")
    options = parser.parse_args()
    if options.check:
        planted_sources()
        return 0
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    chosen = [n for n, plant in enumerate(PLANTS) if options.only.lower() in plant.core.lower()]
    sim = build(options.scratch.resolve())
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        runs = [pool.submit(run, sim, n, options.seeds, options.limit) for n in chosen]
        nothing = pool.submit(run, sim, -1, 4 * CHUNK, options.limit)
        failed = False
        print("| core | wrong decision | found at seed | by |\n|---|---|---|---|")
        for number, result in zip(chosen, runs, strict=True):
            plant, found = PLANTS[number], result.result()
            if found:
                place = f"{found[0]} | {shown(found[1])}"
            else:
                place = f"not within {options.seeds} | nothing"
                failed = True
            print(f"| {plant.core} | {plant.decision} | {place} |", flush=True)
        if nothing.result():
            print("without any plant:", nothing.result(), file=sys.stderr)
            failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
