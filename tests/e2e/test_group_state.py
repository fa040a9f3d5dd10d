"""Every view shows placement groups that are placed, that wait, that lost a node and that were
removed: lists, summaries, status, debug, events, metrics and the page."""

import json

import pytest
from browser import CHROMIUM, browser
from cluster import Cluster, world
from http_api import Api
from waiting import eventually, touch, until, wait_for

import ray
from ray.util import state
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy as InGroup


@ray.remote(num_cpus=1, max_retries=0)
def hold(here, end):
    touch(here)
    wait_for(end)


@ray.remote(num_cpus=1)
def short():
    return 1


@ray.remote(num_cpus=1)
class Sitter:
    def here(self):
        return 1


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """A cluster with groups in several states. `named` is placed, with an actor in bundle 1, and in
    bundle 0 a task that runs and another one that waits. `huge` can never be placed. The two groups
    `crowd` find no room now."""
    with world() as shell:
        made = Cluster(shell, cpus=4, dashboard_port=0)
        made.api = Api.of(shell, made.output)
        shell.env["RAY_ADDRESS"] = made.address
        ray.init(address=made.address, log_to_driver=False)
        made.named = placement_group([{"CPU": 1}, {"CPU": 1}], name="named", lifetime="detached")
        ray.get(made.named.ready(), timeout=120)
        made.hex = made.named.id.hex()
        ray.get(short.options(scheduling_strategy=InGroup(made.named, 0)).remote())
        made.sitter = Sitter.options(scheduling_strategy=InGroup(made.named, 1)).remote()
        ray.get(made.sitter.here.remote())
        scratch = tmp_path_factory.mktemp("groups")
        made.end = scratch / "end"
        made.held = hold.options(scheduling_strategy=InGroup(made.named, 0)).remote(
            str(scratch / "here"), str(made.end)
        )
        wait_for(str(scratch / "here"))
        made.waits = short.options(scheduling_strategy=InGroup(made.named, 0)).remote()
        made.huge = placement_group([{"CPU": 64}] * 2, strategy="STRICT_PACK", name="<i>huge</i>")
        made.crowd = [placement_group([{"CPU": 1}] * 3, strategy="SPREAD") for _ in range(2)]
        yield made
        touch(made.end)
        ray.shutdown()


def row_of(group, detail=True):
    return state.list_placement_groups(
        filters=[("placement_group_id", "=", group.id.hex())], detail=detail
    )[0]


def test_rows_are_the_same_everywhere(seen):
    until(lambda: len(state.list_placement_groups()), lambda count: count == 4)
    until(lambda: row_of(seen.huge).stats["scheduling_state"], lambda s: s == "INFEASIBLE")
    placed = row_of(seen.named)
    assert (placed.name, placed.state, placed.is_detached) == ("named", "CREATED", True)
    assert (placed.strategy, placed.creator_job_id) == (
        "PACK",
        ray.get_runtime_context().get_job_id(),
    )
    [node] = state.list_nodes()
    assert placed.bundles == [
        {
            "bundle_id": {"placement_group_id": seen.hex, "bundle_index": index},
            "unit_resources": {"CPU": 1.0},
            "node_id": node.node_id,
            "label_selector": {},
        }
        for index in range(2)
    ]
    assert placed.stats["scheduling_state"] == "FINISHED"
    assert int(placed.stats["end_to_end_creation_latency_us"]) > 0
    assert state.get_placement_group(seen.hex) == placed
    assert row_of(seen.named, detail=False).bundles is None
    huge = row_of(seen.huge)
    assert huge.state == "PENDING" and "64" in huge.why and huge.bundles[0]["node_id"] == ""
    assert state.get_placement_group("ff" * 18) is None
    by_http = seen.api.rows("placement_groups", detail=1, filters=[("name", "=", "named")])
    assert by_http["total"] == 4 and by_http["result"] == [placed.asdict()]
    [by_cli] = json.loads(
        seen.shell.ok("list", "placement-groups", "-f", "state=created", "--format=json")
    )
    assert by_cli == {
        "placement_group_id": seen.hex,
        "name": "named",
        "creator_job_id": placed.creator_job_id,
        "state": "CREATED",
    }
    assert len(state.list_placement_groups(limit=2)) == 2
    table = seen.shell.ok("list", "placement-groups").splitlines()
    assert table[8].split() == ["PLACEMENT_GROUP_ID", "NAME", "CREATOR_JOB_ID", "STATE"]
    shown = seen.shell.ok("get", "placement-groups", seen.hex)
    assert "state: CREATED" in shown and "strategy: PACK" in shown
    message = seen.shell.fails("list", "placement-groups", "-f", "state=LOST", code=2)
    assert "PENDING, PREPARED, CREATED, REMOVED, RESCHEDULING" in message


