"""Who may connect: the certificates that a scheduler, its workers and this process show each other.

security = security_of(request)     # from [tls] of cluster.toml
security = Security.temporary()     # made for one cluster, and known to nobody else
"""

from typing import Any

from distributed import Security

from grokscope.cluster.request import ClusterRequest

_ROLES = ("client", "worker", "scheduler")


def security_of(request: ClusterRequest) -> Security | None:
    """The certificate and key for all connections; None: as Dask itself is configured."""
    if not request.tls:
        return None
    ca, cert, key = (request.tls[name] for name in ("ca", "cert", "key"))
    files = {f"tls_{role}_{what}": file for role in _ROLES for what, file in (("cert", cert), ("key", key))}
    return Security(tls_ca_file=ca, require_encryption=True, **files)


def as_settings(security: Security) -> dict[str, Any]:
    """The same in Dask's own configuration, for processes that are started with it."""
    tls: dict[str, Any] = {"ca-file": security.tls_ca_file}
    for role in _ROLES:
        tls[role] = {what: getattr(security, f"tls_{role}_{what}") for what in ("cert", "key")}
    return {"distributed.comm.require-encryption": True, "distributed.comm.tls": tls}


def as_environment(security: Security) -> dict[str, str]:
    """The same in environment variables, which other users of a machine cannot read, for a worker."""
    prefix = "DASK_DISTRIBUTED__COMM__"
    return {
        f"{prefix}REQUIRE_ENCRYPTION": "True",
        f"{prefix}TLS__CA_FILE": security.tls_ca_file,
        f"{prefix}TLS__WORKER__CERT": security.tls_worker_cert,
        f"{prefix}TLS__WORKER__KEY": security.tls_worker_key,
    }
