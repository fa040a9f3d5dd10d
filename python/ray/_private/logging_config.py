"""ray.LoggingConfig: how the loggers of a driver and of its workers write."""

from __future__ import annotations

import dataclasses
import json
import logging
import traceback

from ray._private.ray_constants import LOGGER_FORMAT
from ray._private.session import WORKER_MODE, current_task_info, global_worker
from ray.runtime_context import function_name, task_name

logger = logging.getLogger("ray")
_ENCODINGS = ("TEXT", "JSON")
# This variable brings the configuration to workers, in the job's environment.
_ENV = "RAY_LOGGING_CONFIG"
# The formatters always write these attributes of a LogRecord, so that they cannot be asked for.
_ALWAYS = ("asctime", "levelname", "message", "filename", "lineno", "exc_text")
_RECORD = (
    *logging.LogRecord("", 0, "", 0, "", (), None).__dict__,
    "message",
    "asctime",
    "taskName",
)
_ATTRIBUTES = tuple(
    name for name in _RECORD if name not in (*_ALWAYS, "msg", "args", "exc_info", "stack_info")
)


@dataclasses.dataclass
class LoggingConfig:
    """How the loggers of a driver, its tasks and actors write records.

    A record is text or one JSON object per line, with the ids of the job, worker, node, actor and
    task. Workers' output is printed without prefixes.

    encoding: "TEXT" or "JSON". log_level: the level of the root loggers, by name.
    additional_log_standard_attrs: further attributes of logging.LogRecord to write. Raises
    ValueError for an unknown encoding or attribute.
    """

    encoding: str = "TEXT"
    log_level: str = "INFO"
    additional_log_standard_attrs: list = dataclasses.field(default_factory=list)

    def __post_init__(self):
        if self.encoding not in _ENCODINGS:
            raise ValueError(
                f"Invalid encoding type: {self.encoding}. Valid encoding types are: "
                f"{list(_ENCODINGS)}"
            )
        for name in self.additional_log_standard_attrs:
            if name not in _ATTRIBUTES:
                raise ValueError(
                    f"Unknown python logging standard attribute: {name}. The valid attributes "
                    f"are: {sorted(_ATTRIBUTES)}"
                )

    def to_dict(self) -> dict:
        return {
            "encoding": self.encoding,
            "log_level": self.log_level,
            "additional_log_standard_attrs": self.additional_log_standard_attrs,
        }

    @classmethod
    def from_dict(cls, fields: dict) -> "LoggingConfig":
        return cls(**fields)


def _context() -> dict:
    """The ids of whoever writes the record, in hex, as far as they are known."""
    if not global_worker.connected:
        return {}
    known = global_worker.context
    task = current_task_info() if global_worker.mode == WORKER_MODE else None
    out = {
        "job_id": (task or known)["job_id"].hex(),
        "worker_id": known["worker_id"].hex(),
        "node_id": known["node_id"].hex(),
    }
    if task:
        if "actor_id" in task:
            out["actor_id"] = task["actor_id"].hex()
        out.update(
            task_id=task["task_id"].hex(),
            task_name=task_name(task),
            task_func_name=function_name(task),
        )
        if task.get("actor_name"):
            out["actor_name"] = task["actor_name"]
    return out


class _ContextFormatter(logging.Formatter):
    def __init__(self, attributes: list):
        super().__init__(LOGGER_FORMAT)
        self._attributes = attributes

    def details(self, record: logging.LogRecord) -> dict:
        """Returns everything that follows the message: requested attributes, the caller's extras,
        ids, timestamp."""
        out = {name: getattr(record, name, None) for name in self._attributes}
        out.update((name, value) for name, value in record.__dict__.items() if name not in _RECORD)
        return {**out, **_context(), "timestamp_ns": int(record.created * 1e9)}


class TextFormatter(_ContextFormatter):
    def format(self, record: logging.LogRecord) -> str:
        # The details are taken before format() adds `asctime` and other attributes to the record.
        details = self.details(record)
        return (
            super().format(record)
            + " "
            + " ".join(f"{name}={value}" for name, value in details.items())
        )


class JSONFormatter(_ContextFormatter):
    def format(self, record: logging.LogRecord) -> str:
        details = self.details(record)
        out = {
            "asctime": self.formatTime(record),
            "levelname": record.levelname,
            "message": record.getMessage(),
            "filename": record.filename,
            "lineno": record.lineno,
            "process": record.process,
        }
        if record.exc_info and not record.exc_text:
            record.exc_text = "".join(traceback.format_exception(*record.exc_info)).rstrip("\n")
        if record.exc_text:
            out["exc_text"] = record.exc_text
        return json.dumps({**out, **details}, default=str)


def apply(config: LoggingConfig):
    """Replaces the handlers of the root logger and of `ray` in this process."""
    formatter = (JSONFormatter if config.encoding == "JSON" else TextFormatter)(
        config.additional_log_standard_attrs
    )
    for name in (None, "ray"):
        logger = logging.getLogger(name)
        handler = logging.StreamHandler()
        handler.setFormatter(formatter)
        logger.handlers[:] = [handler]
        logger.setLevel(config.log_level)
    logger.propagate = False


def to_environment(config: LoggingConfig) -> dict[str, str]:
    return {_ENV: json.dumps(config.to_dict())}


def apply_text(text: str):
    """Applies, in a worker, the configuration that the driver of its job sent."""
    apply(LoggingConfig.from_dict(json.loads(text)))
