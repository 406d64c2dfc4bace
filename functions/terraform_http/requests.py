"""Parse requests of the protocol of `backend "http"`: the ID of a lock, and requests that were others."""

from collections.abc import Collection

from gateway import bent, requests


class Request(requests.Request):
    """A request of the protocol. Clients keep the query of a configured address, so it may be any query."""

    __slots__ = ()

    @property
    def lock_id(self) -> str | None:
        """The ID of the lock that the client claims to hold, or that a release names."""
        return self.query.get("ID")

    def check_query(self, known: Collection[str]) -> None:
        """Raise an error for an `ID` that is malformed, or not in `known`."""
        bent.check_lock_id(self.query, self.event.get("rawQueryString") or "", accepted="ID" in known)

    def check_read(self) -> None:
        """Raise `BentRequest` for a read that was another request."""
        bent.check_read(self.event["headers"])

    def check_delete(self) -> None:
        """Raise `BentRequest` for a delete that was another request."""
        bent.check_delete(self.event["headers"], self.event.get("body") or "")
