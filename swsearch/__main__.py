"""Where the ``swsearch`` command and ``python -m swsearch`` begin."""

import sys


def main() -> None:
    """Run the command line; Ctrl-C is quiet from the first moment on, while modules are still being imported."""
    try:
        from swsearch.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
