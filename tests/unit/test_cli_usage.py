"""Wrong usage of the commands. `backend-config`, `configure` and the parser have tables of their own."""

import re
import shlex
import socket
from collections.abc import Mapping
from typing import Final
from unittest import mock

import pytest

from holdfast_cli.main import main

NOBODY: Final = "http://127.0.0.1:1"
ENVIRONMENT: Final = {
    "HOME": "/nonexistent",
    "HOLDFAST_ADDRESS": NOBODY,
    "TF_HTTP_USERNAME": "k2v9x0q7m3c1d8f5a6b4",
    "TF_HTTP_PASSWORD": "holdfast_not-to-be-shown",
    "AWS_REGION": "eu-central-1",
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_ENDPOINT_URL": NOBODY,
}
CREATE: Final = "token create --role writer --scope 'network/*'"
SEVERAL: Final = "--grant writer:apps/* --grant outputs:network/*"
LONG_SCOPES: Final = " ".join(f"--scope {number:0200}" for number in range(10))
MANY_NETWORKS: Final = " ".join(f"--from 10.{number}.0.0/16" for number in range(51))
NETWORKS: Final = "--from 203.0.113.0/24 --from 2001:db8::/32"
ONLY_V6: Final = "--from 2001:db8::/32 --from 2001:db9::/32"
REFUSES_ALL: Final = "2001:db8::/32, 2001:db9::/32 would refuse every caller"
ADD: Final = "trust create network-main --role writer --scope 'network/*'"
FROM_GITHUB: Final = "--issuer https://token.actions.githubusercontent.com --claim repository=acme/network"
FROM_AWS: Final = "--aws-role Developer"
UPDATE: Final = "trust update x --role reader"
FREEZE: Final = "state freeze --reason 'incident 4711'"
RESTORE: Final = "state restore network/prod v-12 --reason"
DIFF: Final = "state diff network/prod"

