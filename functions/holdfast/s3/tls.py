"""The TLS context of a client of the SDK: its certificate authorities are read once."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ssl


def read_authorities_once(client: Any) -> None:
    """Have a client read its certificate authorities into its TLS context at the first connection alone.

    botocore names their file to urllib3, which reads it again for each new connection, 30 ms each time. The
    connections of a client share one context, so one reading is enough. What is verified stays: the same file
    (`AWS_CA_BUNDLE`, or botocore's own) and the host name.

    Both names of botocore are private. Where one is missing, or the file cannot be read, botocore goes its
    own way, and reports what is wrong.
    """
    session: Any = getattr(getattr(client, "_endpoint", None), "http_session", None)
    set_up = getattr(session, "_setup_ssl_cert", None)
    if set_up is None:
        return
    ready: list[ssl.SSLContext] = []

    def set_up_once(pool: Any, url: str, verify: object) -> None:
        set_up(pool, url, verify)
        context = getattr(pool, "conn_kw", {}).get("ssl_context")
        if context is None or not pool.ca_certs:
            return
        if context not in ready:
            try:
                context.load_verify_locations(pool.ca_certs)
            except OSError:
                return
            ready.append(context)
        pool.ca_certs = None

    session._setup_ssl_cert = set_up_once  # noqa: SLF001 it has no public name
