"""Every exception of the public interface; ray._private.errors maps runtime errors to them."""

from __future__ import annotations

import builtins
import sys
import weakref

_CYAN, _RESET = "\x1b[36m", "\x1b[39m"
# Python has this class from version 3.11 on.
_GROUPS = getattr(builtins, "BaseExceptionGroup", ())


class RayError(Exception):
    """Root of all exceptions of the runtime."""

    def to_bytes(self) -> bytes:
        """Returns the exception as bytes, for from_bytes() here or in another process."""
        from ray import cloudpickle

        return cloudpickle.dumps(self)

    @staticmethod
    def from_bytes(data: bytes) -> "RayError":
        """Restores what to_bytes() returned. It unpickles, so the bytes must be trusted."""
        import pickle

        return pickle.loads(data)


class CrossLanguageError(RayError):
    """A task in another language failed."""

    def __init__(self, ray_exception):
        super().__init__(f"An exception raised from another language:\n{ray_exception}")
        self._given = ray_exception

    def __reduce__(self):
        return type(self), (self._given,), self.__dict__


class TaskCancelledError(RayError):
    """The task was cancelled by ray.cancel."""

    def __init__(self, task_id=None, error_message=None):
        self.task_id = task_id
        self.error_message = error_message

    def __str__(self):
        message = self.error_message or ""
        return f"Task: {self.task_id} was cancelled. {message}" if self.task_id else message


# The arguments of RayTaskError, which it keeps under their names.
_TASK_FIELDS = (
    "function_name",
    "traceback_str",
    "cause",
    "proctitle",
    "pid",
    "ip",
    "actor_repr",
    "actor_id",
)


class RayTaskError(RayError):
    """User code raised inside a task.

    `get` raises a subclass that is also an instance of the user's class.
    """

    def __init__(  # Ray's signature
        self,
        function_name,
        traceback_str,
        cause,
        proctitle=None,
        pid=None,
        ip=None,
        actor_repr=None,
        actor_id=None,
    ):
        self.proctitle = proctitle or f"ray::{function_name}"
        self.pid = pid
        self.ip = ip
        self.actor_repr = actor_repr
        self.actor_id = actor_id
        self.function_name = function_name
        self.traceback_str = traceback_str
        self.cause = cause
        # `__cause__` stays unset: the text of this error already contains the cause's.
        super().__init__(
            function_name, traceback_str, cause, proctitle, pid, ip, actor_repr, actor_id
        )

    def __str__(self):
        return self.traceback_str

    def __reduce__(self):
        fields = {name: getattr(self, name) for name in _TASK_FIELDS}
        return _rebuild_task_error, (fields, _is_dual(type(self)))

    def make_dual_exception_instance(self) -> "RayTaskError":
        """The instance that as_instanceof_cause() returns.

        Raises TypeError when the class of the cause cannot be combined.
        """
        cause_class = type(self.cause)
        return _dual_class(cause_class)(self)

    def as_instanceof_cause(self) -> "RayTaskError":
        """This error as an instance of its cause's class, too; itself if that cannot be."""
        cause = self.cause
        if cause is None or isinstance(cause, RayTaskError) or type(cause) is RayError:
            return self
        try:
            return self.make_dual_exception_instance()
        except Exception as why:
            import logging

            logging.getLogger("ray").warning(
                "The exception class %s cannot be combined with RayTaskError (%s): only `except "
                "RayTaskError` catches it",
                type(cause).__name__,
                why,
            )
            return self


# Weak, so that the classes of a long-running driver's programs can go. A key, which its value is
# derived from, stays as long as the value.
_dual_classes: weakref.WeakValueDictionary = weakref.WeakValueDictionary()


def _is_dual(cls) -> bool:
    return "_cause_class" in cls.__dict__


def _os_error_arguments(cause: OSError) -> tuple:
    if cause.errno is None:
        return cause.args
    return cause.errno, cause.strerror, cause.filename, None, cause.filename2


