"""Adds up what the passes of scripts/test left in a directory: NAME.xml (JUnit) and NAME.code (the
exit code) of each.

Prints the slowest tests, what was skipped and why, and how it ended; the last part is written to a
file, too. Exits with 0 only when every pass did, and each ran at least one test.
"""

import collections
import pathlib
import re
import sys
import xml.etree.ElementTree as xml

SLOWEST = 20
PYTEST_PASSES = ("together", "alone")


def skipped_by_gtest(output):
    """Returns the reasons of the cases that one C++ program skipped, because ctest counts programs
    only."""
    return re.findall(r"^\S+:\d+: Skipped\n(.*)$", output, re.MULTILINE)


class Pass:
    """One run of ctest or pytest."""

    def __init__(self, directory, name):
        self.name, self.tests, self.skipped = name, [], collections.Counter()
        self.outcomes = collections.Counter()
        code = directory / f"{name}.code"
        self.code = int(code.read_text()) if code.exists() else None
        try:
            self.read(xml.parse(directory / f"{name}.xml").getroot())
        except (OSError, xml.ParseError):
            # The pass ended before it could write, which its exit code says.
            pass
        self.good = self.code == 0 and not self.outcomes["failed"] and self.ran() > 0

    def read(self, root):
        for test in root.iter("testcase"):
            # The name ends with the group of pytest-xdist.
            name = re.sub(r"@\w+$", "", test.get("name"))
            path = test.get("classname").replace(".", "/")
            self.skipped.update(skipped_by_gtest(test.findtext("system-out") or ""))
            self.tests.append(
                (float(test.get("time") or 0), f"{path}.py::{name}" if "/" in path else name)
            )
            skip = test.find("skipped")
            if test.find("failure") is not None or test.find("error") is not None:
                self.outcomes["failed"] += 1
            elif skip is not None:
                self.outcomes["skipped"] += 1
                self.skipped[skip.get("message") or "disabled"] += 1
            else:
                self.outcomes["passed"] += 1

    def ran(self):
        return self.outcomes["passed"] + self.outcomes["failed"]


def counts(passes):
    total = sum((one.outcomes for one in passes), collections.Counter())
    return ", ".join(f"{total[name]} {name}" for name in ("passed", "failed", "skipped"))


def main(directory, summary_file):
    directory = pathlib.Path(directory)
    ctest, *pytest = passes = [Pass(directory, name) for name in ("ctest", *PYTEST_PASSES)]
    tests = sorted((test for one in passes for test in one.tests), reverse=True)
    print(f"\nThe {SLOWEST} slowest tests:")
    for seconds, name in tests[:SLOWEST]:
        print(f"{seconds:7.1f} s  {name}")
    skipped = sum((one.skipped for one in passes), collections.Counter())
    print("\nSkipped:" if skipped else "\nNothing was skipped.")
    for reason, count in skipped.most_common():
        print(f"{count:7}    {reason}")

    lines = [f"ctest:  {counts([ctest])}", f"pytest: {counts(pytest)}"]
    bad = [one for one in passes if not one.good]
    if bad:
        how = ", ".join(
            f"{one.name} exit {one.code}" + ("" if one.ran() else ", no test ran") for one in bad
        )
        lines.append(f"RESULT: FAILED ({how})")
    else:
        lines.append("RESULT: all tests passed")
    pathlib.Path(summary_file).write_text("\n".join(lines) + "\n")
    print("", *lines, sep="\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
