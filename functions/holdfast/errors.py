"""The domain's errors by cause, each leaf with the HTTP status that Terraform reacts to best.

    Invalid: The request as it arrived breaks a rule, or meets a limit of the platform.
        400 InvalidName, InvalidLockInfo, InvalidState, InvalidBody, InvalidId, InvalidDocument,
            InvalidRequest, UnknownRoute
        405 MethodNotAllowed
        413 TooLarge
        428 LockRequired
    Denied: The caller may not do this.
        401 NotAuthenticated
        403 NotAllowed, NotSigned
    Absent: What the request works on was never there, or is gone.
        404 NoState, NoVersions, NoSuchVersion, NoWorkspace
        409 NoVersion, StateDeleted, UploadMissing
    Conflict: What is stored does not fit the request, or somebody else came first.
        409 SerialNotNewer, LineageChanged, BaseChanged, UnreadableState, UnreadableVersion, UnreadableRecord,
            EncryptedState, UploadAltered, WorkspaceExists, ResourcesTracked, JustDeleted, LockLost,
            LockNotMatched, NotFrozen, RacedWriter
        423 Locked (Frozen, NotDeclared)
    Unsettled: S3 failed or the lock was lost on the way: the outcome is unknown, or half of it is left.
        409 UnlockOutcomeUnknown, DeleteOutcomeUnknown, RestoreOutcomeUnknown, UndeleteOutcomeUnknown
        500 LockLeft, StorageRefused
        503 OutcomeUnknown

A status belongs to the leaf and never to its parent: clients retry a 503 by themselves, so an outcome that
nobody may retry unseen is a 409. Catch a parent only where every error of that cause is meant.

The messages say what happened and what to do. They never hold a state's content or a secret.
"""

from collections.abc import Mapping
from typing import Any, ClassVar


