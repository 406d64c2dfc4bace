"""A certificate authority and a certificate for this machine, new for each local AWS or server under test."""

from pathlib import Path

import trustme

from local_aws.files import write_private
from local_aws.server import Certificates


def create_certificates(folder: Path) -> Certificates:
    """Create an authority and its certificate for 127.0.0.1 and localhost. The folder need not exist.

    The authority's private key is not stored, so it cannot sign anything else later.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    paths = Certificates(ca=folder / "ca.pem", cert=folder / "server.pem", key=folder / "server.key")
    authority = trustme.CA()
    server = authority.issue_cert("127.0.0.1", "localhost")
    authority.cert_pem.write_to_path(str(paths.ca))
    for number, certificate in enumerate(server.cert_chain_pems):
        certificate.write_to_path(str(paths.cert), append=number > 0)
    write_private(paths.key, server.private_key_pem.bytes().decode())
    return paths