def test_a_summary_counts_by_strategy(seen):
    summary = json.loads(seen.shell.ok("summary", "placement-groups", "--format=json"))
    assert summary["summary"] == {
        "PACK": {"strategy": "PACK", "state_counts": {"CREATED": 1}},
        "SPREAD": {"strategy": "SPREAD", "state_counts": {"PENDING": 2}},
        "STRICT_PACK": {"strategy": "STRICT_PACK", "state_counts": {"PENDING": 1}},
    }
    assert (summary["total_placement_groups"], summary["total_bundles"]) == (4, 10)
    text = seen.shell.ok("summary", "placement-groups")
    assert "Placement groups Summary" in text and "Table (group by strategy)" in text
    over_http = seen.api.ok("/api/v0/placement_groups/summarize")["result"]["result"]
    assert over_http["node_id_to_summary"]["cluster"]["summary"] == summary["summary"]


def test_status_has_reservations_and_what_waits(seen):
    wanted = (
        " 2.0/4.0 CPU (2.0 used of 2.0 reserved in placement groups)\n",
        " {'CPU': 1.0}: 1+ pending tasks/actors (1+ using placement groups)",
        " {'CPU': 1.0} * 3 (SPREAD): 2+ pending placement groups\n",
        " {'CPU': 64.0} * 2 (STRICT_PACK): 1+ pending placement groups (infeasible",
    )
    text = until(lambda: seen.shell.ok("status"), lambda text: all(part in text for part in wanted))
    assert "<i>huge</i>" in text
    answer = json.loads(seen.shell.ok("status", "--format=json"))
    assert answer["reserved_resources"] == {"CPU": {"reserved": 2.0, "used": 2.0}}
    assert answer["available_resources"]["CPU"] == 2.0
    [demand] = [one for one in answer["pending_demands"] if one["placement_group_id"]]
    assert (demand["placement_group_id"], demand["bundle_index"]) == (seen.hex, 0)
    assert not demand["infeasible"]
    load = seen.api.ok("/api/cluster_status")["clusterStatus"]["loadMetricsReport"]
    assert load["usage"]["CPU"] == [2.0, 4.0] and load["reserved"]["CPU"] == [2.0, 2.0]
    assert [{"bundles": [[{"CPU": 1.0}, 3]], "strategy": "SPREAD"}, 2] in load["pgDemand"]


def test_tasks_and_actors_know_their_group(seen):
    """Tasks that run and wait are known to processes; a task that has ended is read from the head's
    history."""

    def ours():
        rows = state.list_tasks(filters=[("placement_group_id", "=", seen.hex)], detail=True)
        return [row for row in rows if row.name in ("hold", "short")]

    rows = until(ours, lambda rows: len(rows) == 3)
    assert sorted((row.name, row.state, row.placement_group_id) for row in rows) == [
        ("hold", "RUNNING", seen.hex),
        ("short", "FINISHED", seen.hex),
        ("short", "PENDING_NODE_ASSIGNMENT", seen.hex),
    ]
    assert {json.dumps(row.required_resources) for row in rows} == {'{"CPU": 1.0}'}
    [actor] = state.list_actors(filters=[("placement_group_id", "=", seen.hex)], detail=True)
    assert (actor.class_name, actor.state) == ("Sitter", "ALIVE")
    others = state.list_tasks(filters=[("placement_group_id", "!=", seen.hex)], detail=True)
    assert not [row for row in others if row.name in ("hold", "short")]


