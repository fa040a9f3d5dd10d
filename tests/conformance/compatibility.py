"""Makes docs/compatibility.md: every public name, option and behaviour of the interface with
*works*, *differs* or *absent*, and the programs and tests that show it.

    compatibility.py            writes the page (scripts/gen_docs calls it)
    compatibility.py --check    exits with 1 if the page is not what would be written

names.toml lists the names. A name works if the programs that show it print what Ray prints
(test_conformance.py checks that); explained.toml and known_differences list the programs that
do not. A name or option is absent if asking for it raises, and the error must name it.
"""

from __future__ import annotations

import dataclasses
import importlib
import sys
import tomllib
import warnings

import ray
from programs import HERE, PROJECT, discover
from ray._private import options as ray_options
from run import explained, known_differences

PAGE = PROJECT / "docs" / "compatibility.md"
INTRO = HERE / "compatibility.intro.md"
ABSENT = "absent: "


@dataclasses.dataclass
class Row:
    name: str
    status: str  # "works", "differs" or "absent"
    text: str  # How it differs, or why it is absent; empty for "works".
    shown: list  # The names of programs and test files.


def load() -> dict:
    with open(HERE / "names.toml", "rb") as file:
        return tomllib.load(file)


def path_of(shown: str):
    """The file of a program or of a test, or None if it does not exist."""
    candidates = (
        [HERE / f"{shown}.py"]
        if "/" in shown
        else [PROJECT / "tests" / place / f"{shown}.py" for place in ("python", "e2e")]
    )
    return next((path for path in candidates if path.exists()), None)


def find(name: str):
    """The object of a dotted name below `ray`.

    Raises AttributeError, ImportError or NotImplementedError if the name is absent.
    """
    parts = name.split(".")
    value = ray
    for at, part in enumerate(parts[1:], 1):
        try:
            value = getattr(value, part)
        except AttributeError:
            if hasattr(value, "__path__"):
                value = importlib.import_module(".".join(parts[: at + 1]))
            elif ".".join(parts[:at]) in sys.modules:
                # A function hides the module of its name, as that of ray.util.placement_group does.
                value = getattr(sys.modules[".".join(parts[:at])], part)
            else:
                raise
    return value


