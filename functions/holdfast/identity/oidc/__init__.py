"""ID tokens of OpenID Connect issuers: verification, the issuers' keys, and how they are fetched."""
