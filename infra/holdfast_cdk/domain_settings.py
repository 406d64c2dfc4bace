"""The table `domain` of a team's settings."""

import re
from dataclasses import dataclass
from typing import Final

from holdfast_cdk.settings import flag, setting, text

CERTIFICATE: Final = re.compile(
    r"arn:(?P<partition>aws(-[a-z]+)*):acm:(?P<region>[a-z]+(-[a-z]+)+-[0-9]+):(?P<account>[0-9]{12}):"
    r"certificate/[0-9a-f-]{36}"
)

# API Gateway accepts no name below the domains of AWS's own endpoints.
_NAME: Final = re.compile(
    r"(?!.*(^|\.)(amazonaws\.com(\.cn)?|api\.aws|on\.aws|aws\.dev|cloudfront\.net)$)(?=.{4,253}$)"
    r"([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainSettings:
    """The API's name, in place of the generated name."""

    name: str = setting(
        text('your DNS name in lower case, as in "states.example.com"', _NAME.fullmatch),
        "The domain name of the API.",
    )
    certificate: str = setting(
        text(
            'the ARN of a certificate of ACM, as in "arn:aws:acm:eu-central-1:123456789012:certificate/'
            '1a2b3c4d-1111-4222-8333-444455556666"',
            CERTIFICATE.fullmatch,
        ),
        "The certificate of the domain, in the account and region of the team.",
    )
    keep_default_endpoint: bool = setting(
        flag(),
        "If `true`, the address that AWS gave the API keeps working. If `false`, this address responds with "
        '`404`. `backend "http"` reads a `404` as "no state", unless it acquires a lock first.',
        default=False,
    )
