"""teams.toml and the CDK context: valid settings, and the one line about a wrong setting."""

import json
import re
import subprocess
import sys
import time
import tomllib
from dataclasses import asdict
from pathlib import Path

import pytest
from botocore.loaders import create_loader

from holdfast import __version__
from holdfast.s3.budget import Budget
from holdfast_cdk.config import AWS, ConfigError, above_quota, load_teams, local, read_target
from holdfast_cdk.functions import FUNCTIONS
from holdfast_cdk.settings import SettingError, Texts, as_toml, settings_of, text
from holdfast_cdk.team_settings import (
    GONE,
    LARGEST_STATE_MB,
    LOG_RETENTION_DAYS,
    Team,
    Throttling,
)
from tests.support.every_setting import EVERY_SETTING

ROOT = Path(__file__).resolve().parents[3]
CERTIFICATE = "arn:aws:acm:eu-central-1:012345678901:certificate/1a2b3c4d-1111-4222-8333-444455556666"
KEY = "arn:aws:kms:eu-central-1:123456789012:key/1a2b3c4d-1111-4222-8333-444455556666"


def write(folder: Path, text: str) -> Path:
    path = folder / "teams.toml"
    path.write_text(text, encoding="utf-8")
    return path


def wrong(folder: Path, text: str) -> str:
    """The error line about a wrong teams file, after the file's name."""
    path = write(folder, text)
    with pytest.raises(ConfigError) as error:
        load_teams(path)
    line = str(error.value)
    assert line.isprintable()  # one line
    assert line.startswith(f"{path}: ")
    return line.removeprefix(f"{path}: ")


def test_numbers_and_tables_beyond_measure_end_in_one_line_too(tmp_path: Path) -> None:
    beyond = (
        "the file has a number that is too long, or tables that are nested too deeply; write shorter numbers "
        "and fewer levels"
    )
    assert wrong(tmp_path, f"[teams.a]\nretention.days = {'9' * 5000}") == beyond
    assert wrong(tmp_path, f"[teams.a]\nretention = {'[' * 5000}") == beyond
    line = wrong(tmp_path, f"[teams.a]\nmemory.backend = 0x{'f' * 6000}")
    assert line.startswith("team 'a': memory.backend = 0xfff")
    assert line.endswith("is not allowed; write a whole number from 256 to 10240")


def test_a_byte_order_mark_in_front_is_no_fault(tmp_path: Path) -> None:
    (team,) = load_teams(write(tmp_path, "\ufeff[teams.a]\r\n"))
    assert team == Team(name="a")


def test_an_account_is_in_one_partition(tmp_path: Path) -> None:
    account = 'account = "123456789012"'
    teams = {"a": "eu-central-1", "b": "us-east-1", "c": "cn-north-1"}
    text = "".join(f'[teams.{name}]\n{account}\nregion = "{region}"\n' for name, region in teams.items())
    assert wrong(tmp_path, text) == (
        "The teams a and c have the same account, 123456789012, and the regions eu-central-1 and cn-north-1, "
        "which are in different AWS partitions. An account belongs to one partition: correct the account of "
        "one team."
    )
    assert load_teams(write(tmp_path, text.replace("cn-north-1", "eu-west-1")))


