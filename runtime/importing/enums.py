"""Members of enums: found in classes that are here already."""

from __future__ import annotations

import enum

from ..classes import find_class
from ..errors import DeserializeError
from ..treespecs import EnumMember


def import_enum_member(member: EnumMember, known: tuple[type, ...] = ()) -> enum.Enum:
    """Read a member of an enum that is known or imported already; a file never makes Python import one."""
    found = find_class(member.module, member.qualified_name, known)
    if not isinstance(found, enum.EnumMeta) or member.name not in found.__members__:
        raise DeserializeError(
            f"expected a member of an enum that is imported, found "
            f"{member.module}.{member.qualified_name}.{member.name}"[:300],
            hint=f"Import {member.module[:100]} before loading, or pass the class with types=[...]",
        )
    return found.__members__[member.name]
