import pytest
from tally import TALLY


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if TALLY:
        counts = ", ".join(f"{count} {what}" for what, count in sorted(TALLY.items()))
        terminalreporter.write_line(f"simulated: {counts}")