@pytest.mark.parametrize(
    ("region", "key", "administrator", "refused"),
    [
        ("eu-central-1", KEY, "aws:iam::123456789012", None),
        (
            "cn-north-1",
            KEY.replace("aws:kms:eu-central-1", "aws-cn:kms:cn-north-1"),
            "aws-cn:iam::123456789012",
            None,
        ),
        ("eu-west-1", KEY, "aws:iam::123456789012", "write the ARN of a key in eu-west-1"),
        (
            "eu-central-1",
            KEY.replace("aws:", "aws-cn:"),
            "aws:iam::123456789012",
            "the ARN of a key in eu-central-1",
        ),
        ("eu-central-1", KEY, "aws:iam::999999999999", "write a role or a user of the account 123456789012"),
        (
            "eu-central-1",
            KEY,
            "aws-cn:iam::123456789012",
            "write a role or a user of the partition aws",
        ),
    ],
)
def test_a_key_is_of_the_region_and_its_administrators_are_of_the_account(
    tmp_path: Path, region: str, key: str, administrator: str, refused: str | None
) -> None:
    settings = f'key = "kms"\nprevious_keys = ["{key}"]\nkey_administrators = ["arn:{administrator}:role/a"]'
    text = f'[teams.a]\naccount = "123456789012"\nregion = "{region}"\n{settings}'
    if refused:
        assert wrong(tmp_path, text).endswith(refused)
    else:
        assert load_teams(write(tmp_path, text))


@pytest.mark.parametrize(
    ("region", "rate", "burst", "quota"),
    [
        ("eu-south-1", 2500, 1250, None),
        ("eu-south-1", 2501, 1, "2500 requests a second and 1250 at once"),
        ("mx-central-1", 1, 1251, "2500 requests a second and 1250 at once"),
        ("eu-central-1", 10000, 5000, None),
        (None, 10000, 5000, None),
    ],
)
def test_more_requests_than_the_quota_of_the_region_are_told(
    region: str | None, rate: int, burst: int, quota: str | None
) -> None:
    warning = above_quota(Team(name="a", region=region, throttling=Throttling(rate=rate, burst=burst)))
    assert (warning is None) == (quota is None)
    assert (quota or "") in (warning or "")


def test_thirteen_regions_have_the_smaller_quota() -> None:
    busy = Throttling(rate=10000, burst=5000)
    regions = create_loader().load_data("endpoints")["partitions"][0]["regions"]
    smaller = [region for region in regions if above_quota(Team(name="a", region=region, throttling=busy))]
    assert len(smaller) == 13


def test_every_setting_is_read(tmp_path: Path) -> None:
    values = asdict(EVERY_SETTING)
    text = "".join(f"{name} = {as_toml(values[name])}\n" for name in settings_of(Team))
    assert load_teams(write(tmp_path, f"[teams.ops]\n{text}[teams.b]")) == (
        EVERY_SETTING,
        Team(name="b"),
    )


def test_values_at_their_limits_are_read_as_they_are_written(tmp_path: Path) -> None:
    text = """
        [teams.a-1]
        account = "012345678901"
        region = "eu-central-1"
        retention = { mode = "compliance", days = 36500, bucket_default = true }
        history = { days = 36500, keep_versions = 1 }
        key = "arn:aws:kms:eu-central-1:012345678901:key/mrk-0123456789abcdef0123456789abcdef"
        previous_keys = [
            "kms", "arn:aws:kms:eu-central-1:999999999999:key/1a2b3c4d-1111-4222-8333-444455556666"
        ]
        key_administrators = ["arn:aws:iam::012345678901:role/sso/a+b@c", "arn:aws:iam::012345678901:user/d"]
        replica = { region = "eu-west-1" }
        access_logs = { bucket = "acme.s3-logs", prefix = "holdfast/" }
        log_retention = 3653
        throttling = { rate = 10000, burst = 5000 }
        memory = { backend = 10240, cloud = 1328, management = 1328, authorizer = 256 }
        max_state_mb = 300
        audit_archive = { days = 36500 }
        notify = { topic = "arn:aws:sns:eu-central-1:012345678901:Chat_1-x", events = ["state.written"] }
        networks = ["0.0.0.0/0", "2001:db8::/32"]
        tags = { cost-center = "42", "ä:b/c d" = "=+-@_." }
        alarms = { topic = "arn:aws:sns:eu-central-1:012345678901:ops", oldest_lock = "30m", slow = 100 }
        [teams.a-1.domain]
        name = "states.example.com"
        certificate = "arn:aws:acm:eu-central-1:012345678901:certificate/1a2b3c4d-1111-4222-8333-444455556666"
        keep_default_endpoint = true
        """
    (team,) = load_teams(write(tmp_path, text))
    read = json.loads(json.dumps(asdict(team)))
    written = tomllib.loads(text)["teams"]["a-1"]
    assert {name: read[name] for name in written} == written


