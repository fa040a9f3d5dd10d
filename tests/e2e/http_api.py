"""Asks the head's HTTP interface as a foreign program would: without any library of this
project."""

import http.client
import json
import urllib.parse


class Api:
    """A client with one address and one token. Every request opens a connection, unless it is given
    one."""

    def __init__(self, address, token):
        self.address, self.token = address, token

    @classmethod
    def of(cls, shell, start_output):
        """Returns the API of the head whose `rayctl start --head` printed this output."""
        address = next(word for word in start_output.split() if word.startswith("http://"))
        return cls(
            address.removeprefix("http://").rstrip("/"),
            (shell.scratch / ".ray" / "auth_token").read_text().strip(),
        )

    def connect(self, timeout=60):
        return http.client.HTTPConnection(self.address, timeout=timeout)

    def request(self, method, path, query=(), headers=None, body=None, token=True, connection=None):
        """Returns (status, headers, body as bytes). query: a dict, or a list of pairs."""
        connection = connection or self.connect()
        if query:
            path += "?" + urllib.parse.urlencode(query)
        named = {"Authorization": f"Bearer {self.token}"} if token else {}
        connection.request(method, path, body=body, headers={**named, **(headers or {})})
        response = connection.getresponse()
        return response.status, response.headers, response.read()

    def get(self, path, query=(), **how):
        """Returns the status of the answer and its body, parsed as JSON."""
        status, _, body = self.request("GET", path, query, **how)
        return status, json.loads(body)

    def ok(self, path, query=(), **how):
        """Returns `data` of an answer, which must be good."""
        status, answer = self.get(path, query, **how)
        assert status == 200 and answer["result"] is True, (status, answer)
        return answer["data"]

    def rows(self, resource, **query):
        """Returns `data.result` of a list. filters= takes [(key, predicate, value)]."""
        pairs = [(key, value) for key, value in query.items() if key != "filters"]
        for key, predicate, value in query.get("filters", []):
            pairs += [
                ("filter_keys", key),
                ("filter_predicates", predicate),
                ("filter_values", value),
            ]
        return self.ok(f"/api/v0/{resource}", pairs)["result"]
