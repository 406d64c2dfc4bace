"""ID tokens of OpenID Connect issuers: verification, the issuers' keys, and how they are fetched.

Everywhere, `seconds` is how long asking the issuer may take, and `IssuerUnreachable` says that its keys could
not be fetched: no token of it can be verified or denied.
"""