A_KEY = f'"kms", "s3" or the ARN of a KMS key, as in "{KEY}"'


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            'region = "eu-central-1"',
            "the setting 'replica' needs the settings 'account' and 'region'; write both",
        ),
        (
            'account = "123456789012"\nregion = "eu-west-1"',
            'replica.region = "eu-west-1" is the team\'s own region, so the replica would be lost together '
            "with the bucket; write another region",
        ),
        (
            'account = "123456789012"\nregion = "cn-north-1"',
            'replica.region = "eu-west-1" is in the AWS partition aws, and S3 does not copy from cn-north-1 '
            "to another partition; write a region of the partition aws-cn",
        ),
    ],
)
def test_a_replica_is_in_another_region_of_the_same_partition(
    tmp_path: Path, settings: str, message: str
) -> None:
    line = wrong(tmp_path, f'[teams.a]\n{settings}\nreplica = {{ region = "eu-west-1" }}')
    assert line == f"team 'a': {message}"


NAME = "the name must be 1 to 25 lower-case letters, digits and '-', with a letter first"
TABLES = "outside the tables [teams.<name>]; write the settings in these tables"
NONE = f"Holdfast {__version__} has no setting"
NO_TEAM = "the file names no team; write a table [teams.<name>] for each team"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", NO_TEAM),
        ("[teams]", NO_TEAM),
        ("teams = 1", NO_TEAM),
        ("[team.a]", f"{NONE} 'team' {TABLES}"),
        ("[teams.a]\n[defaults]", f"{NONE} 'defaults' {TABLES}"),
        (
            "[teams]\na = 1",
            "[teams] contains 'a', which is not a table; write the settings of each team into a table of its "
            "own, such as [teams.payments]",
        ),
        ("[teams.Payments]", f"team 'Payments': {NAME}"),
        ("[teams.1a]", f"team '1a': {NAME}"),
        ("[teams.a_b]", f"team 'a_b': {NAME}"),
        ("[teams.'a.b']", f"team 'a.b': {NAME}"),
        ("[teams.'ä']", f"team 'ä': {NAME}"),
        ('[teams."a\\nb"]', f"team 'a\\nb': {NAME}"),
        (f"[teams.{'a' * 26}]", f"team '{'a' * 26}': {NAME}"),
        (
            "[teams.a]\n[teams.b]\n[teams.a]",
            "the file is not valid TOML: Cannot declare ('teams', 'a') twice (at line 3, column 9); "
            "write text in quotes, and write each setting only once",
        ),
        (
            "[teams.a]\nregion = 1\n[teams.b]\nrequire_lock = 2",
            "team 'a': region = 1 is not allowed; write an AWS region in quotes, as in \"eu-central-1\"",
        ),
        (
            '[teams.a]\nretention = { mode = "governance", days = 30 }\nhistory = { days = 29 }',
            "team 'a': history.days = 29 is below retention.days = 30, but S3 cannot remove a version "
            "before its retention ends; write history.days = 30 or more",
        ),
        (
            "[teams.a]\nmemory.cloud = 527",
            "team 'a': memory.cloud = 527 is too little for states of max_state_mb = 100; "
            "write memory.cloud = 528 or more",
        ),
        (
            "[teams.a]\nmemory.management = 527",
            "team 'a': memory.management = 527 is too little for states of max_state_mb = 100; "
            "write memory.management = 528 or more",
        ),
    ],
)
def test_a_wrong_file_is_named_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    assert wrong(tmp_path, text) == message