def test_debug_says_what_waits_in_which_bundle_and_who_holds_it(seen):
    answer = until(
        lambda: json.loads(seen.shell.ok("debug", "--format=json")),
        lambda answer: len(answer["waiting"]) >= 4,
    )
    [task] = [one for one in answer["waiting"] if "short" in one["what"]]
    assert task["what"].endswith(
        f"short {{'CPU': 1.0}} in bundle 0 of placement group 'named' ({seen.hex})"
    )
    assert any("1 running hold" in holder for holder in task["held_by"])
    groups = [one for one in answer["waiting"] if one["what"].startswith("placement group")]
    assert len(groups) == 3
    [huge] = [one for one in groups if "huge" in one["what"]]
    assert "64" in huge["why"] and "it waits until one joins" in huge["why"]
    crowded = next(one for one in groups if "(SPREAD)" in one["what"])
    assert any(seen.hex in holder for holder in crowded["held_by"])
    [row] = answer["placement_groups"]
    assert (row["name"], row["bundles"], row["resources"]) == ("named", [0, 1], {"CPU": 2.0})
    assert "Placement groups hold:\nNODE" in seen.shell.ok("debug")


def test_metrics_count_groups_by_state(seen):
    status, _, body = seen.api.request("GET", "/metrics")
    assert status == 200
    counts = {}
    for line in body.decode().splitlines():
        if line.startswith(("ray_placement_groups{", "ray_gcs_placement_group_count{")):
            state_of = line.split('State="')[1].split('"')[0]
            counts[line.split("{")[0], state_of] = float(line.rsplit(" ", 1)[1])
    assert counts == {
        ("ray_placement_groups", "PENDING"): 3,
        ("ray_placement_groups", "PREPARED"): 0,
        ("ray_placement_groups", "CREATED"): 1,
        ("ray_placement_groups", "REMOVED"): 0,
        ("ray_placement_groups", "RESCHEDULING"): 0,
        ("ray_gcs_placement_group_count", "Registered"): 4,
        ("ray_gcs_placement_group_count", "Pending"): 2,
        ("ray_gcs_placement_group_count", "Infeasible"): 1,
    }


@pytest.mark.skipif(not CHROMIUM, reason="Chromium is not installed")
def test_the_page_shows_groups_and_never_takes_a_name_for_markup(seen, tmp_path_factory):
    with browser(tmp_path_factory.mktemp("browser")) as chromium:
        tab = chromium.page()
        tab.size(1280, 800)
        tab.open(f"http://{seen.api.address}")
        tab.until("document.querySelector('#login').open")

        def signed_in():
            tab.click("#token")
            tab.run("document.querySelector('#token').value = ''")
            tab.type(seen.api.token)
            return tab.run("document.querySelector('#token').value") == seen.api.token

        assert eventually(signed_in)
        tab.press_enter()
        tab.has("1, 3 wait")
        refused, tab.problems = tab.problems, []
        assert all("401" in text for text in refused), refused
        tab.has("2 used of 2 reserved in placement groups")
        tab.open(f"http://{seen.api.address}/#groups")
        tab.has("<i>huge</i>")
        assert not tab.run("document.querySelector('#view i')")
        for text in ("CREATED", "PENDING", "STRICT_PACK", "{CPU: 64} × 2", "2 without a node"):
            tab.has(text)
        assert tab.problems == []


def test_a_lost_node_leaves_its_bundles_without_one(seen):
    other = seen.join(cpus=0, resources={"other": 1})
    lost = placement_group([{"other": 1}, {"CPU": 0.5}], strategy="SPREAD", name="lost")
    ray.get(lost.ready(), timeout=120)
    waits = short.options(num_cpus=0, resources={"other": 1}, scheduling_strategy=InGroup(lost, 0))
    ray.get(waits.remote())
    seen.kill(other, "ray-node-manager")
    row = until(lambda: row_of(lost), lambda row: row.state == "RESCHEDULING")
    assert row.bundles[0]["node_id"] == "" and row.bundles[1]["node_id"]
    reference = waits.remote()
    wanted = " {'other': 1.0} * 1 (SPREAD): 1+ pending placement groups"
    text = until(lambda: seen.shell.ok("status"), lambda text: wanted in text)
    assert ", which lost bundles with their nodes: " in text
    answer = until(
        lambda: json.loads(seen.shell.ok("debug", "--format=json"))["waiting"],
        lambda waiting: any("in bundle 0 of placement group 'lost'" in w["what"] for w in waiting),
    )
    [group] = [one for one in answer if one["what"].startswith("placement group 'lost'")]
    assert group["why"].startswith("lost bundle 0 with its node, and still has bundle 1 on ")
    [task] = [one for one in answer if "in bundle 0 of placement group 'lost'" in one["what"]]
    assert "lost bundle 0 with its node, and looks for others" in task["why"]
    remove_placement_group(lost)
    del reference


