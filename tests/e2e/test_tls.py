"""A cluster that speaks TLS: between its nodes, to drivers and commands, and over HTTP; and what
clients without TLS get. The openssl command makes the certificates."""

import http.client
import json
import pathlib
import shutil
import socket
import ssl
import subprocess
import sys
import textwrap

import pytest
from cluster import Cluster, running_dashboard, world
from waiting import eventually
from ports import free_port
from http_api import Api
from test_prometheus import endpoints

pytestmark = pytest.mark.skipif(
    shutil.which("openssl") is None,
    reason="the openssl command is not here, and makes the certificates",
)

WORK = """
    import numpy, ray
    ray.init(log_to_driver=False)

    @ray.remote(resources={"there": 1})
    def double(array): return 2 * array

    @ray.remote(num_cpus=0)
    class Counter:
        def __init__(self): self.n = 0
        def add(self): self.n += 1; return self.n

    array = numpy.arange(5_000_000)
    assert (ray.get(double.remote(array)) == 2 * array).all()
    refs = [double.remote(i) for i in range(1000)]
    assert ray.get(refs) == [2 * i for i in range(1000)]
    counter = Counter.options(resources={"there": 0.1}).remote()
    assert ray.get([counter.add.remote() for _ in range(100)])[-1] == 100
    print("done")
"""


def openssl(folder, *words):
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)


def authority(folder):
    """Makes an authority and its certificate for this machine; returns the variables that name
    them."""
    folder.mkdir()
    openssl(
        folder,
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-keyout",
        "ca.key",
        "-out",
        "ca.crt",
        "-subj",
        "/CN=test authority",
        "-days",
        "2",
    )
    openssl(
        folder,
        "req",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-keyout",
        "node.key",
        "-out",
        "node.csr",
        "-subj",
        "/CN=node",
    )
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
    openssl(
        folder,
        "x509",
        "-req",
        "-in",
        "node.csr",
        "-CA",
        "ca.crt",
        "-CAkey",
        "ca.key",
        "-CAcreateserial",
        "-out",
        "node.crt",
        "-days",
        "2",
        "-extfile",
        "names",
    )
    return {
        "RAY_USE_TLS": "1",
        "RAY_TLS_SERVER_CERT": str(folder / "node.crt"),
        "RAY_TLS_SERVER_KEY": str(folder / "node.key"),
        "RAY_TLS_CA_CERT": str(folder / "ca.crt"),
    }


@pytest.fixture(scope="module")
def variables(tmp_path_factory):
    return authority(tmp_path_factory.mktemp("tls") / "own")


@pytest.fixture(scope="module")
def running(variables):
    with world() as shell:
        shell.env.update(variables)
        cluster = Cluster(shell, cpus=1)
        cluster.join(cpus=1, resources={"there": 1})
        yield cluster


def run(running, program, **env):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={**running.shell.env, "RAY_ADDRESS": running.address, **env},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_a_program_across_nodes(running):
    done = run(running, WORK)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_what_goes_over_the_wire_is_no_plain_text(running):
    """To a peer that begins in plain text the answer is plain text, too: it says what to do, and
    nothing else."""
    with socket.create_connection(("127.0.0.1", running.port), timeout=120) as plain:
        plain.sendall(b"RAY1 self".ljust(79) + b"\n" + b"\0" * 24)
        assert b"this cluster speaks TLS" in plain.recv(4096) and plain.recv(4096) == b""


@pytest.mark.parametrize("words", (["status"], ["nodes"], ["list", "nodes"], ["job", "list"]))
def test_commands_need_tls(running, words):
    running.shell.ok(*words, f"--address={running.address}")
    said = running.shell.fails(*words, f"--address={running.address}", RAY_USE_TLS="0")
    assert "this cluster speaks TLS: set RAY_USE_TLS=1" in said


def test_a_driver_without_tls_is_told_so(running):
    done = run(running, "import ray; ray.init()", RAY_USE_TLS="0")
    assert done.returncode == 1 and "this cluster speaks TLS: set RAY_USE_TLS=1" in done.stderr, (
        done.stderr
    )


