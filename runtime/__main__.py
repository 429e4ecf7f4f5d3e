"""`python -m pt2wire`, where the command is not on the path."""

from .cli import main

main()
