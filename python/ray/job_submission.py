"""Jobs over HTTP: submit a program to a cluster, follow it, stop it."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import ray
from ray import _raylet
from ray._private.job_http import Server, WebSocketRefused, auth_token, dashboard_of, scheme
from ray._private.job_types import (
    DriverInfo,
    JobDetails,
    JobErrorType,
    JobInfo,
    JobStatus,
    JobType,
    details_of,
)
from ray._private.session import global_worker
from ray.exceptions import AuthenticationError

__all__ = [
    "DriverInfo",
    "JobDetails",
    "JobErrorType",
    "JobInfo",
    "JobStatus",
    "JobSubmissionClient",
    "JobType",
]

_VERSION = "/api/version"


def _dashboard_of(address: str, create: bool) -> str:
    """The URL http://HOST:PORT (with TLS https://) of the cluster at `address`.

    "auto" is the cluster of this process, else of this machine.
    """
    if address in ("", "auto"):
        if not global_worker.connected and create:
            ray.init(ignore_reinit_error=True)
        if global_worker.connected:
            found = str(global_worker.context["dashboard_address"])
            if not found:
                raise ConnectionError(
                    "the cluster of this process has no HTTP interface: it was started with "
                    "include_dashboard=False"
                )
            return scheme() + found
    try:
        found = dashboard_of(_raylet.resolve_address(address or "auto"))
    except ValueError as error:
        raise ConnectionError(
            f"the cluster at {address or 'auto'} has no HTTP interface (rayctl start "
            f"--include-dashboard=false?): {error}"
        ) from error
    except Exception as error:
        raise ConnectionError(
            f"Failed to connect to Ray at address: {address or 'auto'}: {error}"
        ) from error
    return scheme() + found


def _address_of(address: str | None, create: bool) -> str:
    address = (
        os.environ.get("RAY_API_SERVER_ADDRESS") or os.environ.get("RAY_ADDRESS") or address or ""
    )
    if address.startswith(("http://", "https://")):
        return address.rstrip("/")
    if "://" in address:
        raise ValueError(
            f"{address!r}: jobs are submitted to http://HOST:PORT, https://HOST:PORT, HOST:PORT "
            "of a head, or 'auto'"
        )
    return _dashboard_of(address, create)


def _check_texts(name: str, value: Any) -> None:
    if value is not None and not isinstance(value, dict):
        raise TypeError(f"{name} must be a dict of strings, got {type(value).__name__}")


class JobSubmissionClient:
    """A client of the HTTP interface of a cluster's head.

    `address` is http(s)://HOST:PORT, or the address of a cluster, whose HTTP interface is looked
    up. RAY_API_SERVER_ADDRESS and RAY_ADDRESS take precedence over it. `metadata` is added to that
    of every job; `headers` (and RAY_JOB_HEADERS, JSON) and `cookies` are sent with every request;
    `verify` is for https: True, False, or the path of certificates. Raises ConnectionError when
    nothing answers there.
    """

    def __init__(
        self,
        address: str | None = None,
        create_cluster_if_needed: bool = False,
        cookies: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
        headers: dict[str, Any] | None = None,
        verify: str | bool | None = True,
    ):
        if address is not None and not isinstance(address, str):
            raise TypeError(f"address must be a string, got {type(address).__name__}")
        for name, value in (("cookies", cookies), ("metadata", metadata), ("headers", headers)):
            _check_texts(name, value)
        if verify is not None and not isinstance(verify, (bool, str)):
            raise TypeError(f"verify must be a bool or a path, got {type(verify).__name__}")
        self._default_metadata = dict(metadata or {})
        self._address = _address_of(address, create_cluster_if_needed)
        self._server = Server(
            self._address, self._all_headers(headers, cookies), True if verify is None else verify
        )
        self.get_version()

    @staticmethod
    def _all_headers(
        headers: dict[str, Any] | None, cookies: dict[str, Any] | None
    ) -> dict[str, str]:
        given = headers
        if not given and os.environ.get("RAY_JOB_HEADERS"):
            given = json.loads(os.environ["RAY_JOB_HEADERS"])
            if not isinstance(given, dict):
                raise ValueError("RAY_JOB_HEADERS is not a JSON object of headers")
        made = {str(name): str(value) for name, value in (given or {}).items()}
        if cookies:
            made["Cookie"] = "; ".join(f"{name}={value}" for name, value in cookies.items())
        token = auth_token()
        if token and not any(name.lower() == "authorization" for name in made):
            made["Authorization"] = f"Bearer {token}"
        if any("\r" in text or "\n" in text for pair in made.items() for text in pair):
            raise ValueError("headers and cookies are single lines")
        return made

    def _ask(self, method: str, path: str, body: Any = None) -> bytes:
        try:
            status, answer = self._server.ask(
                method, path, None if body is None else json.dumps(body).encode()
            )
        except ConnectionError as error:
            raise ConnectionError(
                f"Failed to connect to Ray at address: {self._address}. ({error})"
            ) from error
        self._check(status, answer)
        return answer

    @staticmethod
    def _check(status: int, answer: bytes) -> None:
        if status < 400:
            return
        text = answer.decode("utf-8", "replace")
        if status in (401, 403):
            raise AuthenticationError(
                f"{text} (status code {status}). The token is RAY_AUTH_TOKEN, the file "
                "RAY_AUTH_TOKEN_PATH names, or ~/.ray/auth_token; "
                "`rayctl get-auth-token` on the head's machine prints it."
            )
        raise RuntimeError(f"Request failed with status code {status}: {text}.")

    def _json(self, method: str, path: str, body: Any = None) -> Any:
        return json.loads(self._ask(method, path, body))

    @staticmethod
    def _job(job_id: str, rest: str = "") -> str:
        return f"/api/jobs/{quote(job_id, safe='')}{rest}"

    def _packed(self, runtime_env: dict[str, Any]) -> dict[str, Any]:
        """Uploads local folders; returns the environment with their URIs instead."""
        if callable(runtime_env.get("worker_process_setup_hook")):
            raise ValueError(
                "worker_process_setup_hook: jobs take the name of a function (module.function), "
                "not the function itself"
            )
        from ray._private.runtime_env.submit import JobEnv

        env = JobEnv(runtime_env)
        try:
            for upload in env.uploads:
                self._upload(upload.name, b"".join(upload.chunks()))
        finally:
            env.discard()
        return dict(env.fields)

    def _upload(self, name: str, data: bytes) -> None:
        path = f"/api/packages/gcs/{quote(name, safe='')}"
        status, _ = self._server.ask("GET", path)
        if status == 200:
            return
        status, answer = self._server.ask("PUT", path, data, "application/octet-stream")
        self._check(status, answer)

    def submit_job(  # Ray's signature
        self,
        *,
        entrypoint: str,
        job_id: str | None = None,
        runtime_env: dict[str, Any] | None = None,
        metadata: dict[str, str] | None = None,
        submission_id: str | None = None,
        entrypoint_num_cpus: int | float | None = None,
        entrypoint_num_gpus: int | float | None = None,
        entrypoint_memory: int | None = None,
        entrypoint_resources: dict[str, float] | None = None,
        entrypoint_label_selector: dict[str, str] | None = None,
    ) -> str:
        """Runs `entrypoint` (a shell command) on the cluster; returns the job's submission id.

        job_id is the old name of submission_id. entrypoint_num_cpus, _num_gpus, _memory (bytes)
        and _resources are held while the entrypoint runs; entrypoint_label_selector chooses its
        node by labels. Without any of them it runs on the head's node.
        """
        _check_texts("runtime_env", runtime_env)
        _check_texts("metadata", metadata)
        request: dict[str, Any] = {
            "entrypoint": entrypoint,
            "submission_id": submission_id or job_id,
            "runtime_env": self._packed(runtime_env or {}),
            "metadata": {**(metadata or {}), **self._default_metadata},
            "entrypoint_num_cpus": entrypoint_num_cpus,
            "entrypoint_num_gpus": entrypoint_num_gpus,
            "entrypoint_memory": entrypoint_memory,
            "entrypoint_resources": entrypoint_resources,
            "entrypoint_label_selector": entrypoint_label_selector,
        }
        answer = self._json(
            "POST",
            "/api/jobs/",
            {name: value for name, value in request.items() if value is not None},
        )
        return str(answer["submission_id"])

    def stop_job(self, job_id: str) -> bool:
        """Ends a job: SIGTERM to its processes, SIGKILL 3 s later. False if it had ended."""
        return bool(self._json("POST", self._job(job_id, "/stop"))["stopped"])

    def delete_job(self, job_id: str) -> bool:
        """Removes the record of a job that has ended."""
        return bool(self._json("DELETE", self._job(job_id))["deleted"])

    def get_job_info(self, job_id: str) -> JobDetails:
        """Returns a job by its submission id, or by the id of a driver."""
        return details_of(self._json("GET", self._job(job_id)))

    def list_jobs(self) -> list[JobDetails]:
        """Returns submitted jobs, then the jobs of other drivers."""
        return [details_of(job) for job in self._json("GET", "/api/jobs/")]

    def get_job_status(self, job_id: str) -> JobStatus:
        return self.get_job_info(job_id).status

    def get_job_logs(self, job_id: str) -> str:
        """Returns all output so far, standard output and errors together."""
        return str(self._json("GET", self._job(job_id, "/logs"))["logs"])

    async def tail_job_logs(self, job_id: str) -> AsyncIterator[str]:
        """Yields the output from its beginning, as it arrives, until the job has ended."""
        try:
            async for text in self._server.texts(self._job(job_id, "/logs/tail")):
                yield text
        except WebSocketRefused as refusal:
            self._check(refusal.status, refusal.body)
        except ConnectionError as error:
            raise RuntimeError(
                f"Lost the connection while following job {job_id}: {error}. The job goes on; "
                "ask for its logs again."
            ) from error

    def get_version(self) -> str:
        """Returns the version of the REST interface: "4"."""
        return str(self._json("GET", _VERSION)["version"])

    def get_address(self) -> str:
        """Returns http(s)://HOST:PORT."""
        return self._address
