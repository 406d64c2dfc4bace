"""The domain's errors by cause, each leaf with the HTTP status that Terraform reacts to best.

    Invalid: The request as it arrived breaks a rule, or meets a limit of the platform.
        400 InvalidName, InvalidLockInfo, InvalidState, InvalidBody, InvalidId, InvalidDocument,
            InvalidRequest, BentRequest, UnknownRoute
        405 MethodNotAllowed
        413 TooLarge
        428 LockRequired
    Denied: The caller may not do this.
        401 NotAuthenticated
        403 NotAllowed, NotSigned
    Absent: The request's target never existed, or is gone.
        404 NoState, NoVersions, NoSuchVersion, NoResource, NoWorkspace
        409 NoVersion, StateDeleted, UploadMissing
    Conflict: The request does not fit the stored data, or somebody else came first.
        409 SerialNotNewer, LineageChanged, BaseChanged, UnreadableState, UnreadableVersion, UnreadableRecord,
            EncryptedState, UploadAltered, WorkspaceExists, ResourcesTracked, JustDeleted, LockLost,
            LockNotMatched, NotFrozen, RacedWriter
        423 Locked (Frozen, NotDeclared)
    Unsettled: S3 failed or the lock was lost meanwhile: the outcome is unknown, or the work is half done.
        409 UnlockOutcomeUnknown, DeleteOutcomeUnknown, RestoreOutcomeUnknown, UndeleteOutcomeUnknown
        500 LockLeft, StorageRefused
        503 OutcomeUnknown

A status belongs to the leaf and never to its parent. Clients retry a 503 by themselves, so an unknown outcome
that must not be retried automatically is a 409. Catch a parent only to catch every error of that cause.

The messages say what happened and what to do. They never contain a state's content or a secret.
"""

from collections.abc import Mapping
from typing import Any, ClassVar


class HoldfastError(Exception):
    """A failed request. A leaf class declares `status` and `code`, a parent class does not.

    Attributes:
        status: the HTTP status of the response.
        code: a stable word for programs, the `error` of the response's body.
        message: for people.
        logged: further fields of the log line; never content or a secret. A field `reason` marks the error
            as a fault of the deployment and not of the request.
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
        """Return the message and the exception's notes. A note tells, for example, that a lock was left."""
        return " ".join((self.message, *getattr(self, "__notes__", ())))

    def headers(self) -> dict[str, str]:
        """Return headers to add to the response."""
        return {}

    def body(self) -> Mapping[str, Any]:
        """Return the response's body, a JSON object."""
        return {"error": self.code, "message": self.text}


class Invalid(HoldfastError):
    """The request as it arrived breaks a rule, or meets a limit of the platform."""


class InvalidName(Invalid, status=400, code="invalid_state_name"):
    """The state's name is invalid or reserved."""


class InvalidLockInfo(Invalid, status=400, code="invalid_lock_info"):
    """The lock info is invalid, or its ID differs from the `ID` in the query."""


class InvalidState(Invalid, status=400, code="invalid_state"):
    """The sent state is not a state document that Holdfast accepts."""


class InvalidBody(Invalid, status=400, code="invalid_body"):
    """The body did not arrive as it was sent, or is not valid for a request for a session."""


class InvalidId(Invalid, status=400, code="invalid_id"):
    """An ID in the `cloud {}` request is not an ID that this API created."""


class InvalidDocument(Invalid, status=400, code="invalid_document"):
    """The `cloud {}` request is invalid.

    Attributes:
        parameter: the name of the invalid query parameter; empty if another part of the request is invalid.
    """

    def __init__(self, message: str, *, parameter: str = "") -> None:
        super().__init__(message)
        self.parameter = parameter


class InvalidRequest(Invalid, status=400, code="invalid_request"):
    """The query, or the request to the management API, is invalid."""


class BentRequest(Invalid, status=400, code="bent_request"):
    """A redirect, a proxy or a wrong method turned another request into this one."""


class UnknownRoute(Invalid, status=400, code="unknown_route"):
    """The route does not exist. Terraform would take a 404 for "no state yet"."""


class MethodNotAllowed(Invalid, status=405, code="method_not_allowed"):
    """The route does not support this verb."""

    def __init__(self, method: str, allowed: tuple[str, ...]) -> None:
        super().__init__(f"This route does not accept {method}. It accepts {', '.join(allowed)}.")
        self.allowed = allowed

    def headers(self) -> dict[str, str]:
        """Return `Allow`, as RFC 9110 section 15.5.6 asks for."""
        return {"Allow": ", ".join(self.allowed)}


class TooLarge(Invalid, status=413, code="too_large"):
    """The request, the response or a state is too large."""


class LockRequired(Invalid, status=428, code="lock_required"):
    """The team requires a lock for writes."""


class Denied(HoldfastError):
    """The caller may not do this."""

    def __init__(self, message: str, *, denial: str = "") -> None:
        super().__init__(message)
        # The `DenialReason` of a refused sign-in, for the log; empty if the caller has signed in.
        self.denial = denial


class NotAuthenticated(Denied, status=401, code="not_authenticated"):
    """The request is not authenticated."""


class NotAllowed(Denied, status=403, code="not_allowed"):
    """The caller may not do this, for example because of the role, the scope or the network."""


class NotSigned(Denied, status=403, code="not_signed"):
    """AWS did not verify the request's signature."""


class Absent(HoldfastError):
    """The request's target never existed, or is gone."""


class NoState(Absent, status=404, code="no_state"):
    """The state does not exist, or was deleted."""


