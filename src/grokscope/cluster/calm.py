"""What Dask does for its dashboard, left out in clusters that are started for a sweep.

Every process of Dask's samples its own stack a hundred times a second, and its event loop fifty times. In clusters
without a dashboard nobody sees that, and on 8 workers it took as much of the processor as short runs did.
"""

SETTINGS: dict[str, object] = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
}


def as_environment() -> dict[str, str]:
    """The same in environment variables, for a worker that is started with them.

    >>> as_environment()["DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED"]
    'False'
    """
    return {f"DASK_{name.replace('.', '__').upper()}": str(value) for name, value in SETTINGS.items()}