def test_a_removed_group_is_listed_with_what_it_took_along(seen):
    gone = placement_group([{"CPU": 1}], name="gone")
    ray.get(gone.ready(), timeout=120)
    running = hold.options(scheduling_strategy=InGroup(gone)).remote(
        str(seen.end) + "-begun", str(seen.end)
    )
    wait_for(str(seen.end) + "-begun")
    remove_placement_group(gone)
    row = until(lambda: row_of(gone), lambda row: row.state == "REMOVED")
    assert row.stats["scheduling_state"] == "REMOVED" and "removed" in row.why
    with pytest.raises(ray.exceptions.RayError):
        ray.get(running, timeout=120)
    [task] = until(
        lambda: state.list_tasks(
            filters=[("placement_group_id", "=", gone.id.hex()), ("name", "=", "hold")],
            detail=True,
        ),
        lambda rows: rows and rows[0].state == "FAILED",
    )
    assert "its placement group was removed" in task.error_message
    events = state.list_cluster_events(limit=10000, detail=True)
    messages = sorted(
        event.message.removeprefix(f"placement group 'gone' ({gone.id.hex()})")
        for event in events
        if event.custom_fields.get("placement_group_id") == gone.id.hex()
    )
    assert messages[0] == " was placed: 1 bundle, PACK"
    assert messages[1].startswith(": it was removed")
    ours = [event for event in seen.api.ok("/events")["events"].get(row.creator_job_id, [])]
    assert {"PLACEMENT_GROUP_CREATED", "PLACEMENT_GROUP_REMOVED"} <= {one["label"] for one in ours}


@ray.remote(num_cpus=0)
class Nothing:
    pass


def test_debug_names_an_actor_and_ready_of_a_group_once(seen):
    """An actor and a call of ready() want nothing but a bundle of the same group, which has no
    bundles."""
    waits = [
        seen.huge.ready(),
        Nothing.options(scheduling_strategy=InGroup(seen.huge)).remote(),
    ]

    def said():
        waiting = json.loads(seen.shell.ok("debug", "--format=json"))["waiting"]
        place = f" {{}} in any bundle of placement group '<i>huge</i>' ({seen.huge.id.hex()})"
        return sorted(
            (one["count"], one["what"].removesuffix(place))
            for one in waiting
            if one["what"].endswith(place)
        )

    assert eventually(lambda: said() == [(1, "Nothing"), (1, "PlacementGroup.ready")]), said()
    [ready] = state.list_tasks(
        filters=[("name", "=", "PlacementGroup.ready"), ("state", "!=", "FINISHED")], detail=True
    )
    assert ready.func_or_class_name == "placement_group_ready"
    del waits


def test_the_timeline_shows_the_lives_of_groups(seen):
    """This test comes last: by now groups were placed, lost a node, were removed and wait."""
    seen.shell.ok("timeline", "-o", "groups.json")
    by_cli = json.loads((seen.shell.scratch / "groups.json").read_text())
    by_http = json.loads(seen.api.request("GET", "/api/v0/tasks/timeline")[2])
    for events in (by_cli, by_http, ray.timeline()):
        ours = [event for event in events if event.get("cat") == "placement_group"]
        lives = {}
        for event in ours:
            lives.setdefault(event["args"]["name"], []).append(event["name"])
        assert lives["named"] == ["waiting", "created"]
        assert lives["<i>huge</i>"] == ["waiting"]
        assert lives["lost"] == ["waiting", "created", "lost bundles"]
        assert lives["gone"] == ["waiting", "created"]
        [lost] = [event for event in ours if event["name"] == "lost bundles"]
        assert lost["ph"] == "i" and "bundle 0" in lost["args"]["why"]
        ends = {event["args"]["name"]: event["ts"] + event.get("dur", 0) for event in ours}
        assert ends["gone"] < ends["named"]
        [huge] = [event for event in ours if event["args"]["name"] == "<i>huge</i>"]
        assert huge["args"]["bundles"] == 2 and huge["args"]["strategy"] == "STRICT_PACK"
        assert "64" in huge["args"]["why"] and huge["dur"] > 0
    [process] = [
        event
        for event in by_http
        if event["ph"] == "M" and event["args"]["name"] == "placement groups"
    ]
    assert {event["pid"] for event in by_http if event.get("cat") == "placement_group"} == {
        process["pid"]
    }
    assert {event["pid"] for event in by_cli if event.get("cat") == "placement_group"} == {
        "placement groups"
    }
