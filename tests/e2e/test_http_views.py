"""Views of the cluster over HTTP: nodes, actors, status, events, activities, the trace."""

import json

import pytest
from cluster import Cluster, world
from waiting import eventually
from http_api import Api

import ray


@pytest.fixture(scope="module")
def seen():
    with world() as shell:
        cluster = Cluster(shell, dashboard_port=0)
        cluster.api = Api.of(shell, cluster.output)
        ray.init(address=cluster.address, log_to_driver=False)

        @ray.remote(num_cpus=0.5)
        class Kept:
            def where(self):
                return ray.get_runtime_context().get_node_id()

        cluster.actor = Kept.options(name="kept").remote()
        cluster.node = ray.get(cluster.actor.where.remote())
        yield cluster


def test_nodes_has_rays_fields_and_refuses_unknown_views(seen):
    data = seen.api.ok("/nodes", {"view": "summary"})
    [node] = data["summary"]
    assert (
        node["raylet"]["nodeId"] == seen.node
        and node["raylet"]["state"] == "ALIVE"
        and node["raylet"]["isHeadNode"] is True
        and node["raylet"]["numWorkers"] >= 1
    )
    assert (
        node["mem"][0] > node["mem"][1] > 0
        and node["cpus"][0] >= 1
        and node["disk"]["/"]["total"] > 0
        and node["bootTime"] > 10**9
        and len(node["loadAvg"]) == 2
    )
    assert 0 <= node["cpu"] <= 100 and "ray-node-manager" in node["cmdline"]
    assert "0.5/2 CPU" in data["nodeLogicalResources"][seen.node]
    assert seen.api.ok("/nodes", {"view": "hostNameList"})["hostNameList"] == [node["hostname"]]
    for query in ({}, {"view": "colours"}):
        status, answer = seen.api.get("/nodes", query)
        assert status == 500 and answer["msg"].startswith("Unknown view")


def test_one_node(seen):
    detail = seen.api.ok(f"/nodes/{seen.node}")["detail"]
    pid = next(actor["pid"] for actor in detail["actors"].values())
    [worker] = [worker for worker in detail["workers"] if worker["pid"] == pid]
    assert (
        worker["memoryInfo"]["rss"] > 10**6
        and worker["createTime"] > 10**9
        and worker["coreWorkerStats"][0]["workerType"] == "WORKER"
    )
    assert seen.api.get(f"/nodes/{'ff' * 28}")[0] == 404


def test_logical_actors_has_rays_fields_and_finds_actors_by_id(seen):
    actor_id = seen.actor._actor_id.hex()
    actor = seen.api.ok("/logical/actors")["actors"][actor_id]
    assert (
        actor["actorId"],
        actor["state"],
        actor["name"],
        actor["className"],
        actor["address"]["nodeId"],
    ) == (actor_id, "ALIVE", "kept", "Kept", seen.node)
    assert actor["requiredResources"] == {"CPU": 0.5} and actor["startTime"] > 10**12
    assert seen.api.ok(f"/logical/actors/{actor_id}")["detail"]["pid"] == actor["pid"]
    assert list(seen.api.ok("/logical/actors", {"ids": f"{actor_id},{'ff' * 16}"})["actors"]) == [
        actor_id
    ]
    assert seen.api.ok("/logical/actors", {"ids": "ff" * 16})["actors"] == {}
    assert seen.api.get(f"/logical/actors/{'ff' * 16}")[0] == 404


def test_cluster_status_equals_rayctl_status(seen):
    status = seen.api.ok("/api/cluster_status", {"nocache": "1"})["clusterStatus"]
    assert (
        status["loadMetricsReport"]["usage"]["CPU"] == [0.5, 2.0]
        and len(status["autoscalerReport"]["activeNodes"]) == 1
    )
    answer = seen.api.ok("/api/cluster_status", {"format": "1"})
    text, printed = answer["clusterStatus"], seen.shell.ok("status")
    assert (
        text.startswith("======== Autoscaler status: ") and "Total Usage:\n 0.5/2.0 CPU\n" in text
    )
    # The first line has the time, which differs.
    assert text.splitlines()[1:] == printed.splitlines()[1:]
    assert (answer["autoscalingStatus"], answer["autoscalingError"]) == (None, None)


