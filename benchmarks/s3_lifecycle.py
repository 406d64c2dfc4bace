"""The versions of one key in a versioned bucket, and which of them S3's lifecycle removes at which midnight.

A model, with time as minutes since some midnight UTC. What it follows, by the last part of the addresses
below docs.aws.amazon.com/AmazonS3/latest/:

- `userguide/intro-lifecycle-rules.html`: days are counted from the moment when the successor was made and
  rounded up to the next midnight UTC; a number of newer noncurrent versions is kept beside that; a marker
  expires when it is all that is left of its key
- `userguide/intro-lifecycle-filters.html`: a rule is for a prefix, for tags, or for both
- `userguide/intro-lifecycle-rules.html` too: a current version that expires gets a delete marker above it
- `userguide/DeleteMarker.html`: a marker is a version like any other, but has no tags and no content
- `userguide/object-lock-managing.html`: lifecycle removes no version under retention; markers are under none

S3 may come later than that, never earlier. Where a document leaves room, the model takes the reading that
leaves more behind.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

DAY = 24 * 60
"""Minutes."""


class UnknownRuleError(Exception):
    """A lifecycle rule asks for something that the model does not have."""


class ProtectedError(Exception):
    """A version is under retention."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A lifecycle rule, as far as it concerns whole versions.

    Attributes:
        prefix: of the keys that it is for.
        tags: all of which an object must have; keys and values.
        current_days: after which the current version gets a delete marker above it; None for never.
        noncurrent_days: after which a version that is not current goes; None for never.
        keep_newer: how many noncurrent versions, the newest, stay whatever their age.
        expired_markers: whether a marker goes that is all that is left of its key.
    """

    prefix: str = ""
    tags: frozenset[tuple[str, str]] = frozenset()
    current_days: int | None = None
    noncurrent_days: int | None = None
    keep_newer: int = 0
    expired_markers: bool = False


@dataclass(slots=True, eq=False, kw_only=True)
class Version:
    """A version of an object, or a delete marker.

    Attributes:
        made: when, in minutes.
        marker: it is a delete marker.
        tags: keys and values.
        retained_until: until when nobody can remove it, in minutes.
        noncurrent_since: when its successor was made, in minutes; None while it is current.
    """

    made: int
    marker: bool = False
    tags: frozenset[tuple[str, str]] = frozenset()
    retained_until: int = 0
    noncurrent_since: int | None = None


@dataclass(slots=True)
class Key:
    """A key, its versions oldest first: the last is the current one."""

    name: str
    versions: list[Version] = field(default_factory=list)

    def put(
        self, now: int, *, tags: frozenset[tuple[str, str]] = frozenset(), retained_days: int = 0
    ) -> Version:
        """PutObject. Returns the new version."""
        return self._append(Version(made=now, tags=tags, retained_until=now + retained_days * DAY))

    def delete(self, now: int) -> Version:
        """DeleteObject without a version ID. Returns the marker."""
        return self._append(Version(made=now, marker=True))

    def remove(self, version: Version, now: int) -> None:
        """DeleteObject with a version ID.

        Raises:
            ProtectedError: the version is under retention.
        """
        if now < version.retained_until:
            raise ProtectedError
        self.versions.remove(version)
        if self.versions:
            self.versions[-1].noncurrent_since = None

    def expire(self, rules: Iterable[Rule], midnight: int) -> None:
        """Do what lifecycle does at a midnight. What one rule removes is gone for the others a day later."""
        rules = tuple(rules)
        gone = {id(version) for rule in rules for version in self._expired(rule, midnight)}
        if gone:
            self.versions = [version for version in self.versions if id(version) not in gone]
        if any(self._is_past(rule, midnight) for rule in rules):
            self.delete(midnight)

    @property
    def objects(self) -> int:
        """How many versions that are no markers."""
        return len(self.versions) - self.markers

    @property
    def markers(self) -> int:
        """How many delete markers."""
        return sum(version.marker for version in self.versions)

    def _append(self, version: Version) -> Version:
        if self.versions:
            self.versions[-1].noncurrent_since = version.made
        self.versions.append(version)
        return version

    def _is_past(self, rule: Rule, midnight: int) -> bool:
        """Whether a rule ends the current version, which retention does not hinder: the version stays."""
        if rule.current_days is None or not self.versions or not self.name.startswith(rule.prefix):
            return False
        current = self.versions[-1]
        due = _midnight_after(current.made, rule.current_days)
        return not current.marker and rule.tags <= current.tags and midnight >= due

    def _expired(self, rule: Rule, midnight: int) -> Iterable[Version]:
        if not self.name.startswith(rule.prefix):
            return
        # An expired marker is one that is alone: one above other markers is not.
        if rule.expired_markers and len(self.versions) == 1 and self.versions[0].marker and not rule.tags:
            yield self.versions[0]
        if rule.noncurrent_days is None:
            return
        newer = len(self.versions) - 1
        for version in self.versions[:-1]:
            newer -= 1
            # Both must hold: old enough, and enough newer ones. Neither comes back further on.
            if newer < rule.keep_newer or midnight < _due(version, rule.noncurrent_days):
                return
            if rule.tags <= version.tags and midnight >= version.retained_until:
                yield version


def _due(version: Version, days: int) -> int:
    since = version.noncurrent_since
    if since is None:
        raise AssertionError("the current version has no such date")
    return _midnight_after(since, days)


def _midnight_after(time: int, days: int) -> int:
    return ((time + days * DAY) // DAY + 1) * DAY


# --- from a template -----------------------------------------------------------------------------

_NOTHING_TO_DO_WITH_VERSIONS = {"Id", "Status", "AbortIncompleteMultipartUpload"}
_KNOWN = {
    *("Prefix", "TagFilters", "ExpirationInDays"),
    *("NoncurrentVersionExpiration", "ExpiredObjectDeleteMarker"),
}


def read_rules(lifecycle: Sequence[Mapping[str, Any]]) -> tuple[Rule, ...]:
    """Read the rules of a bucket in a CloudFormation template.

    Args:
        lifecycle: `LifecycleConfiguration.Rules` of an `AWS::S3::Bucket`.

    Returns:
        The rules that are enabled.

    Raises:
        UnknownRuleError: one does more than the model knows.
    """
    return tuple(_read_rule(rule) for rule in lifecycle if rule["Status"] == "Enabled")


def _read_rule(rule: Mapping[str, Any]) -> Rule:
    noncurrent = rule.get("NoncurrentVersionExpiration", {})
    unknown = {
        *(rule.keys() - _KNOWN - _NOTHING_TO_DO_WITH_VERSIONS),
        *(noncurrent.keys() - {"NoncurrentDays", "NewerNoncurrentVersions"}),
    }
    if unknown:
        raise UnknownRuleError(f"{', '.join(sorted(unknown))} in the rule {rule.get('Id')}")
    return Rule(
        prefix=rule.get("Prefix", ""),
        tags=frozenset((tag["Key"], tag["Value"]) for tag in rule.get("TagFilters", [])),
        current_days=rule.get("ExpirationInDays"),
        noncurrent_days=noncurrent.get("NoncurrentDays"),
        keep_newer=noncurrent.get("NewerNoncurrentVersions", 0),
        expired_markers=rule.get("ExpiredObjectDeleteMarker", False),
    )
