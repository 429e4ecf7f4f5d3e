"""`python -m pt2wire.codegen`: the same as `pt2wire schema`, also where pt2wire itself cannot run."""

import sys

from .cli import main

sys.exit(main(sys.argv[1:]))