PLACE = 'account = "012345678901"\nregion = "eu-central-1"\n'
ELSEWHERE = CERTIFICATE.replace("eu-central-1", "us-east-1")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            f'[teams.a]\n{PLACE}domain = {{ name = "a.example.com", certificate = "{ELSEWHERE}" }}',
            "team 'a': domain.certificate has an ARN of the region us-east-1, but the team is in the region "
            "eu-central-1; write an ARN of the region eu-central-1",
        ),
        (
            f'[teams.a]\n{PLACE}alarms.topic = "arn:aws:sns:eu-central-1:123456789012:ops"',
            "team 'a': alarms.topic has an ARN of the account 123456789012, but the team is in the account "
            "012345678901; write an ARN of the account 012345678901",
        ),
        (
            "".join(
                f'[teams.{team}]\ndomain = {{ name = "s.example.com", certificate = "{CERTIFICATE}" }}\n'
                for team in "ab"
            ),
            "the teams 'a' and 'b' have the same domain.name, s.example.com, and a domain leads to only one "
            "API; write another domain.name for one of the teams",
        ),
    ],
)
def test_what_is_elsewhere_or_is_another_teams_is_refused_in_one_line(
    tmp_path: Path, text: str, message: str
) -> None:
    assert wrong(tmp_path, text) == message


@pytest.mark.parametrize(
    "settings",
    [
        "memory = { cloud = 528, management = 528 }",
        'retention = { mode = "governance", days = 30 }\nhistory = { days = 30 }',
        f"max_state_mb = {LARGEST_STATE_MB}",
    ],
)
def test_the_least_that_another_setting_allows_is_enough(tmp_path: Path, settings: str) -> None:
    assert load_teams(write(tmp_path, f"[teams.a]\n{settings}"))


@pytest.mark.parametrize("function", ["cloud", "management"])
def test_the_largest_state_is_written_and_its_lock_read_again_before_requests_to_s3_end(
    function: str,
) -> None:
    (seconds,) = (spec.seconds for spec in FUNCTIONS if spec.name == function)
    for_requests = Budget.of_invocation(1000 * seconds).deadline - time.monotonic()

    # From S3 and to S3 at 50 MB a second, and 8 ms of processing.
    written_after = LARGEST_STATE_MB * (2 / 50 + 0.008)

    assert written_after < for_requests < 1.1 * written_after


ACCOUNT = 'the 12 digits of an AWS account in quotes, as in "123456789012"'
DAYS = "a whole number from 1 to 36500"
REGION = 'an AWS region in quotes, as in "eu-central-1"'
TOPIC = 'the ARN of an SNS topic that is not FIFO, as in "arn:aws:sns:eu-central-1:123456789012:operations"'
DOMAIN = 'your DNS name in lower case, as in "states.example.com"'
BUCKET = 'the name of a bucket, as in "acme-s3-logs"'
LOG_RETENTION = (
    "1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, "
    "365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288 or 3653"
)
TAG_NAME = (
    '1 to 128 letters, digits, spaces and . : / = + - @ _, which must not start with "aws:" and must not '
    'be "holdfast:team"'
)
TAG_VALUE = "1 to 256 letters, digits, spaces and . : / = + - @ _ in quotes"


def not_allowed(setting: str, value: str, instead: str, shown: str | None = None) -> tuple[str, str]:
    """A wrong setting and its message."""
    return f"{setting} = {value}", f"{setting} = {shown or value} is not allowed; write {instead}"


