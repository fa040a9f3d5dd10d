"""Identifiers other than ObjectRef: byte strings of fixed size, with a type for each kind.

common/base/ids.h defines their layouts.
"""

from __future__ import annotations

import os

from ray._raylet import ObjectRef


class BaseID:
    __slots__ = ("_bytes",)
    SIZE = 28

    def __init__(self, id: bytes):
        if not isinstance(id, bytes):
            raise TypeError(f"{type(self).__name__}: expected bytes, got {type(id).__name__}")
        if len(id) != self.SIZE:
            raise ValueError(f"{type(self).__name__}: an id has {self.SIZE} bytes, got {len(id)}")
        self._bytes = id

    @classmethod
    def from_binary(cls, id: bytes):
        return cls(id)

    @classmethod
    def from_hex(cls, hex_id: str):
        return cls(bytes.fromhex(hex_id))

    @classmethod
    def nil(cls):
        return cls(b"\xff" * cls.SIZE)

    @classmethod
    def size(cls) -> int:
        return cls.SIZE

    def binary(self) -> bytes:
        return self._bytes

    def hex(self) -> str:
        return self._bytes.hex()

    def is_nil(self) -> bool:
        return self._bytes == b"\xff" * self.SIZE

    def __hash__(self):
        return hash(self._bytes)

    def __eq__(self, other):
        return type(self) is type(other) and self._bytes == other._bytes

    def __repr__(self):
        return f"{type(self).__name__}({self.hex()})"

    __str__ = __repr__

    def __reduce__(self):
        return type(self), (self._bytes,)


class UniqueID(BaseID):
    __slots__ = ()

    @classmethod
    def from_random(cls):
        return cls(os.urandom(cls.SIZE))


class NodeID(UniqueID):
    __slots__ = ()


class WorkerID(UniqueID):
    __slots__ = ()


class FunctionID(UniqueID):
    __slots__ = ()


class ActorClassID(UniqueID):
    __slots__ = ()


class ClusterID(UniqueID):
    __slots__ = ()


class JobID(BaseID):
    __slots__ = ()
    SIZE = 4

    @classmethod
    def from_int(cls, value: int):
        return cls(value.to_bytes(4, "little"))

    def int(self) -> int:
        return int.from_bytes(self._bytes, "little")


class ActorID(BaseID):
    __slots__ = ()
    SIZE = 16

    @classmethod
    def of(cls, job_id: JobID, parent_task_id: "TaskID", parent_task_counter: int):
        from hashlib import sha256

        unique = sha256(
            parent_task_id.binary() + parent_task_counter.to_bytes(8, "little")
        ).digest()[:12]
        return cls(unique + job_id.binary())

    @classmethod
    def from_random(cls):
        return cls(os.urandom(cls.SIZE))

    @property
    def job_id(self) -> JobID:
        return JobID(self._bytes[12:])


class TaskID(BaseID):
    __slots__ = ()
    SIZE = 24

    @classmethod
    def for_driver_task(cls, job_id: JobID):
        return cls(b"\xff" * 20 + job_id.binary())

    @classmethod
    def for_actor_creation_task(cls, actor_id: ActorID):
        return cls(b"\xff" * 8 + actor_id.binary())

    @classmethod
    def for_fake_task(cls, job_id: JobID):
        return cls(os.urandom(8) + b"\xff" * 12 + job_id.binary())

    def actor_id(self) -> ActorID:
        return ActorID(self._bytes[8:])

    def job_id(self) -> JobID:
        return JobID(self._bytes[20:])


class PlacementGroupID(BaseID):
    __slots__ = ()
    SIZE = 18

    @classmethod
    def from_random(cls):
        return cls(os.urandom(cls.SIZE))

    @classmethod
    def of(cls, job_id: JobID):
        return cls(os.urandom(14) + job_id.binary())


ObjectID = ObjectRef