def test_the_certificate_of_another_authority(running, tmp_path):
    other = authority(tmp_path / "other")
    said = running.shell.fails("status", f"--address={running.address}", **other)
    assert "certificate is not accepted" in said
    # A client that accepts our certificate and shows one of another authority is refused.
    said = running.shell.fails(
        "status",
        f"--address={running.address}",
        **{**other, "RAY_TLS_CA_CERT": running.shell.env["RAY_TLS_CA_CERT"]},
    )
    assert "does not accept the certificate of this process (RAY_TLS_SERVER_CERT)" in said
    missing = running.shell.fails(
        "status",
        f"--address={running.address}",
        **{**other, "RAY_TLS_SERVER_KEY": str(tmp_path / "nowhere")},
    )
    assert "nowhere: No such file or directory" in missing


def with_openssl(cluster):
    """Returns the programs of the cluster that have loaded OpenSSL. The head's HTTP interface is
    linked with OpenSSL."""
    pids = {
        process["name"]: process["pid"]
        for process in cluster.records()[cluster.head_node]["processes"]
    }
    return {
        name
        for name, pid in pids.items()
        if "libssl" in pathlib.Path(f"/proc/{pid}/maps").read_text()
    } - {"ray-head"}


def test_openssl_is_only_where_tls_is(running):
    assert with_openssl(running) == {"ray-node-manager", "ray-object-store"}
    with world() as shell:
        assert with_openssl(Cluster(shell, cpus=1)) == set()


def test_a_head_without_tls(variables):
    with world() as shell:
        plain = Cluster(shell, cpus=1)
        said = shell.fails("status", f"--address={plain.address}", **variables)
        assert "it does not speak TLS" in said


@pytest.mark.parametrize(
    "broken, said",
    (
        ({"RAY_TLS_SERVER_KEY": ""}, "RAY_USE_TLS is set but RAY_TLS_SERVER_KEY is not"),
        ({"RAY_TLS_SERVER_CERT": "/nowhere.crt"}, "/nowhere.crt"),
        ({"RAY_TLS_CA_CERT": "/dev/null"}, "/dev/null"),
        ({"RAY_USE_TLS": "perhaps"}, "RAY_USE_TLS is 'perhaps'"),
    ),
)
def test_bad_variables(variables, broken, said):
    with world() as shell:
        assert said in shell.fails("start", "--head", "--port=0", **{**variables, **broken}, code=2)
        assert not shell.processes()


def test_a_key_with_a_pass_phrase(variables, tmp_path):
    key, locked = variables["RAY_TLS_SERVER_KEY"], tmp_path / "locked.key"
    openssl(tmp_path, "pkey", "-in", key, "-aes256", "-passout", "pass:secret", "-out", str(locked))
    with world() as shell:
        said = shell.fails(
            "start",
            "--head",
            "--port=0",
            code=2,
            **{**variables, "RAY_TLS_SERVER_KEY": str(locked)},
        )
        assert f"cannot use the key {locked}: it has a pass phrase, and must have none" in said
        assert said.count("\n") == 1 and not shell.processes()


def test_files_by_option(variables):
    given = [
        f"--{option}={variables[variable]}"
        for option, variable in (
            ("tls-cert", "RAY_TLS_SERVER_CERT"),
            ("tls-key", "RAY_TLS_SERVER_KEY"),
            ("tls-ca", "RAY_TLS_CA_CERT"),
        )
    ]
    with world() as shell:
        assert "--tls-cert needs --tls-key and --tls-ca (docs/tls.md)" in shell.fails(
            "start", "--head", "--port=0", *given[:1], code=2
        )
        cluster = Cluster(shell, cpus=1, **dict(word[2:].split("=") for word in given))
        assert "https://" in cluster.output
        shell.fails("status", f"--address={cluster.address}")
        shell.ok("status", f"--address={cluster.address}", **variables)


def ask(running, path, context=None, address=None, token=None):
    """Asks over HTTP. address: the head's dashboard unless given; token: the right one unless
    given."""
    context = context or ssl.create_default_context(cafile=running.shell.env["RAY_TLS_CA_CERT"])
    connection = http.client.HTTPSConnection(
        address or running_dashboard(running.shell, running.address), timeout=120, context=context
    )
    try:
        connection.request(
            "GET",
            path,
            headers={
                "Authorization": "Bearer " + (token or running.shell.ok("get-auth-token").strip())
            },
        )
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def refuses_plain_text(address, path):
    status, _, body = Api(address, token=None).request("GET", path, token=False)
    assert status == 400 and b"use https://" in body


