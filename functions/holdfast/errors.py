"""The domain's errors, each with the HTTP status that Terraform reacts to best.

The messages say what happened and what to do. They never hold a state's content or a secret.
"""

from collections.abc import Mapping
from typing import Any, ClassVar


class HoldfastError(Exception):
    """A request that ends without success; each cause is a class of its own.

    Attributes:
        status: the HTTP status of the response.
        code: a stable word for programs, the `error` of the response's body.
        message: what happened and what to do, for people.
        logged: what the log says of it beside these; never content or a secret. A `reason` makes it an error
            of the deployment and not of the request.
    """

    status: ClassVar[int]
    code: ClassVar[str]

    def __init__(self, message: str, logged: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.logged = logged or {}

    def headers(self) -> dict[str, str]:
        """Return the headers that the response needs beside its body."""
        return {}

    def body(self) -> Mapping[str, Any]:
        """Return the response's body, a JSON object."""
        return {"error": self.code, "message": self.message}


class InvalidName(HoldfastError):
    """The state's name breaks a rule."""

    status = 400
    code = "invalid_state_name"


class InvalidLockInfo(HoldfastError):
    """The body of a lock or unlock request is not a lock info document."""

    status = 400
    code = "invalid_lock_info"


class InvalidState(HoldfastError):
    """The body of a write is not a state document."""

    status = 400
    code = "invalid_state"


class InvalidBody(HoldfastError):
    """The body did not arrive as it was announced."""

    status = 400
    code = "invalid_body"


class InvalidId(HoldfastError):
    """An ID of a workspace, version, upload or output was not made by this API."""

    status = 400
    code = "invalid_id"


class InvalidDocument(HoldfastError):
    """The body or a parameter of a request of `cloud {}` is not what its call takes.

    Attributes:
        parameter: the name of that parameter; empty if it is none.
    """

    status = 400
    code = "invalid_document"

    def __init__(self, message: str, *, parameter: str = "") -> None:
        super().__init__(message)
        self.parameter = parameter


class InvalidRequest(HoldfastError):
    """A parameter or a member of a request of the management API breaks a rule."""

    status = 400
    code = "invalid_request"


class UnknownRoute(HoldfastError):
    """No such route. Terraform would take a 404 for "no state yet"."""

    status = 400
    code = "unknown_route"


class NotAuthenticated(HoldfastError):
    """The request reached the handler without a verified caller."""

    status = 401
    code = "not_authenticated"


class NotAllowed(HoldfastError):
    """The caller's role or scope does not cover the request."""

    status = 403
    code = "not_allowed"


class NotSigned(HoldfastError):
    """The request came to a route for AWS credentials without a caller that AWS verified."""

    status = 403
    code = "not_signed"


class NoVersions(HoldfastError):
    """There is no version in the bucket that could be restored."""

    status = 404
    code = "no_versions"


class NoState(HoldfastError):
    """There is no state of this name, or the workspace has none yet."""

    status = 404
    code = "no_state"


class NoSuchVersion(HoldfastError):
    """The state has no version of this ID: it is another state's, a delete marker or gone."""

    status = 404
    code = "no_such_version"


class NoWorkspace(HoldfastError):
    """There is no such workspace. The client creates it, so it is never the response to a lack of access."""

    status = 404
    code = "no_workspace"


class MethodNotAllowed(HoldfastError):
    """The route exists, the verb does not."""

    status = 405
    code = "method_not_allowed"

    def __init__(self, method: str, allowed: tuple[str, ...]) -> None:
        super().__init__(f"{method} is not allowed here; use one of {', '.join(allowed)}.")
        self.allowed = allowed

    def headers(self) -> dict[str, str]:
        """Return `Allow`, as RFC 9110 section 15.5.6 asks for."""
        return {"Allow": ", ".join(self.allowed)}


class SerialNotNewer(HoldfastError):
    """The write would go back in serial, or replace a serial by other content."""

    status = 409
    code = "serial_not_newer"


class LineageChanged(HoldfastError):
    """The write belongs to another lineage than the current state."""

    status = 409
    code = "lineage_changed"


class UnreadableState(HoldfastError):
    """The current object is not a state document: it is not read, and no write is compared with it."""

    status = 409
    code = "unreadable_state"


class NoVersion(HoldfastError):
    """The version that an ID names is gone, or has no such output. Clients do not show the text of a 404."""

    status = 409
    code = "no_version"


class BaseChanged(HoldfastError):
    """The state is another one than the one on which an upload builds."""

    status = 409
    code = "base_changed"


class UploadMissing(HoldfastError):
    """Nothing was uploaded that could be committed."""

    status = 409
    code = "upload_missing"


class UploadAltered(HoldfastError):
    """What was uploaded is not what was announced."""

    status = 409
    code = "upload_altered"


class WorkspaceExists(HoldfastError):
    """There is a workspace of this name already."""

    status = 409
    code = "workspace_exists"


class UnreadableRecord(HoldfastError):
    """The object of a workspace's record is none."""

    status = 409
    code = "unreadable_record"


class ResourcesTracked(HoldfastError):
    """The workspace's state still tracks resources."""

    status = 409
    code = "resources_tracked"


class JustDeleted(HoldfastError):
    """The workspace was deleted moments ago and re-created: a retry must not delete that."""

    status = 409
    code = "just_deleted"


class LockLost(HoldfastError):
    """The lock that the request relies on is no longer held."""

    status = 409
    code = "lock_lost"


class RacedWriter(HoldfastError):
    """Somebody else kept changing the object while the request was under way."""

    status = 409
    code = "raced_another_writer"


class LockNotMatched(HoldfastError):
    """A force-unlock that does not mean the lock that is held now."""

    status = 409
    code = "lock_not_matched"


class UnlockOutcomeUnknown(HoldfastError):
    """S3 did not decide a force-unlock that names no ID, or refused it; it must not be retried unseen."""

    status = 409
    code = "unlock_undecided"


class DeleteOutcomeUnknown(HoldfastError):
    """The lock of a delete was broken, or released by another try of it, while it was under way."""

    status = 409
    code = "delete_undecided"


class UnreadableVersion(HoldfastError):
    """The version that would be restored is not a state document."""

    status = 409
    code = "unreadable_version"


class StateDeleted(HoldfastError):
    """The state is deleted, so there is no current version that could be restored to another."""

    status = 409
    code = "state_deleted"


class EncryptedState(HoldfastError):
    """The client encrypted the state: it cannot be read, and not be given another serial."""

    status = 409
    code = "encrypted_state"


class RestoreOutcomeUnknown(HoldfastError):
    """The lock of a restore was broken, or released by another try of it, while it was under way."""

    status = 409
    code = "restore_undecided"


class NotFrozen(HoldfastError):
    """The lock that is held is not a freeze."""

    status = 409
    code = "not_frozen"


class UndeleteOutcomeUnknown(HoldfastError):
    """The lock of an undelete was broken, or released by another try of it, while it was under way."""

    status = 409
    code = "undelete_undecided"


class LockLeft(HoldfastError):
    """An undelete took effect, and its lock could not be released."""

    status = 500
    code = "lock_left"


class TooLarge(HoldfastError):
    """The body is larger than the platform accepts, or than it could return."""

    status = 413
    code = "too_large"


class Locked(HoldfastError):
    """Somebody else holds the lock. The body is the holder's lock info, as Terraform expects it.

    Attributes:
        is_released: whether waiting helps, because somebody will release the lock.
        holder: the lock info.
    """

    status = 423
    code = "locked"
    is_released: ClassVar[bool] = True

    def __init__(self, holder: Mapping[str, Any], message: str | None = None) -> None:
        super().__init__(
            message or f"The state is locked by {holder['Who'] or 'somebody else'}, lock ID {holder['ID']}."
        )
        self.holder = holder

    def body(self) -> Mapping[str, Any]:
        """Return the holder's lock info at the top level, always with an `ID`."""
        return self.holder


class Frozen(Locked):
    """The state is frozen. The body is the lock info of the freeze, as of any lock."""

    code = "frozen"
    is_released = False


class NotDeclared(Locked):
    """The name has no state, and nobody declared it. The body is a lock info document that says so.

    It is the one form of a refusal whose text every client shows.
    """

    code = "not_declared"
    is_released = False


class LockRequired(HoldfastError):
    """A write without a lock where the team requires one."""

    status = 428
    code = "lock_required"


class StorageRefused(HoldfastError):
    """S3 refuses what the function must be able to do: a fault of the deployment, not of the request."""

    status = 500
    code = "storage_refused"


class OutcomeUnknown(HoldfastError):
    """S3 was unreachable, throttled, or did not decide in time. A retry is safe."""

    status = 503
    code = "undecided"

    def headers(self) -> dict[str, str]:
        """Return `Retry-After` in seconds; Terraform honours it."""
        return {"Retry-After": "1"}
