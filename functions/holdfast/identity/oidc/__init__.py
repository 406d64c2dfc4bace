"""ID tokens of OpenID Connect issuers: verification, the issuers' keys, and how they are fetched.

In all modules, `seconds` limits the time of requests to an issuer. `IssuerUnreachable` means that the keys
of an issuer could not be fetched, so that its tokens can be neither verified nor denied.
"""