class HoldfastError(Exception):
    """A request that ends without success; a leaf is made with its `status` and `code`, a parent without.

    Attributes:
        status: the HTTP status of the response.
        code: a stable word for programs, the `error` of the response's body.
        message: for people.
        logged: what the log says of it beside these; never content or a secret. A `reason` makes it an error
            of the deployment and not of the request.
    """

    status: ClassVar[int]
    code: ClassVar[str]

    def __init_subclass__(cls, *, status: int | None = None, code: str | None = None) -> None:
        if status is not None:
            cls.status = status
        if code is not None:
            cls.code = code

    def __init__(self, message: str, logged: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.logged = logged or {}

    @property
    def text(self) -> str:
        """Return the message and its notes: an error that leaves something behind has a note that says so."""
        return " ".join((self.message, *getattr(self, "__notes__", ())))

    def headers(self) -> dict[str, str]:
        """Return the headers that the response needs beside its body."""
        return {}

    def body(self) -> Mapping[str, Any]:
        """Return the response's body, a JSON object."""
        return {"error": self.code, "message": self.text}


class Invalid(HoldfastError):
    """The request as it arrived breaks a rule, or meets a limit of the platform."""


class InvalidName(Invalid, status=400, code="invalid_state_name"):
    """The state's name breaks a rule."""


class InvalidLockInfo(Invalid, status=400, code="invalid_lock_info"):
    """The body of a lock or unlock request is not a lock info document."""


class InvalidState(Invalid, status=400, code="invalid_state"):
    """The body of a write is not a state document."""


class InvalidBody(Invalid, status=400, code="invalid_body"):
    """The body did not arrive as it was announced."""


class InvalidId(Invalid, status=400, code="invalid_id"):
    """An ID of a workspace, version, upload or output was not made by this API."""


class InvalidDocument(Invalid, status=400, code="invalid_document"):
    """The body or a parameter of a request of `cloud {}` is not what its call takes.

    Attributes:
        parameter: the name of that parameter; empty if it is none.
    """

    def __init__(self, message: str, *, parameter: str = "") -> None:
        super().__init__(message)
        self.parameter = parameter


class InvalidRequest(Invalid, status=400, code="invalid_request"):
    """A parameter or a member of a request of the management API breaks a rule."""


class UnknownRoute(Invalid, status=400, code="unknown_route"):
    """No such route. Terraform would take a 404 for "no state yet"."""


class MethodNotAllowed(Invalid, status=405, code="method_not_allowed"):
    """The route exists, the verb does not."""

    def __init__(self, method: str, allowed: tuple[str, ...]) -> None:
        super().__init__(f"{method} is not allowed here; use one of {', '.join(allowed)}.")
        self.allowed = allowed

    def headers(self) -> dict[str, str]:
        """Return `Allow`, as RFC 9110 section 15.5.6 asks for."""
        return {"Allow": ", ".join(self.allowed)}


class TooLarge(Invalid, status=413, code="too_large"):
    """The body is larger than the platform accepts, or than it could return."""


class LockRequired(Invalid, status=428, code="lock_required"):
    """A write without a lock where the team requires one."""


class Denied(HoldfastError):
    """The caller may not do this."""


class NotAuthenticated(Denied, status=401, code="not_authenticated"):
    """The request reached the handler without a verified caller."""


class NotAllowed(Denied, status=403, code="not_allowed"):
    """The caller's role or scope does not cover the request."""


class NotSigned(Denied, status=403, code="not_signed"):
    """The request came to a route for AWS credentials without a caller that AWS verified."""


class Absent(HoldfastError):
    """What the request works on was never there, or is gone."""


class NoState(Absent, status=404, code="no_state"):
    """There is no state of this name, or the workspace has none yet."""


class NoVersions(Absent, status=404, code="no_versions"):
    """There is no version in the bucket that could be restored."""


class NoSuchVersion(Absent, status=404, code="no_such_version"):
    """The state has no version of this ID: it is another state's, a delete marker or gone."""


class NoWorkspace(Absent, status=404, code="no_workspace"):
    """There is no such workspace. The client creates it, so it is never the response to a lack of access."""


class NoVersion(Absent, status=409, code="no_version"):
    """The version that an ID names is gone, or has no such output. Clients do not show the text of a 404."""


class StateDeleted(Absent, status=409, code="state_deleted"):
    """The state is deleted, so there is no current version that could be restored to another."""


class UploadMissing(Absent, status=409, code="upload_missing"):
    """Nothing was uploaded that could be committed."""


class Conflict(HoldfastError):
    """What is stored does not fit the request, or somebody else came first."""


class SerialNotNewer(Conflict, status=409, code="serial_not_newer"):
    """The write would go back in serial, or replace a serial by other content."""


class LineageChanged(Conflict, status=409, code="lineage_changed"):
    """The write belongs to another lineage than the current state."""


class BaseChanged(Conflict, status=409, code="base_changed"):
    """The state is another one than the one on which an upload builds."""


class UnreadableState(Conflict, status=409, code="unreadable_state"):
    """The current object is not a state document: it is not read, and no write is compared with it."""


class UnreadableVersion(Conflict, status=409, code="unreadable_version"):
    """The version that would be restored is not a state document."""


class UnreadableRecord(Conflict, status=409, code="unreadable_record"):
    """The object of a workspace's record is none."""


class EncryptedState(Conflict, status=409, code="encrypted_state"):
    """The client encrypted the state: it cannot be read, and not be given another serial."""


class UploadAltered(Conflict, status=409, code="upload_altered"):
    """What was uploaded is not what was announced."""


class WorkspaceExists(Conflict, status=409, code="workspace_exists"):
    """There is a workspace of this name already."""


class ResourcesTracked(Conflict, status=409, code="resources_tracked"):
    """The workspace's state still tracks resources."""


class JustDeleted(Conflict, status=409, code="just_deleted"):
    """The workspace was deleted moments ago and re-created: a retry must not delete that."""


class LockLost(Conflict, status=409, code="lock_lost"):
    """The lock that the request relies on is no longer held."""


class LockNotMatched(Conflict, status=409, code="lock_not_matched"):
    """A force-unlock that does not mean the lock that is held now."""


class NotFrozen(Conflict, status=409, code="not_frozen"):
    """The lock that is held is not a freeze."""


class RacedWriter(Conflict, status=409, code="raced_another_writer"):
    """Somebody else kept changing the object while the request was under way."""


class Locked(Conflict, status=423, code="locked"):
    """Somebody else holds the lock. The body is the holder's lock info, as Terraform expects it.

    Attributes:
        is_released: whether waiting helps, because somebody will release the lock.
    """

    is_released: ClassVar[bool] = True

    def __init__(self, holder: Mapping[str, Any], message: str | None = None) -> None:
        super().__init__(
            message or f"The state is locked by {holder['Who'] or 'somebody else'}, lock ID {holder['ID']}."
        )
        self.holder = holder

    def body(self) -> Mapping[str, Any]:
        """Return the holder's lock info at the top level, always with an `ID`."""
        return self.holder


class Frozen(Locked, status=423, code="frozen"):
    """The state is frozen. The body is the lock info of the freeze, as of any lock."""

    is_released = False


class NotDeclared(Locked, status=423, code="not_declared"):
    """The name has no state, and nobody declared it. The body is a lock info document that says so.

    It is the one form of a refusal whose text every client shows.
    """

    is_released = False


class Unsettled(HoldfastError):
    """S3 failed or the lock was lost on the way: the outcome is unknown, or half of it is left."""


class UnlockOutcomeUnknown(Unsettled, status=409, code="unlock_undecided"):
    """S3 did not decide a force-unlock that names no ID, or refused it; it must not be retried unseen."""


class DeleteOutcomeUnknown(Unsettled, status=409, code="delete_undecided"):
    """The lock of a delete was broken, or released by another try of it, while it was under way."""


class RestoreOutcomeUnknown(Unsettled, status=409, code="restore_undecided"):
    """The lock of a restore was broken, or released by another try of it, while it was under way."""


class UndeleteOutcomeUnknown(Unsettled, status=409, code="undelete_undecided"):
    """The lock of an undelete was broken, or released by another try of it, while it was under way."""


class LockLeft(Unsettled, status=500, code="lock_left"):
    """An undelete took effect, and its lock could not be released."""


class StorageRefused(Unsettled, status=500, code="storage_refused"):
    """S3 refuses what the function must be able to do: a fault of the deployment, not of the request."""


class OutcomeUnknown(Unsettled, status=503, code="undecided"):
    """S3 was unreachable, throttled, or did not decide in time. A retry is safe."""

    def headers(self) -> dict[str, str]:
        """Return `Retry-After` in seconds; Terraform honours it."""
        return {"Retry-After": "1"}
