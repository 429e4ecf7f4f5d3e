"""Version and revision as tests expect them in messages: of the schema that is generated, whatever it is."""

from __future__ import annotations

from pt2wire.generated import types


def dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


MAJOR, MINOR = types.SCHEMA_VERSION
#: Such as 8.20.
VERSION = dotted(types.SCHEMA_VERSION)
OLDEST = dotted(types.OLDEST_VERSION)
REVISION = types.REVISION
#: How messages about what the codecs do not know end.
NEWER = f"in format {VERSION}, revision {REVISION}; a newer version may have written it"
_major, _minor = types.OLDEST_VERSION
#: A version that is read no more.
OLDER = (_major, _minor - 1) if _minor else (_major - 1, 99)