def _notes(error: RayTaskError, asking) -> list:
    """The notes of the cause, as the caller needs them.

    In general that is the list itself, as add_note() appends to it. Code that prints a traceback
    (the interpreter, which has no frame, or the module traceback) prints str(error), which ends
    with the notes of the task, and then the notes: it gets only those that were added in this
    process.
    """
    notes = error.cause.__notes__
    printing = asking is None or asking.f_globals.get("__name__") == "traceback"
    return (
        [note for note in notes if str(note) not in error.traceback_str]
        if printing and isinstance(notes, list)
        else notes
    )


def _dual_class(cause_class):
    known = _dual_classes.get(cause_class)
    if known:
        return known
    is_group = issubclass(cause_class, _GROUPS)

    def __new__(cls, error):
        cause = error.cause
        if is_group:
            return builtins.BaseExceptionGroup.__new__(cls, cause.message, cause.exceptions)
        if issubclass(builtin, OSError):
            return builtin.__new__(cls, *_os_error_arguments(cause))
        return builtin.__new__(cls, cause)

    def __init__(self, error):
        cause = error.cause
        if (
            builtin.__init__ is not BaseException.__init__
            and not is_group
            and not issubclass(builtin, OSError)
        ):
            try:
                builtin.__init__(self, *cause.args)
            # A subclass with a constructor of its own; the fields of `builtin` stay empty.
            except Exception:
                pass
        # The attributes of RayTaskError win over the cause's; all others are looked up on the
        # cause.
        for name in _TASK_FIELDS:
            object.__setattr__(self, name, getattr(error, name))
        # Set through BaseException, as the cause's class may have an `args` of its own.
        BaseException.args.__set__(self, (cause,))

    def __getattr__(self, name):
        if name == "__notes__":
            return _notes(self, sys._getframe().f_back)
        if name.startswith("__") or name == "cause":
            raise AttributeError(name)
        return getattr(self.cause, name)

    def __str__(self):
        return self.traceback_str

    body = {
        "__new__": __new__,
        "__init__": __init__,
        "__getattr__": __getattr__,
        "__str__": __str__,
        "_cause_class": cause_class,
        "__module__": "ray.exceptions",
        "__reduce__": RayTaskError.__reduce__,
    }
    name = f"RayTaskError({cause_class.__name__})"
    dual = type(name, (RayTaskError, cause_class), body)
    # The built-in class that lays out the instance, and so the only one whose __new__ can make it;
    # OSError and others keep their data in fields of that layout. MemoryError has a __new__ but no
    # layout of its own: its combination with RayTaskError takes that of Exception.
    builtin = dual
    while builtin.__module__ != "builtins":
        builtin = builtin.__base__
    dual.__qualname__ = name
    _dual_classes[cause_class] = dual
    return dual


def _rebuild_task_error(fields: dict, dual: bool):
    error = RayTaskError(**fields)
    return error.as_instanceof_cause() if dual else error


class LocalRayletDiedError(RayError):
    """The node-manager of the process that submitted the task died."""

    def __str__(self):
        return (
            super().__str__()
            or "The task's local raylet died. Check raylet.out for more information."
        )


class WorkerCrashedError(RayError):
    """The worker process of a task died and no retry is left."""

    def __str__(self):
        return super().__str__() or (
            "The worker died unexpectedly while executing this task. Check the worker-*.err "
            "files of its node for more information."
        )


class RayActorError(RayError):
    """A call to an actor could not be answered."""

    def __init__(
        self,
        actor_id=None,
        error_msg="The actor experienced an error before finishing this task.",
        actor_init_failed=False,
        preempted=False,
    ):
        self.actor_id = actor_id
        self.error_msg = error_msg
        self.actor_init_failed = actor_init_failed
        self.preempted = preempted
        super().__init__(actor_id, error_msg, actor_init_failed, preempted)

    def __str__(self):
        return self.error_msg


class ActorDiedError(RayActorError):
    """The actor is dead for good. `cause` is a text, or the RayTaskError of its constructor."""

    BASE_ERROR_MSG = "The actor died unexpectedly before finishing this task."

    def __init__(self, cause=None, actor_id=None):
        self.cause = cause
        if cause is None:
            message = self.BASE_ERROR_MSG
        elif isinstance(cause, RayTaskError):
            message = "The actor died because of an error raised in its creation task, " + str(
                cause
            )
            actor_id = actor_id or cause.actor_id
        else:
            message = str(cause)
        super().__init__(actor_id, message, isinstance(cause, RayTaskError))

    def __reduce__(self):
        return type(self), (self.cause, self.actor_id)


