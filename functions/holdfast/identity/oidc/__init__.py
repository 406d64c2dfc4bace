"""ID tokens of OpenID Connect issuers: verification, the issuers' keys, and how they are fetched.

In all modules, `seconds` limits the requests to the issuer. `IssuerUnreachable` means that the issuer's keys
could not be fetched, so that its tokens can be neither verified nor denied.
"""
