"""What commands say to people, beside their output."""

import typer

MOST_LINES = 20


def warn(line: str) -> None:
    typer.echo(f"warning: {line}", err=True)


def complaint(*lines: str) -> typer.Exit:
    """To be raised: bad input, said in lines that name it and the remedy."""
    for line in lines[:MOST_LINES]:
        typer.echo(f"error: {line}", err=True)
    if more := lines[MOST_LINES:]:
        typer.echo(f"error: and {len(more)} more", err=True)
    return typer.Exit(2)