def test_https(running):
    status, body = ask(running, "/api/v0/nodes")
    assert status == 200 and len(json.loads(body)["data"]["result"]["result"]) == 2
    with pytest.raises(ssl.SSLCertVerificationError):
        ask(running, "/api/v0/nodes", ssl.create_default_context())
    refuses_plain_text(running_dashboard(running.shell, running.address), "/api/version")


def scraped_addresses(running):
    """Returns HOST:PORT of the metrics of each node and of the head."""
    return {*endpoints(running).values(), running_dashboard(running.shell, running.address)}


def test_metrics_of_nodes_come_over_https_and_for_the_token_only(running):
    addresses = endpoints(running).values()
    assert len(addresses) == 2 and not any(address.endswith(":0") for address in addresses)
    for address in addresses:
        status, body = ask(running, "/metrics", address=address)
        assert status == 200 and b"ray_node_cpu_count" in body and b"ray_resources{" in body
        assert ask(running, "/metrics", address=address, token="wrong")[0] in (401, 403)
        with pytest.raises(ssl.SSLCertVerificationError):
            ask(running, "/metrics", ssl.create_default_context(), address=address)
        refuses_plain_text(address, "/metrics")


def test_prometheus_is_told_to_use_https(running):
    wanted = scraped_addresses(running)

    def told():
        [group] = json.loads(
            (running.shell.root / "prom_metrics_service_discovery.json").read_text()
        )
        return (
            group["labels"] == {"job": "ray", "__scheme__": "https"}
            and set(group["targets"]) == wanted
        )

    assert eventually(told)
    [group] = json.loads(ask(running, "/api/prometheus/sd")[1])
    assert group["labels"]["__scheme__"] == "https" and set(group["targets"]) == wanted


@pytest.mark.skipif(
    not shutil.which("prometheus"),
    reason="Prometheus is not installed (Debian: apt-get install --no-install-recommends prometheus)",
)
def test_prometheus_scrapes_over_https(running):
    port = free_port()
    running.shell.ok("metrics", "launch-prometheus", f"--port={port}")
    try:

        def targets():
            return Api(f"127.0.0.1:{port}", token=None).get("/api/v1/targets", token=False)[1][
                "data"
            ]["activeTargets"]

        scraped = eventually(
            lambda: (
                (found := targets())
                and len(found) == 3
                and all(target["health"] == "up" for target in found)
                and found
            ),
            60,
        )
        assert scraped, targets()
        assert {target["scrapeUrl"] for target in scraped} == {
            f"https://{address}/metrics" for address in scraped_addresses(running)
        }
    finally:
        assert "has ended" in running.shell.ok("metrics", "shutdown-prometheus")


def test_commands_and_jobs_over_https(running):
    address = "https://" + running_dashboard(running.shell, running.address)
    assert "ALIVE" in running.shell.ok("list", "nodes", f"--address={address}")
    said = running.shell.ok("job", "submit", f"--address={address}", "--", "echo", "from a job")
    assert "from a job" in said and "succeeded" in said
    for words in (["list", "nodes"], ["job", "list"]):
        said = running.shell.fails(*words, f"--address={address}", RAY_TLS_CA_CERT="")
        assert f"{address} shows a certificate that is not trusted here: RAY_TLS_CA_CERT" in said
    done = run(
        running,
        f"""
        from ray.util.state import list_nodes
        print({{node.state for node in list_nodes(address={address!r})}})
    """,
    )
    assert "{'ALIVE'}" in done.stdout, done.stderr
    # This follows the log over a WebSocket.
    done = run(
        running,
        """
        import asyncio
        from ray.job_submission import JobSubmissionClient
        client = JobSubmissionClient("auto")
        job = client.submit_job(entrypoint="echo one; echo two")
        async def main(): return "".join([lines async for lines in client.tail_job_logs(job)])
        print(asyncio.run(main()))
    """,
    )
    assert "one\ntwo\n" in done.stdout, done.stderr
