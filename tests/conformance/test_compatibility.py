"""docs/compatibility.md is true: every name of the contract is listed, a program or test shows it,
asking for an absent name raises an error that names it, and the page is current."""

import json
import os
import re
import sys

import pytest

import ray

sys.path.insert(0, os.path.dirname(__file__))
import compatibility
from programs import PROJECT, discover

# The pages that describe the interface are not part of this repository.
CONTRACT = PROJECT.parent / "shared" / "contract"
LISTED = compatibility.load()
PROGRAMS = discover()
ROWS = [
    (title, section, row)
    for title, part in compatibility.tables(LISTED)
    for section, rows in part.items()
    for row in rows
]
PRESENT = [entry for entry in ROWS if entry[2].status != "absent"]
ABSENT_NAMES = [
    f"{section.strip('`')}.{row.name}"
    for title, section, row in ROWS
    if title == "Names"
    and row.status == "absent"
    and compatibility.refusal_of_name(f"{section.strip('`')}.{row.name}")
]
ABSENT_OPTIONS = [
    (section.removeprefix("Options: "), row.name)
    for title, section, row in ROWS
    if title == "Options" and row.status == "absent" and not row.shown
]


def test_the_page_is_current():
    assert compatibility.PAGE.read_text() == compatibility.page(), "run make docs"


@pytest.mark.parametrize(
    "title, section, row", PRESENT, ids=[f"{section}-{row.name}" for _, section, row in PRESENT]
)
def test_something_shows_it(title, section, row):
    assert row.shown, f"{row.name} of {section} is there, and nothing in names.toml shows it"
    paths = [compatibility.path_of(shown) for shown in row.shown]
    assert None not in paths, f"no such program or test: {row.shown}"
    if title != "Behaviour":
        word = (
            re.compile(rf"(?<!\w){re.escape(row.name)}(?!\w)")
            if row.name != "__await__"
            else re.compile("await")
        )
        outputs = [
            program.expected.read_text()
            for program in PROGRAMS
            if program.name in row.shown and program.expected.exists()
        ]
        assert any(
            word.search(text) for text in [*(path.read_text() for path in paths), *outputs]
        ), f"{row.name} is in none of {row.shown}"


def test_every_absence_has_a_reason():
    assert not [
        (section, row.name) for _, section, row in ROWS if row.status == "absent" and not row.text
    ]


@pytest.mark.parametrize("name", ABSENT_NAMES)
def test_an_absent_name_says_so(name):
    refusal = compatibility.refusal_of_name(name)
    assert any(part in re.split(r"\W+", refusal) for part in name.split(".")[1:]), refusal
    with pytest.raises((AttributeError, ImportError, NotImplementedError)):
        compatibility.find(name)


@pytest.fixture(scope="module")
def session():
    with ray.init(num_cpus=1, object_store_memory=80_000_000, log_to_driver=False):
        yield


def use(kind, option, value):
    """Asks for an option the way a program does."""

    class Plain:
        def m(self):
            return 1

    if kind == "task":
        ray.remote(**{option: value})(lambda: 1).remote()
    elif kind == "actor":
        ray.remote(**{option: value})(Plain).remote()
    elif kind == "ray.method":
        Plain.m = ray.method(**{option: value})(Plain.m)
        ray.remote(Plain).remote().m.remote()
    else:
        ray.remote(Plain).remote().m.options(**{option: value}).remote()


@pytest.mark.parametrize("kind, option", ABSENT_OPTIONS)
def test_an_absent_option_says_so(session, kind, option):
    with pytest.raises(NotImplementedError, match="not in this release"):
        use(kind, option, LISTED["options"][kind][option][0])


# The tests below compare with the contract, where it is at hand.
contract = pytest.mark.skipif(
    not CONTRACT.exists(), reason="the contract's pages are not beside this tree"
)


@contract
def test_every_exception_and_option_of_the_contract_is_listed():
    assert set(json.loads((CONTRACT / "exceptions.json").read_text())["classes"]) <= set(
        LISTED["names"]["ray.exceptions"]
    )
    options = json.loads((CONTRACT / "options.json").read_text())
    for ours, theirs in {
        "task": "task",
        "actor": "actor",
        "ray.method": "method_decorator",
        "method call": "method_call_options",
    }.items():
        assert set(options[theirs]) == set(LISTED["options"][ours])


@contract
def test_every_topic_of_the_contract_is_listed():
    section, missing = "", []
    for line in (CONTRACT / "semantics.md").read_text().splitlines():
        if line.startswith("##"):
            section = line.lstrip("# ")
        elif line.startswith("|") and not line.startswith("|--"):
            topic = re.split(r"(?<!\\)\|", line)[1].strip().replace("\\|", "|")
            if topic.replace("`", "") not in (
                "Topic",
                "Option",
                "Call",
                "Situation",
                "Field",
                "Group",
                *(key.replace("`", "") for key in LISTED["topics"][section]),
            ):
                missing.append((section, topic))
    assert not missing


@contract
def test_every_name_of_the_contract_is_listed():
    """Names are the code, NAME or NAME(ARGUMENTS), in the first column of every table, or in the
    second column where the first holds a mark."""
    known = {
        part for prefix, names in LISTED["names"].items() for part in (*prefix.split("."), *names)
    }
    known |= {
        word
        for topics in LISTED["topics"].values()
        for topic in topics
        for word in re.findall(r"\w+", topic)
    } | {"async", "ValueError", "num_workers"}  # These are parts of signatures.
    missing = set()
    for line in (CONTRACT / "python-api.md").read_text().splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) < 2:
            continue
        cell = cells[1] if cells[0] in ("", "A") else cells[0]
        for code in re.findall(r"`([^`]*)`", cell):
            plain = re.sub(r"\([^()]*(\([^()]*\)[^()]*)*\)", "", code)
            missing |= {
                word
                for word in re.findall(r"[A-Za-z_]\w+", re.sub(r"=.*|->.*", "", plain))
                if word not in known
            }
    assert not missing