def unknown(setting: str, instead: str) -> str:
    """The message about an unknown setting."""
    return f"{NONE} '{setting}'; {instead}"


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        not_allowed("account", "123456789012", '"123456789012"'),
        *(
            not_allowed("account", f'"{account}"', ACCOUNT)
            for account in ("12345", "", "١٢٣٤٥٦٧٨٩٠١٢", "000000000000")
        ),
        not_allowed("region", '"eu-centrl-1"', '"eu-central-1" or "me-central-1" or "eu-central-2"'),
        not_allowed("region", '"US-WEST-2"', '"us-west-2"'),
        not_allowed("region", '"nowhere"', REGION),
        not_allowed("region", "1", REGION),
        not_allowed("require_lock", '"false"', "false"),
        not_allowed("require_lock", "0", "true or false"),
        not_allowed("native_clients", '"True"', "true"),
        not_allowed("keep_warm", '"off"', "true or false"),
        not_allowed("console", '"off"', "true or false"),
        not_allowed("watch", "{}", "true or false"),
        not_allowed("watch", "2026-11-20", "true or false"),
        not_allowed("retention.mode", '"Governance"', '"governance"'),
        not_allowed("retention.mode", '"complience"', '"compliance"'),
        not_allowed("retention.mode", '"none"', '"governance" or "compliance"'),
        not_allowed("retention.mode", '["governance"]', '"governance" or "compliance"'),
        *(
            not_allowed("retention.days", value, DAYS)
            for value in ("0", "-1", "36501", "true", "30.0", '"0"')
        ),
        not_allowed("retention.days", '"30"', "30"),
        not_allowed("retention.bucket_default", "1", "true or false"),
        not_allowed("retention", '"governance"', 'a table, as in { mode = "governance", days = 30 }'),
        not_allowed("history", "365", "a table, as in { days = 365, keep_versions = 100 }"),
        not_allowed("key", '"KMS"', '"kms"'),
        *(
            not_allowed("key", value, A_KEY)
            for value in ('"aes256"', "{ a = 1 }", '"arn:aws:kms:eu-central-1:123456789012:alias/states"')
        ),
        not_allowed(
            "previous_keys", f'"{KEY}"', 'a list of 1 to 5 entries, as in ["kms", "arn:aws:kms:…:key/…"]'
        ),
        (
            'previous_keys = ["s3"]',
            f'previous_keys[0] = "s3" is not allowed; write "kms" or the ARN of a KMS key, as in "{KEY}"',
        ),
        (
            'previous_keys = ["kms"]',
            'previous_keys has "kms", which is also the value of key; remove it from previous_keys',
        ),
        *(
            (
                f'key_administrators = ["arn:aws:iam::123456789012:role/{name}"]',
                f'key_administrators[0] = "arn:aws:iam::123456789012:role/{name}" is not allowed; write the '
                'ARN of a role or a user, as in "arn:aws:iam::123456789012:role/security"',
            )
            for name in ("*", "/", "a/", "a//b")
        ),
        (
            f'key = "{KEY}"\nkey_administrators = ["arn:aws:iam::123456789012:role/security"]',
            "key_administrators needs the stack's own KMS key, which the team does not use; remove "
            'key_administrators, or write key = "kms"',
        ),
        not_allowed("access_logs.bucket", '"Acme-Logs"', '"acme-logs"'),
        *(
            not_allowed("access_logs.bucket", f'"{name}"', BUCKET)
            for name in (
                *("ab", "a" * 64, "a_b_c", "abc-", "a..b", "192.168.5.4", "xn--abc", "logs-s3alias"),
                "arn:aws:s3:::logs",
            )
        ),
        not_allowed(
            "access_logs.prefix",
            f'"{"p" * 513}"',
            "at most 512 ASCII letters, digits, spaces and punctuation marks",
            f'"{"p" * 79}…',
        ),
        not_allowed(
            "access_logs.prefix", '"a\\nb"', "at most 512 ASCII letters, digits, spaces and punctuation marks"
        ),
        not_allowed(
            "access_logs.prefix", '["a"]', "at most 512 ASCII letters, digits, spaces and punctuation marks"
        ),
        not_allowed(
            "access_logs",
            '"acme-s3-logs"',
            'a table, as in { bucket = "acme-s3-logs", prefix = "holdfast/" }',
        ),
        not_allowed("log_retention", "100", LOG_RETENTION),
        not_allowed("log_retention", "true", LOG_RETENTION),
        not_allowed("log_retention", '"90"', "90"),
        not_allowed("throttling", "100", "a table, as in { rate = 100, burst = 200 }"),
        not_allowed("new_states", '"all"', '"any" or "declared"'),
        not_allowed("own_locks", "true", '"named" or "any" or false'),
        not_allowed("own_locks", "0", '"named" or "any" or false'),
        not_allowed("own_locks", '"False"', "false"),
        not_allowed("own_locks", '"Named"', '"named"'),
        not_allowed("max_state_mb", "1.5", "a whole number from 1 to 300"),
        not_allowed("max_state_mb", "301", "a whole number from 1 to 300"),
        not_allowed(
            "memory",
            "1769",
            "a table, as in { backend = 1769, cloud = 1769, management = 1769, authorizer = 1769 }",
        ),
        not_allowed("tags", '["a"]', 'a table of at most 48 entries, as in { cost-center = "42" }'),
        not_allowed("tags.cost-center", "42", '"42"'),
        not_allowed("tags.a", '""', TAG_VALUE),
        not_allowed("tags.a", '"a|b"', TAG_VALUE),
        not_allowed("tags.a", f'"{"a" * 257}"', TAG_VALUE, f'"{"a" * 79}…'),
        *(
            (
                f'tags."{name}" = "a"',
                f'the name in tags."{name}" is not allowed; write a name with {TAG_NAME}',
            )
            for name in ("aws:x", "AWS:x", "holdfast:team", "a|b", "")
        ),
        (
            'tags = { a = "1", A = "2" }',
            'tags has "a" and "A", which differ only in upper and lower case; write only one of them',
        ),
        (
            "".join(f"tags.t{number} = 'a'\n" for number in range(49)),
            "tags has 49 entries; write at most 48",
        ),
        ("retention.days = 30", 'retention.mode is missing; write "governance" or "compliance"'),
        ('retention.mode = "compliance"', "retention.days is missing; write a whole number from 1 to 36500"),
        ("history.keep_versions = 3", "history.days is missing; write a whole number from 1 to 36500"),
        ('access_logs.prefix = "a"', f"access_logs.bucket is missing; write {BUCKET}"),
        *(
            not_allowed("alarms.topic", f'"{topic}"', TOPIC)
            for topic in (
                "ops",
                "arn:aws:sns:eu-central-1:123456789012:ops.fifo",
                "arn:aws:sqs:eu-central-1:123456789012:ops",
                "arn:aws:sns:eu-central-1:1234:ops",
            )
        ),
        *(
            not_allowed("alarms.oldest_lock", f'"{age}"', 'minutes, hours or days, as in "30m", "1h" or "2d"')
            for age in ("0h", "90s", "1.5h", "h", "-1h")
        ),
        not_allowed("alarms.slow", "99", "a whole number from 100 to 25000"),
        ("alarms.slow = 100", f"alarms.topic is missing; write {TOPIC}"),
        not_allowed("domain.name", '"States.example.com"', '"states.example.com"'),
        *(
            not_allowed("domain.name", f'"{name}"', DOMAIN)
            for name in (
                *("states", "https://states.example.com", "states.example.com.", "*.example.com", "a_b.c.de"),
                *("abc.execute-api.eu-central-1.amazonaws.com", "10.0.0.1"),
            )
        ),
        (
            'domain.name = "states.example.com"',
            'domain.certificate is missing; write the ARN of a certificate of ACM, as in "arn:aws:acm:'
            'eu-central-1:123456789012:certificate/1a2b3c4d-1111-4222-8333-444455556666"',
        ),
        ("require_locks = true", unknown("require_locks", "write require_lock")),
        ("log-retention = 90", unknown("log-retention", "write log_retention")),
        ("Retention.days = 90", unknown("Retention", "write retention")),
        ("memory.backnd = 512", unknown("memory.backnd", "write memory.backend")),
        (
            "keep_versions = 100",
            unknown("keep_versions", "did you mean history.keep_versions?"),
        ),
        (
            "days = 100",
            unknown(
                "days",
                "did you mean retention.days, history.days or audit_archive.days?",
            ),
        ),
        (
            "throttling.seconds = 100",
            unknown("throttling.seconds", "the settings are throttling.rate, throttling.burst"),
        ),
        (
            "zone = 1",
            unknown("zone", f"the settings are {', '.join(settings_of(Team))}"),
        ),
    ],
)
def test_a_wrong_setting_is_named_in_one_line_with_what_to_write(
    tmp_path: Path, setting: str, message: str
) -> None:
    line = wrong(tmp_path, f"[teams.a]\n[teams.b]\n{setting}")
    assert line == f"team 'b': {message}"


