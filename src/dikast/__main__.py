"""`python -m dikast` is the command `dikast`."""

from dikast.surface.cli import main

if __name__ == "__main__":
    main()