WRONG: Final[Mapping[str, str]] = {
    # Grants.
    "token create --scope '*'": "one of the arguments --role --grant is required",
    f"{CREATE} --grant outputs:a": "not allowed with argument --role",
    f"{CREATE} --role reader": "--role accepts one value, but has 2",
    "token create --grant writer:a --scope b": "--scope is only for --role",
    "token create --grant writer": "ROLE:PATTERN",
    "token create --grant king:a": "the roles are outputs",
    "token create --grant writer:a//b": "scope pattern 'a//b'",
    "token create --grant writer:a,b": "--grant writer:a --grant writer:b",
    f"token create {SEVERAL} --grant reader:apps/*": "is redundant, because the grant writer:apps/* includes "
    "it",
    f"token create {SEVERAL} {SEVERAL}": "The grants are not valid",
    f"token create --role writer --scope {'x' * 200} {LONG_SCOPES}": "at most 2000 characters",
    "token create --role writer": "--scope",
    "token create --role writer --scope a//b": "scope pattern 'a//b'",
    "token create --role writer --scope a/**": "'name/*' for everything below a name",
    f"{ADD} {FROM_AWS} --scope a//b": "scope pattern",
    f"{UPDATE} --scope a,b/*": "repeat --scope, as in --scope a --scope 'b/*'",
    f"{UPDATE} --scope 'a, b/*'": "repeat --scope, as in --scope a --scope 'b/*'",
    f"{UPDATE} --scope 'a;b/*,'": "repeat --scope, as in --scope a --scope 'b/*'",
    f"{UPDATE} --scope 'a b/*'": "repeat --scope, as in --scope a --scope 'b/*'",
    # Networks that they are for.
    f"{CREATE} --from 203.0.113.5": "'203.0.113.5' is not in the standard form of a network; write",
    f"{CREATE} --from anywhere": "'anywhere' is not a network; write a network such as 203.0.113.0/24",
    f"{CREATE} {MANY_NETWORKS}": "there are 51 networks, but at most 50 are allowed",
    f"{ADD} {FROM_AWS} --from x": "argument --from: 'x' is not a network",
    f"{ADD} {FROM_AWS} {NETWORKS} --from 203.0.113.0/25": "remove 203.0.113.0/25",
    f"{UPDATE} {NETWORKS} --from anywhere": "'anywhere' is not a network",
    f"{CREATE} {ONLY_V6}": "only from IPv4 addresses; add an IPv4 network, such as 203.0.113.0/24",
    f"{ADD} {FROM_AWS} {ONLY_V6}": REFUSES_ALL,
    f"{UPDATE} {ONLY_V6}": REFUSES_ALL,
    # Tokens.
    f"{CREATE} --team Payments": "not a valid team name",
    f"{CREATE} --expires tomorrow": "not a valid time",
    f"{CREATE} --expires -1d": "expected one argument",
    f"{CREATE} --expires 2027-02-30": "'2027-02-30' is not a valid time",
    f"{CREATE} --expires 9999999999d": "longer than 36500d",
    # Trust records.
    ADD: "--issuer",
    f"{ADD} {FROM_GITHUB} {FROM_AWS}": "not allowed with",
    f"{ADD} {FROM_GITHUB} --claim repository=acme/dns": "named twice",
    f"{ADD} {FROM_GITHUB} --claim =x": "not a valid claim",
    f"{ADD} {FROM_GITHUB} --claim ref": "not a valid claim",
    f"{ADD} {FROM_GITHUB} --claim 'ref=refs/*'": "a claim must be exactly the value in the token",
    f"{ADD} {FROM_GITHUB} --audience ''": "audience",
    f"{ADD} {FROM_AWS} --claim a=b": "only for trust records with --issuer",
    f"{ADD} {FROM_AWS} --audience x": "only for trust records with --issuer",
    f"trust create Main --role writer --scope a {FROM_AWS}": "not a valid name of a trust record",
    "trust create": "NAME",
    "token update k2v9x0q7m3c1d8f5a6b4": "use --description or --owner",
    "trust remove": "NAME",
    "trust update x": "--scope, --grant, --from, --description or --owner",
    f"{UPDATE} --issuer a=b": "Create a new trust record, then remove",
    f"{UPDATE} --audience a=b": "Create a new trust record, then remove",
    f"{UPDATE} --claim a=b": "Create a new trust record, then remove",
    f"{UPDATE} --aws-role a=b": "Create a new trust record, then remove",
    # Sessions.
    "login --duration 4m": "5m to 12h",
    "login --duration 13h": "5m to 12h",
    "login --duration 1": "not a valid duration",
    "login --address https://x --team a": "not allowed with",
    "login --audience x": "need --oidc",
    "login --id-token-file x": "need --oidc",
    "login --oidc --aws-profile x": "cannot be used together",
    "HOLDFAST_ADDRESS=nonsense login": "HOLDFAST_ADDRESS",
    "console --duration 2h": "at most 1h",
    "console --audience x": "need --oidc",
    "console --address http://api.example": "https:// only",
    # The doctor.
    "doctor --account network/prod": "--account does not check a state",
    "doctor network/prod --team a --address https://api.example.com": "both name the API",
    "doctor --account --address https://api.example.com": "--account does not check an API",
    "doctor network//prod": "is empty",
    "HOLDFAST_TEAM='A b' doctor --account": "HOLDFAST_TEAM",
    # The files of a deployment.
    "init": "the following arguments are required: TEAM",
    "init Payments": "'Payments' is not a valid team name: 1 to 25 lower-case letters",
    "init payments a_b": "'a_b' is not a valid team name",
    "init payments --halp": "there is no option --halp. Did you mean --help?",
    # The shell that completes.
    "completion tcsh": "'tcsh' is not one of bash, zsh, fish",
    # The audit log.
    "audit --since yesterday": "not a valid time",
    "audit --since 2026-13-01": "not a valid time",
    "audit a//b": "empty",
    "audit --event state.wrote": "'state.wrote' is not a valid event; this version knows sign_in",
    "audit --team A": "not a valid team name",
    "audit --limit 0": "'0' is not a valid count",
    "audit --limit -1": "'-1' is not a valid count",
    "audit --limit 1_0": "'1_0' is not a valid count",
    f"audit --limit {'9' * 5000}": "is not a valid count",
    "audit --writes --event state.read": "not allowed with argument --writes",
    "audit --follow --until 1h": "not allowed with argument --follow",
    # States.
    "state list /x": "is not the beginning of any state's name",
    "state list 'a b'": "is not the beginning of any state's name",
    f"state list {'x' * 201}": "is not the beginning of any state's name",
    "state diff network/prod @2026-13-45": "is not a valid time: write a date such as 2026-11-20, or a time",
    "state find ''": "the value is empty; write what to search for",
    "state list --larger-than 4": "not a valid size",
    "state list --larger-than 4MiB": "not a valid size",
    "state list --older-than 30": "not a valid duration",
    f"{FREEZE} network/prod --until soon": "not a valid time",
    f"{FREEZE} network/prod --until 9999-99-99": "not a valid time",
    "state freeze network/prod --reason 'a\nb'": "must be one line of text",
    f"state freeze network/prod --reason {'x' * 10_000}": "at most 200",
    "state freeze network/prod": "--reason",
    f"{FREEZE} a//b": "segment 2 is empty",
    f"{FREEZE} a//": "cannot match a state name",
    f"{FREEZE} a/?": "must start with a letter or a digit",
    f"{FREEZE} 'a/**'": "'name/*' for everything below a name",
    "state get network/prod --json": "--json needs --output",
    f"{RESTORE} ''": "reason",
    f"{RESTORE} '  '": "reason",
    f"{RESTORE} 'a\nb'": "reason",
    f"{RESTORE} '\x1b[31m'": "reason",
    f"{RESTORE} {'x' * 201}": "reason",
    f"{RESTORE} {'x' * 10_000}": "reason",
    # Versions of a state.
    f"{DIFF} @2999-01-01": "is in the future",
    f"{DIFF} @2026-13-01": "is not a valid time",
    f"{DIFF} @2026-11-20T25:00": "is not a valid time",
    f"{DIFF} @2026-W47": "is not a valid version: write a serial such as @12",
    f"{DIFF} @": "is not a valid version: write a serial such as @12",
    f"{DIFF} @-1": "is not a valid version: write a serial such as @12",
    f"{DIFF} @٣": "is not a valid version: write a serial such as @12",
    f"{DIFF} 12": "write a serial with an @, as in @12",
    f"{DIFF} ''": "not a valid version",
    f"{DIFF} 'a b'": "not a valid version",
    f"{DIFF} 'a\x1bb'": "not a valid version",
    f"{DIFF} {'x' * 1025}": "not a valid version",
}
"""A line that is typed into a shell, and words of the last line on standard error."""


@pytest.mark.parametrize(("typed", "says"), WRONG.items(), ids=lambda text: text[:80])
def test_wrong_usage_ends_with_2_says_why_and_asks_nobody(
    capsys: pytest.CaptureFixture[str], typed: str, says: str
) -> None:
    words = shlex.split(typed)
    variables = dict(word.split("=", 1) for word in words if re.match("HOLDFAST_[A-Z]+=", word))

    with (
        mock.patch.dict("os.environ", ENVIRONMENT | variables, clear=True),
        mock.patch.object(socket.socket, "connect", side_effect=AssertionError("somebody is asked")),
    ):
        try:
            code: object = main(words[len(variables) :])
        except SystemExit as end:
            code = end.code

    printed = capsys.readouterr()
    assert (code, printed.out) == (2, "")
    assert says in printed.err.splitlines()[-1]