@pytest.mark.parametrize("value", ["true", "false", '"acme-security"'])
@pytest.mark.parametrize("setting", GONE)
def test_a_setting_that_is_gone_is_refused_with_what_to_do_instead(
    tmp_path: Path, setting: str, value: str
) -> None:
    line = wrong(tmp_path, f"[teams.a]\n[teams.b]\n{setting} = {value}")
    assert line == f"team 'b': the setting {setting} was removed: {GONE[setting]}"
    assert setting not in settings_of(Team)


def test_the_days_for_which_logs_are_kept_are_those_of_cloudwatch() -> None:
    days = create_loader().load_service_model("logs", "service-2")["shapes"]["Days"]["documentation"]
    values = days.partition("Possible values are:")[2].partition(".")[0]
    assert tuple(map(int, re.findall("[0-9]+", values))) == LOG_RETENTION_DAYS


def test_the_settings_are_read_without_loading_the_cdk() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import sys, holdfast_cdk.config; sys.exit('aws_cdk' in sys.modules)"],
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0


def test_the_target_is_aws_unless_the_context_says_otherwise() -> None:
    endpoint = "http://127.0.0.1:4566"
    nothing: dict[str, str] = {}
    assert read_target(nothing.get) == read_target({"target": "aws"}.get) == AWS
    assert read_target({"target": "local", "local_endpoint": endpoint}.get) == local(endpoint)


