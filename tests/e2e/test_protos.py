"""The definitions of the messages (common/proto)."""

import pathlib
import re

REPO = pathlib.Path(__file__).resolve().parents[2]

# Text that the runtime writes, or has checked to be UTF-8.
CHECKED = {
    "build",
    "dashboard_address",
    "driver_ip",
    "event_counters",
    "format",
    "gpu_ids",
    "head_address",
    "ip",
    "location_ips",
    "node_ip",
    "node_manager_socket",
    "object_store_socket",
    "role",
    "session_dir",
    "session_name",
    "severity",
    "socket_path",
    "status",
    "token",
}


def test_text_of_unknown_origin_is_bytes():
    """A receiver refuses a whole message, such as that of a death, for one string in it that is not
    UTF-8."""
    for file in (REPO / "common" / "proto").glob("*.proto"):
        found = set(re.findall(r"\bstring (\w+) = \d+;", file.read_text()))
        assert found <= CHECKED, f"{file.name}: {found - CHECKED} must be bytes, or be checked"
        assert "map<string, string>" not in file.read_text(), file.name