def refusal_of_name(name: str) -> str:
    """The text of the error that asking for an absent name raises; "" if the name is there."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            find(name)
    except (AttributeError, ImportError, NotImplementedError) as error:
        return str(error)
    return ""


def refusal_of_option(option: str, value) -> str:
    """The text of the error that using an absent option raises; "" if the option is taken."""
    try:
        ray_options.require_present({option: value})
    except NotImplementedError as error:
        return str(error)
    return ""


# The reason for the absence of `name`: that of its longest prefix in `reasons`, or "".
def reason_of(name: str, reasons: dict) -> str:
    prefixes = [".".join(name.split(".")[:length]) for length in range(name.count(".") + 1, 0, -1)]
    return next((reasons[prefix] for prefix in prefixes if prefix in reasons), "")


def row_of(name: str, words: str, there: bool = True) -> Row:
    """The row of a name that is not known to be absent.

    Args:
        name: the name, option or behaviour.
        words: the value from names.toml: programs and tests that show it, or "absent: why".
        there: False for a behaviour, which is absent if all its programs wait for a feature. A
            name or option is there, because asking for it did not raise.

    Returns:
        A row that works if all programs agree with Ray, and otherwise tells how they differ.
    """
    if words.startswith(ABSENT):
        return Row(name, "absent", words[len(ABSENT) :], [])
    shown, waiting, meant = words.split(), known_differences(), explained()
    if not there and all(waiting.get(program, "").startswith("not built yet") for program in shown):
        return Row(
            name, "absent", "; ".join(sorted({waiting[program] for program in shown})), shown
        )
    texts = [
        f"{program}: {waiting.get(program) or meant[program]}"
        for program in shown
        if program in waiting or program in meant
    ]
    return Row(name, "differs" if texts else "works", "; ".join(texts), shown)


def rows_of_names(listed: dict) -> dict:
    tables = {}
    for prefix, names in listed["names"].items():
        tables[f"`{prefix}`"] = rows = []
        for name, words in names.items():
            full = f"{prefix}.{name}"
            if refusal_of_name(full):
                rows.append(Row(name, "absent", reason_of(full, listed["absent"]), []))
            else:
                rows.append(row_of(name, words))
    return tables


def rows_of_options(listed: dict) -> dict:
    tables = {}
    for kind, options in listed["options"].items():
        tables[f"Options: {kind}"] = rows = []
        for option, (value, words) in options.items():
            refusal = refusal_of_option(option, value)
            rows.append(Row(option, "absent", refusal, []) if refusal else row_of(option, words))
    return tables


def rows_of_topics(listed: dict) -> dict:
    tables = {}
    for section, topics in listed["topics"].items():
        tables[section] = rows = []
        rows += [row_of(topic, words, there=False) for topic, words in topics.items()]
    return tables


def tables(listed: dict) -> list:
    return [
        ("Names", rows_of_names(listed)),
        ("Options", rows_of_options(listed)),
        ("Behaviour", rows_of_topics(listed)),
    ]


def _table(rows: list, code: bool) -> list:
    lines = ["| | | shown by |", "|---|---|---|"]
    for row in rows:
        name = f"`{row.name}`" if code else row.name.replace("|", "\\|")
        status = f"*{row.status}*" + (f": {row.text}" if row.text else "")
        lines.append(f"| {name} | {status.replace('|', chr(92) + '|')} | {', '.join(row.shown)} |")
    return [*lines, ""]


def _programs(found, listed: dict, title: str) -> list:
    lines = [title, ""] + ["| program | behaviour | |", "|---|---|---|"]
    behaviours = {program.name: program.behaviour for program in found}
    return (
        lines
        + [f"| {name} | {behaviours[name]} | {reason} |" for name, reason in sorted(listed.items())]
        + [""]
    )


def page() -> str:
    listed = load()
    parts = tables(listed)
    rows = [row for _, part in parts for table in part.values() for row in table]
    count = {
        status: sum(row.status == status for row in rows)
        for status in ("works", "differs", "absent")
    }
    found, meant = discover(), explained()
    waiting = {name: reason for name, reason in known_differences().items() if name not in meant}
    lines = [
        # Links lead to files of docs/, where the page stands beside them.
        INTRO.read_text().rstrip("\n").replace("](../../docs/", "]("),
        "",
        f"{len(rows)} entries: {count['works']} work, {count['differs']} differ, {count['absent']} are "
        f"absent. Of the programs {len(meant)} differ on purpose, {len(waiting)} wait for a feature.",
        "",
    ]
    for title, part in parts:
        lines += [f"## {title}", ""]
        for name, table in part.items():
            lines += [f"### {name}", "", *_table(table, code=title != "Behaviour")]
    lines += [
        "## Programs that differ",
        "",
        *_programs(found, meant, "Intended differences, or mistakes of Ray:"),
    ]
    if waiting:
        lines += _programs(found, waiting, "Programs that wait for a feature or a correction:")
    return "\n".join(lines).rstrip("\n") + "\n"


def main() -> int:
    text = page()
    if "--check" in sys.argv[1:]:
        return 0 if PAGE.exists() and PAGE.read_text() == text else 1
    PAGE.write_text(text)
    listed = load()
    absent = [
        f"{prefix}.{name}"
        for prefix, names in listed["names"].items()
        for name in names
        if refusal_of_name(f"{prefix}.{name}")
    ]
    here = [
        name
        for name in listed["absent"]
        if not any(f"{full}.".startswith(f"{name}.") for full in absent)
    ]
    if here:
        print(
            "names.toml: these names exist; remove the reasons for their absence:",
            *here,
            file=sys.stderr,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
