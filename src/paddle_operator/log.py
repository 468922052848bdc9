"""Logs to stderr: a line per change, with the job's key; pretty for people or JSON for machines."""

import sys
from enum import StrEnum
from typing import TextIO


class LogFormat(StrEnum):
    CONSOLE = "console"
    JSON = "json"


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def import_without_rich() -> None:
    """Keeps structlog from importing rich and pygments, with which it could colour tracebacks.

    That takes 3 MiB and 50 ms, and ours are plain.
    """
    if "rich" in sys.modules:
        return
    sys.modules["rich"] = None  # type: ignore[assignment] # as if it were not installed
    try:
        import structlog  # noqa: F401, PLC0415
    finally:
        del sys.modules["rich"]


def configure(level: LogLevel, form: LogFormat, file: TextIO | None = None) -> None:
    """Into ``file``, or to stderr."""
    # `--help` must not wait for these.
    import logging  # noqa: PLC0415

    import structlog  # noqa: PLC0415

    file = file or sys.stderr
    renderer: structlog.types.Processor = structlog.processors.JSONRenderer()
    exceptions: list[structlog.types.Processor] = [structlog.processors.format_exc_info]
    if form is LogFormat.CONSOLE:
        renderer, exceptions = (
            structlog.dev.ConsoleRenderer(
                colors=file.isatty(),
                # The one by default shows local variables, and with them what pods are told.
                exception_formatter=structlog.dev.plain_traceback,
            ),
            [],
        )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *exceptions,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(file=file),
        cache_logger_on_first_use=True,
    )
