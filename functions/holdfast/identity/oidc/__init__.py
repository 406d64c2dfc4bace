"""ID tokens of OpenID Connect issuers: verification, the issuers' keys, and how they are fetched.

In all modules, `seconds` is the time for requests to an issuer. `IssuerUnreachable` means that its keys
could not be fetched, so that the issuer's tokens can be neither verified nor denied.
"""
