"""Errors of the state API."""

from __future__ import annotations


class RayStateApiException(Exception):
    """A query cannot be answered: a wrong filter or limit, or a source did not answer."""

    def __init__(self, err_msg: str, *args: object) -> None:
        super().__init__(err_msg, *args)


class ServerUnavailable(RayStateApiException):
    """The cluster's head cannot be reached."""


class ValidationError(ValueError):
    """An option has a wrong type or form."""