def test_events_and_activities(seen):
    job = ray.get_runtime_context().get_job_id()
    events = seen.api.ok("/events", {"nocache": "1"})["events"]
    assert {event["label"] for event in events["global"]} == {"NODE_ADDED"} and [
        event["label"] for event in events[job]
    ] == ["JOB_STARTED"]
    one = seen.api.ok("/events", {"job_id": job})
    assert one["jobId"] == job and one["events"] == events[job]
    assert seen.api.ok("/events", {"job_id": "99"})["events"] == []
    status, activities = seen.api.get("/api/component_activities")
    assert (status, activities["driver"]["is_active"], activities["driver"]["reason"]) == (
        200,
        "ACTIVE",
        "Number of active drivers: 1",
    )
    assert seen.api.ok("/api/v0/cluster_metadata") == {
        "rayVersion": "2.60.0",
        "pythonVersion": None,
        "rayInitCluster": False,
    }


def test_the_trace_is_filtered_as_asked(seen):
    actor_id = seen.actor._actor_id.hex()

    def trace(**query):
        status, headers, body = seen.api.request("GET", "/api/v0/tasks/timeline", query)
        assert status == 200
        return headers, json.loads(body)

    assert eventually(lambda: any(event["name"] == "where" for event in trace()[1]))
    headers, events = trace(download="1")
    assert headers["Content-Disposition"].startswith('attachment; filename="timeline-None-')
    [call] = [event for event in events if event.get("cat") == "task::Kept.where"]
    assert list(call) == ["cat", "name", "pid", "tid", "ts", "dur", "cname", "args", "ph"]
    assert (
        call["ph"] == "X"
        and call["args"]["actor_id"] == actor_id
        and call["args"]["attempt_number"] == 0
        and call["args"]["func_or_class_name"] == "Kept.where"
    )
    names = {
        (event["pid"], event["tid"]): event["args"]["name"]
        for event in events
        if event["ph"] == "M"
    }
    [submitted] = [
        event
        for event in events
        if event.get("cat") == "submit_task" and event["args"]["task_id"] == call["args"]["task_id"]
    ]
    assert (
        names[submitted["pid"], submitted["tid"]].startswith("driver:")
        and submitted["ts"] <= call["ts"]
    )
    assert names[call["pid"], None] == "Node 127.0.0.1" and names[
        call["pid"], call["tid"]
    ].startswith("worker:")
    assert events.index(call) < min(i for i, event in enumerate(events) if event["ph"] == "M")
    job = ray.get_runtime_context().get_job_id()
    assert not any(event["ph"] == "s" for event in events) and any(
        event["ph"] == "s" for event in trace(arrows="1")[1]
    )
    assert trace(job_id=job)[1] and trace(job_id="99000000")[1] == []
    assert seen.api.get("/api/v0/tasks/timeline", {"job_id": "x"})[0] == 400
    # `last=1` leaves out tasks that ended more than a second ago.
    assert any(event["name"] == "where" for event in trace(last="3600")[1])
    assert eventually(lambda: not any(event["name"] == "where" for event in trace(last="1")[1]))
    for wrong in ("0", "-1", "1s", "", "99999999999"):
        assert seen.api.get("/api/v0/tasks/timeline", {"last": wrong})[0] == 400, wrong


def test_answers_are_kept_for_a_moment(seen):
    stamps = [seen.api.ok("/nodes", {"view": "summary"})["summary"][0]["now"] for _ in range(2)]
    fresh = seen.api.ok("/nodes", {"view": "summary", "nocache": "1"})["summary"][0]["now"]
    assert fresh > stamps[0]
    assert eventually(
        lambda: seen.api.ok("/nodes", {"view": "summary"})["summary"][0]["now"] > stamps[1]
    )


@pytest.mark.parametrize(
    "path",
    [
        "/nodes?view=summary",
        "/nodes/ff",
        "/logical/actors",
        "/logical/actors/ff",
        "/api/cluster_status",
        "/events",
        "/api/component_activities",
        "/api/v0/cluster_metadata",
        "/api/v0/tasks/timeline",
    ],
)
def test_a_stranger_sees_nothing(seen, path):
    assert seen.api.request("GET", path, token=False)[0] == 401
    assert (
        seen.api.request("GET", path, token=False, headers={"Authorization": "Bearer x"})[0] == 403
    )