class ActorUnavailableError(RayActorError):
    """The actor cannot be reached now; the call may or may not have run."""

    def __init__(self, error_message, actor_id):
        shown = actor_id.hex() if isinstance(actor_id, bytes) else actor_id
        super().__init__(
            actor_id,
            f"The actor {shown} is unavailable: {error_message}. The task may or may not have "
            "been executed on the actor.",
        )
        self._given = error_message

    def __reduce__(self):
        return type(self), (self._given, self.actor_id), self.__dict__


class RaySystemError(RayError):
    """The runtime itself failed, or was used before init."""

    def __init__(self, client_exc, traceback_str=None):
        self.client_exc = client_exc
        self.traceback_str = traceback_str
        super().__init__(client_exc, traceback_str)

    def __str__(self):
        text = f"System error: {self.client_exc}"
        return f"{text}\ntraceback: {self.traceback_str}" if self.traceback_str else text


class AuthenticationError(RayError):
    """The token is missing or wrong."""

    def __init__(self, message):
        self.message = message
        super().__init__(message)


class UserCodeException(RayError):
    """Not raised; it exists because programs name it."""


class ObjectStoreFullError(RayError):
    """The object store is full and nothing in it may be evicted."""


class OutOfDiskError(RayError):
    """The disk is nearly full, so that objects cannot be stored on it."""


class OutOfMemoryError(RayError):
    """The worker was ended because its node ran out of memory."""

    def __init__(self, message=""):
        self.message = message
        super().__init__(message)


class NodeDiedError(RayError):
    """The node that ran the task died."""

    def __init__(self, message=""):
        self.message = message
        super().__init__(message)


class ObjectLostError(RayError):
    """No copy of the object is left, and it cannot be made again."""

    _reason = "All copies of {ref} have been lost due to node failure."

    def __init__(self, object_ref_hex, owner_address=None, call_site=""):
        self.object_ref_hex = object_ref_hex
        self.owner_address = owner_address
        self.call_site = (call_site or "").replace("|", "\n")
        self.detail = None
        super().__init__(object_ref_hex, owner_address, call_site)

    def __str__(self):
        text = f"Failed to retrieve object {self.object_ref_hex}. " if self.object_ref_hex else ""
        return text + (self.detail or self._reason.format(ref=self.object_ref_hex))


class ObjectFetchTimedOutError(ObjectLostError):
    """The object could not be fetched in time."""

    _reason = "Fetching it from another node timed out."


class RpcError(RayError):
    """An RPC failed."""

    def __init__(self, message, rpc_code=None):
        self.rpc_code = rpc_code
        super().__init__(message)


class ReferenceCountingAssertionError(ObjectLostError, AssertionError):
    """The object has been deleted although a reference to it was left."""

    _reason = (
        "The object has already been deleted by the reference counting protocol. This should not "
        "happen."
    )


class ObjectFreedError(ObjectLostError):
    """The object was freed explicitly."""

    _reason = "The object was manually freed using the internal `free` call."


class OwnerDiedError(ObjectLostError):
    """The process that created the reference died, and the object's value or locations with it."""

    _reason = (
        "The object's owner has exited. This is the Python worker that first created the "
        "ObjectRef via `.remote()` or `ray.put()`."
    )


class ObjectReconstructionFailedError(ObjectLostError):
    """The object was lost and its task cannot be run again."""

    def __init__(
        self, object_ref_hex, reason=None, reason_message="", owner_address=None, call_site=""
    ):
        super().__init__(object_ref_hex, owner_address, call_site)
        self.reason = reason
        self.reason_message = reason_message
        self.args = (object_ref_hex, reason, reason_message, owner_address, call_site)

    def __str__(self):
        return (
            f"Failed to retrieve object {self.object_ref_hex}. It cannot be reconstructed: "
            f"{self.reason or ''} {self.reason_message}"
        ).rstrip()