class NoVersions(Absent, status=404, code="no_versions"):
    """An undelete found no version to bring back, or `@deleted` found no delete marker."""


class NoSuchVersion(Absent, status=404, code="no_such_version"):
    """The state does not have the requested version. The ID may be another state's, or a delete marker's."""


class NoResource(Absent, status=404, code="no_resource"):
    """The version has no resource with this address."""


class NoWorkspace(Absent, status=404, code="no_workspace"):
    """The workspace does not exist. The client then creates it, so a lack of access has another status."""


class NoVersion(Absent, status=409, code="no_version"):
    """The workspace does not have this version or output. Clients do not show the text of a 404."""


class StateDeleted(Absent, status=409, code="state_deleted"):
    """The state is deleted, so no version can be restored; undelete the state first."""


class UploadMissing(Absent, status=409, code="upload_missing"):
    """The uploaded state is missing, because it was not uploaded or was removed afterwards."""


class Conflict(HoldfastError):
    """The request does not fit the stored data, or somebody else came first."""


class SerialNotNewer(Conflict, status=409, code="serial_not_newer"):
    """The serial is not above the last acknowledged serial, or no higher serial is possible."""


class LineageChanged(Conflict, status=409, code="lineage_changed"):
    """The lineage is not the current state's, or an empty state would replace a state that has a lineage."""


class BaseChanged(Conflict, status=409, code="base_changed"):
    """The state, or the record of its name, is not as the client last read it."""


class UnreadableState(Conflict, status=409, code="unreadable_state"):
    """The state has zero bytes, or Holdfast cannot read it or compare a write with it."""


class UnreadableVersion(Conflict, status=409, code="unreadable_version"):
    """The version's content is not a state document that Holdfast can read."""


class UnreadableRecord(Conflict, status=409, code="unreadable_record"):
    """Holdfast cannot read the record of a workspace or of frozen patterns."""


class EncryptedState(Conflict, status=409, code="encrypted_state"):
    """The client encrypted the state, so Holdfast cannot read its content or change its serial."""


class UploadAltered(Conflict, status=409, code="upload_altered"):
    """The uploaded state differs from the announced state."""


class WorkspaceExists(Conflict, status=409, code="workspace_exists"):
    """The workspace already exists, for example because another client has just created it."""


class ResourcesTracked(Conflict, status=409, code="resources_tracked"):
    """The workspace's state tracks resources, is encrypted, or cannot be read."""


class JustDeleted(Conflict, status=409, code="just_deleted"):
    """The workspace was deleted moments ago and created again. A retry must not delete it again."""


class LockLost(Conflict, status=409, code="lock_lost"):
    """The write lost its lock, or another client acquired the lock during a write without a lock."""


class LockNotMatched(Conflict, status=409, code="lock_not_matched"):
    """The request does not identify the current lock or freeze, or the lock is too young to be removed."""


class NotFrozen(Conflict, status=409, code="not_frozen"):
    """The state is not frozen."""


class RacedWriter(Conflict, status=409, code="raced_another_writer"):
    """Another client changed the same object during the request."""


class Locked(Conflict, status=423, code="locked"):
    """The state has a lock that this request does not hold. The body is lock info, as Terraform expects it.

    Attributes:
        is_released: whether waiting helps, because somebody will release the lock.
    """

    is_released: ClassVar[bool] = True

    def __init__(self, holder: Mapping[str, Any], message: str, *, held_by: str | None = None) -> None:
        """Take the holder's lock info; `held_by`, the principal who has the lock or freeze, is logged."""
        super().__init__(message, {"held_by": held_by} if held_by else None)
        self.holder = holder

    def body(self) -> Mapping[str, Any]:
        """Return the holder's lock info at the top level, always with an `ID`."""
        return self.holder


class Frozen(Locked, status=423, code="frozen"):
    """The state is frozen, or a frozen pattern matches its name. The body is the lock info of the freeze."""

    is_released = False


class NotDeclared(Locked, status=423, code="not_declared"):
    """The state's name is not declared. The body is lock info with that text.

    A lock conflict is the only refusal whose text every client shows.
    """

    is_released = False


class Unsettled(HoldfastError):
    """S3 failed or the lock was lost meanwhile: the outcome is unknown, or the work is half done."""


class UnlockOutcomeUnknown(Unsettled, status=409, code="unlock_undecided"):
    """The outcome of a force-unlock without a lock ID is unknown. A client must not retry it by itself."""


class DeleteOutcomeUnknown(Unsettled, status=409, code="delete_undecided"):
    """The delete or undeclare lost its lock, so its outcome is unknown.

    A retry or somebody else removed the lock.
    """


class RestoreOutcomeUnknown(Unsettled, status=409, code="restore_undecided"):
    """The restore lost its lock or its freeze, so its outcome is unknown.

    A retry or somebody else removed the lock.
    """


class UndeleteOutcomeUnknown(Unsettled, status=409, code="undelete_undecided"):
    """The undelete lost its lock, so its outcome is unknown.

    A retry or somebody else removed the lock.
    """


class LockLeft(Unsettled, status=500, code="lock_left"):
    """The undelete succeeded, but its lock may remain."""


class StorageRefused(Unsettled, status=500, code="storage_refused"):
    """S3 or CloudWatch Logs refused the function's request. This is a fault of the deployment."""


class OutcomeUnknown(Unsettled, status=503, code="undecided"):
    """AWS did not complete the request, or other requests kept changing the lock; a retry is safe."""

    def headers(self) -> dict[str, str]:
        """Return `Retry-After` in seconds; Terraform honours it."""
        return {"Retry-After": "1"}
