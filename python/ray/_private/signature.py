"""Checks at the caller whether arguments fit a function.

The binding gets limits() for a cheap test, and calls check() for calls outside of them.
"""

from __future__ import annotations

import types
from collections import namedtuple

_VARARGS, _VARKEYWORDS, _GENERATOR, _COROUTINE, _ASYNC_GENERATOR = 0x04, 0x08, 0x20, 0x80, 0x200


def code_flags(function) -> int:
    code = getattr(function, "__code__", None)
    return code.co_flags if code is not None else 0


def is_generator(function) -> bool:
    return bool(code_flags(function) & (_GENERATOR | _ASYNC_GENERATOR))


def is_coroutine(function) -> bool:
    return bool(code_flags(function) & (_COROUTINE | _ASYNC_GENERATOR))


# A typing.NamedTuple would take ten times as long to make. The defaults are those of a signature
# that is not known.
_Parameters = namedtuple(
    "_Parameters",
    (
        "names",
        "positional_only",
        "defaults",
        "keyword_only",
        "required_keywords",
        "varargs",
        "varkeywords",
        "unknown",
    ),
    defaults=((), 0, 0, (), (), True, True, True),
)


class Signature(_Parameters):
    """The parameters of a function, as plain data that actor handles can carry.

    `names` holds the positional parameters after the bound ones. `unknown` means that any
    arguments are accepted.
    """

    __slots__ = ()

    @classmethod
    def of(cls, function, bound: int = 0) -> "Signature":
        """The signature of `function` without its first `bound` parameters, such as self.

        Like inspect.signature() it goes through wrappers up to one with a __signature__, and a
        bound method lacks its first parameter. Callables without Python code, and those with a
        __signature__, accept any arguments here.
        """
        while hasattr(function, "__wrapped__") and not hasattr(function, "__signature__"):
            function = function.__wrapped__
            if isinstance(function, types.MethodType):
                bound += 1
                function = function.__func__
        code = getattr(function, "__code__", None)
        if code is None or hasattr(function, "__signature__"):
            return cls()
        count = code.co_argcount
        names = code.co_varnames[bound:count] if count >= bound else ()
        keyword_only = code.co_varnames[count : count + code.co_kwonlyargcount]
        has_default = set(function.__kwdefaults__ or ())
        return cls(
            names=names,
            positional_only=max(0, code.co_posonlyargcount - bound),
            defaults=len(function.__defaults__ or ()),
            keyword_only=keyword_only,
            required_keywords=tuple(name for name in keyword_only if name not in has_default),
            varargs=bool(code.co_flags & _VARARGS),
            varkeywords=bool(code.co_flags & _VARKEYWORDS),
            unknown=False,
        )

    def limits(self) -> tuple[int, int]:
        """The (fewest, most) positional arguments, -1 for any, that need no check by check()."""
        if self.unknown:
            return 0, -1
        if self.required_keywords:
            return 1 << 30, 0
        return max(0, len(self.names) - self.defaults), -1 if self.varargs else len(self.names)

    def check(self, args: tuple, kwargs: dict):
        """Raises TypeError when the arguments do not fit."""
        if self.unknown:
            return
        if len(args) > len(self.names) and not self.varargs:
            raise TypeError("too many positional arguments")
        given = self.names[: len(args)]
        by_keyword = self.names[self.positional_only :]
        for name in kwargs:
            if name in given and name in by_keyword:
                raise TypeError(f"multiple values for argument {name!r}")
            if name not in by_keyword and name not in self.keyword_only and not self.varkeywords:
                raise TypeError(f"got an unexpected keyword argument {name!r}")
        for index in range(len(args), len(self.names) - self.defaults):
            name = self.names[index]
            if name not in kwargs or index < self.positional_only:
                raise TypeError(f"missing a required argument: {name!r}")
        for name in self.required_keywords:
            if name not in kwargs:
                raise TypeError(f"missing a required argument: {name!r}")