class GetTimeoutError(RayError, TimeoutError):
    """ray.get did not get all objects in time."""


class PlasmaObjectNotAvailable(RayError):
    """Not raised; it exists because programs name it."""


class AsyncioActorExit(RayError):
    """Not raised; it exists because programs name it."""


class RuntimeEnvSetupError(RayError):
    """A runtime environment could not be built."""

    def __init__(self, error_message=None):
        self.error_message = error_message
        super().__init__(error_message)

    def __str__(self):
        text = "Failed to set up runtime environment."
        return f"{text}\n{self.error_message}" if self.error_message else text


class TaskPlacementGroupRemoved(RayError):
    """The placement group of a waiting task was removed."""

    def __str__(self):
        return (
            super().__str__() or "The placement group corresponding to this task has been removed."
        )


class ActorPlacementGroupRemoved(RayError):
    """The placement group of a waiting actor was removed."""

    def __str__(self):
        return (
            super().__str__() or "The placement group corresponding to this Actor has been removed."
        )


class PendingCallsLimitExceeded(RayError):
    """More than max_pending_calls calls wait for the actor."""


class TaskUnschedulableError(RayError):
    """The task can never be scheduled."""

    def __init__(self, error_message):
        self.error_message = error_message
        super().__init__(error_message)

    def __str__(self):
        return f"The task is not schedulable: {self.error_message}"


class ActorUnschedulableError(RayError):
    """The actor can never be scheduled."""

    def __init__(self, error_message):
        self.error_message = error_message
        super().__init__(error_message)

    def __str__(self):
        return f"The actor is not schedulable: {self.error_message}"


class ObjectRefStreamEndOfStreamError(RayError):
    """Not raised; it exists because programs name it."""


class StreamingGeneratorReplayInconsistentError(RaySystemError):
    """A repeated generator task yielded other objects than the first time."""


class OufOfBandObjectRefSerializationException(RayError):
    """A reference was serialized outside of the runtime where that is forbidden."""


class RayChannelError(RaySystemError):
    """A channel of a compiled graph failed."""


class RayChannelTimeoutError(RayChannelError, TimeoutError):
    """A channel of a compiled graph timed out."""


class RayCgraphCapacityExceeded(RaySystemError):
    """Too many executions of a compiled graph are in flight."""


class RayDirectTransportError(RaySystemError):
    """A direct transport of tensors failed."""


class UnserializableException(RayError):
    """An exception of a task could not be unpickled here; its text is kept."""

    def __init__(self, original_stack_trace):
        self.original_stack_trace = original_stack_trace
        super().__init__(original_stack_trace)

    def __str__(self):
        return (
            "The exception of the task cannot be unpickled in this process. Original "
            f"traceback:\n{self.original_stack_trace}"
        )


class ActorAlreadyExistsError(ValueError, RayError):
    """An actor of that name exists in the namespace."""

    def __init__(self, error_message):
        self.error_message = error_message
        super().__init__(error_message)


class ActorHandleNotFoundError(ValueError, RayError):
    """The handle belongs to another session."""

    def __init__(self, error_message):
        self.error_message = error_message
        super().__init__(error_message)


RAY_EXCEPTION_TYPES = [
    PlasmaObjectNotAvailable,
    RayError,
    RayTaskError,
    WorkerCrashedError,
    RayActorError,
    ObjectStoreFullError,
    ObjectLostError,
    ObjectFetchTimedOutError,
    ReferenceCountingAssertionError,
    ObjectReconstructionFailedError,
    OwnerDiedError,
    ObjectFreedError,
    GetTimeoutError,
    AsyncioActorExit,
    RuntimeEnvSetupError,
    TaskPlacementGroupRemoved,
    ActorPlacementGroupRemoved,
    PendingCallsLimitExceeded,
    LocalRayletDiedError,
    TaskUnschedulableError,
    ActorDiedError,
    ActorUnschedulableError,
    ActorUnavailableError,
    RayChannelError,
    RayChannelTimeoutError,
    OufOfBandObjectRefSerializationException,
    RayCgraphCapacityExceeded,
    UnserializableException,
    ActorAlreadyExistsError,
    ActorHandleNotFoundError,
]
