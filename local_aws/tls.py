"""A small certificate authority and one certificate for 127.0.0.1, made anew for each local AWS.

One self-signed certificate would not do: some clients refuse an authority that serves as a leaf.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from local_aws.private_file import write_private

_VALIDITY = timedelta(days=30)
_CLOCK_SKEW = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Certificates:
    """Paths of PEM files.

    Attributes:
        ca: the authority's certificate: what a client has to trust.
        cert: the server's certificate.
        key: the server's private key, readable by its owner only.
    """

    ca: Path
    cert: Path
    key: Path


def create_certificates(folder: Path) -> Certificates:
    """Make a new authority and a certificate of it for 127.0.0.1 and localhost, good for 30 days.

    The authority's private key is not kept, so nothing else can ever be signed with it.

    Args:
        folder: where the files go; made if it is not there.

    Returns:
        Where they are.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    paths = Certificates(ca=folder / "ca.pem", cert=folder / "server.pem", key=folder / "server.key")
    ca_key = ec.generate_private_key(ec.SECP256R1())
    ca = _certificate_authority(ca_key)
    key = ec.generate_private_key(ec.SECP256R1())
    cert = _server_certificate(key, ca, ca_key)
    paths.ca.write_bytes(ca.public_bytes(serialization.Encoding.PEM))
    paths.cert.write_bytes(cert.public_bytes(serialization.Encoding.PEM))
    write_private(
        paths.key,
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ),
    )
    return paths


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + _VALIDITY)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
    )


def _certificate_authority(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    name = _name("Holdfast local AWS authority")
    return (
        _builder(name, name, key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .sign(key, hashes.SHA256())
    )


def _server_certificate(
    key: ec.EllipticCurvePrivateKey, ca: x509.Certificate, ca_key: ec.EllipticCurvePrivateKey
) -> x509.Certificate:
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1")), x509.DNSName("localhost")])
    return (
        _builder(_name("Holdfast local AWS"), ca.subject, key.public_key())
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False
        )
        .sign(ca_key, hashes.SHA256())
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