@pytest.mark.parametrize(
    ("context", "message"),
    [
        ({"target": "azure"}, "-c target=azure is unknown; allowed are aws (the default) and local"),
        ({"target": "local"}, "-c target=local needs -c local_endpoint=<address>, "),
        ({"target": "local", "local_endpoint": "127.0.0.1:1"}, "-c target=local needs -c local_endpoint="),
        ({"target": "local", "local_endpoint": "http://a/"}, "-c target=local needs -c local_endpoint="),
        ({"local_endpoint": "http://a"}, "-c local_endpoint is only for -c target=local; "),
    ],
)
def test_a_wrong_context_is_named_in_one_line(context: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        read_target(context.get)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


def test_a_team_keeps_its_place_on_aws_and_loses_it_on_the_local_one() -> None:
    team = Team(name="a", account="123456789012", region="eu-west-1", require_lock=False)
    assert AWS.place(team) == team
    assert local("http://127.0.0.1:4566").place(team) == Team(
        name="a", account="000000000000", region="us-east-1", require_lock=False
    )


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("one", 'names = "one" is not allowed; write a list of 1 to 2 entries, as in ["one", "two"]'),
        ([], 'names = [] is not allowed; write a list of 1 to 2 entries, as in ["one", "two"]'),
        (["one", 2], "names[1] = 2 is not allowed; write a word"),
        (["one", "one"], 'names has "one" twice; write it once'),
        (["one", "two", "three"], "names has 3 entries; write at most 2"),
    ],
)
def test_a_list_of_texts_is_refused_with_what_to_write(value: object, problem: str) -> None:
    with pytest.raises(SettingError, match=f"^{re.escape(problem)}$"):
        Texts('["one", "two"]', text("a word", str.isalpha), most=2).read("names", value)
