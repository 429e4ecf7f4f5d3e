"""What makes two programs the same, or different: canonical form, digests, differences. Needs no torch."""

from .canonical import canonicalize
from .differences import diff
from .digests import check_digest, check_expected, digest
from .parts import Difference

__all__ = ["Difference", "canonicalize", "check_digest", "check_expected", "diff", "digest"]
