"""The part of a source that most sources have in common, because they lack what S3 has."""

from collections.abc import Collection

from holdfast_cli.errors import CommandError


class PlainSource:
    """A source without handles for its locks, and without a rule that refuses writes."""

    address: str

    def prepare_lock(self, state: str) -> str:  # noqa: ARG002 of the interface
        return ""

    can_refuse_writes = False

    def refuse_writes(self, refused: Collection[str], allowed: Collection[str]) -> None:  # noqa: ARG002 of the interface
        raise CommandError(
            f"{self.address} has no rule that refuses writes; only s3:// has one, of the bucket."
        )
