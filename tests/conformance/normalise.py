"""Normalises the output of a program, so that two runs of it can be compared.

The rules, in this order:

1. ANSI colour codes are removed.
2. Lines of the cluster about itself, `(raylet) ...`, `(head) ...` and `(autoscaler ...) ...`, are
   removed with the indented lines that follow them.
3. `pid=123` becomes `pid=PID` and `ip=1.2.3.4` becomes `ip=IP`; any `1.2.3.4:5678` becomes
   ADDRESS, any other IPv4 address IP.
4. Hexadecimal words of 32, 36, 48 or 56 digits become `ID<digits>` and UUIDs become `UUID`.
   Job ids have 8 digits and stay.
5. Addresses of objects, `0x7f...`, become `0xN`.
6. In paths, the run's temporary root becomes ROOT, this project PROJECT, any site-packages
   LIBRARY, and folders `session_...` become SESSION.
7. Dates with times become TIME.
8. Blanks at the ends of lines and empty lines at the end are removed.
"""

import re

_RULES = [
    (r"\x1b\[[0-9;]*[A-Za-z]", ""),
    (r"(?m)^\((?:raylet|head|autoscaler)[^)\n]*\).*\n?(?:(?:[ \t].*)?\n)*", ""),
    (r"\bpid=\d+", "pid=PID"),
    (r"\bip=\d+\.\d+\.\d+\.\d+", "ip=IP"),
    (r"\b\d+\.\d+\.\d+\.\d+:\d+", "ADDRESS"),
    (r"\b\d+\.\d+\.\d+\.\d+\b", "IP"),
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "UUID"),
    (
        r"\b(?:[0-9a-f]{56}|[0-9a-f]{48}|[0-9a-f]{36}|[0-9a-f]{32})\b",
        lambda match: f"ID{len(match.group())}",
    ),
    (r"\b0x[0-9a-f]{6,}\b", "0xN"),
    (r"\bsession_\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d_\d+_\d+", "SESSION"),
    (r"[\w./-]*/(?:site|dist)-packages/", "LIBRARY/"),
    (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?", "TIME"),
]


# `text` after all rules; `root` and `project` are the paths of rule 6.
def normalise(text, root, project):
    text = (
        text.replace(str(root), "ROOT")
        .replace(str(project / "build" / "python"), "LIBRARY")
        .replace(str(project), "PROJECT")
    )
    for pattern, replacement in _RULES:
        text = re.sub(pattern, replacement, text)
    return "\n".join(line.rstrip() for line in text.split("\n")).rstrip("\n") + "\n"
