#!/usr/bin/python3
"""Moves accessors of generated messages from their header (.pb.h) into their source (.pb.cc).

protoc defines the accessors of a message as plain inline functions of its header. GCC instantiates
the templates that such functions call in each translation unit that has the header, even if it is
precompiled and the unit calls none of them.

Usage: outline_accessors.py (all | ownership) FROM TO

FROM.h and FROM.cc are what protoc wrote; TO.h and TO.cc are written, if they change. `all` moves
every accessor that is no template: a call of it is then a call of a function. `ownership` moves
those that take or give away a part of a message (set_allocated_x, release_x, unsafe_arena_x); all
others stay inline.
"""

import pathlib
import re
import sys

# The accessors of a header are between the first two texts; a source's definitions end at the
# third.
BEGIN = '  #pragma GCC diagnostic ignored "-Wstrict-aliasing"\n#endif  // __GNUC__\n'
END = "#ifdef __GNUC__\n  #pragma GCC diagnostic pop\n"
SOURCE_END = "// @@protoc_insertion_point(namespace_scope)\n"
ACCESSOR = re.compile(
    r"^(?P<template>template <[^\n]*\n)?"
    r"inline (?P<function>[^;{]*?(?P<name>\w+)\([^{;]*\{\n.*?^\}\n)",
    re.DOTALL | re.MULTILINE,
)
OWNERSHIP = re.compile(r"(set_allocated|release|unsafe_arena)_")
# Declared as always inlined in the class; only the source calls it.
ALWAYS_INLINE = re.compile(r"_internal_set_\w+\(const std::string& value\)")


def outline(which, header, source):
    """Returns the texts of the header and of the source after the accessors have moved."""
    begin, end, at = header.find(BEGIN), header.rfind(END), source.rfind(SOURCE_END)
    if min(begin, end, at) == -1:
        return header, source
    moved = []

    def move(match):
        if match["template"] or (which == "ownership" and not OWNERSHIP.match(match["name"])):
            return match[0]
        function = match["function"]
        moved.append(("inline " if ALWAYS_INLINE.search(function) else "") + function)
        return ""

    begin += len(BEGIN)
    header = header[:begin] + ACCESSOR.sub(move, header[begin:end]) + header[end:]
    return header, source[:at] + "".join(moved) + source[at:]


def write(path, text):
    """Writes `text` unless the file has it: a newer file is compiled again."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def main():
    which, generated, out = sys.argv[1:]
    texts = [pathlib.Path(generated + suffix).read_text() for suffix in (".h", ".cc")]
    header, source = outline(which, *texts)
    if source == texts[1]:
        print(f"{generated}.h has no accessors in the form of protoc 3.21: they stay inline")
    write(pathlib.Path(out + ".h"), header)
    write(pathlib.Path(out + ".cc"), source)


main()
