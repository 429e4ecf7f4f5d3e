"""Names that a schema cannot use, because a target language has them for itself."""

from __future__ import annotations

from . import cpp, python

_THRIFT_WORDS = """
BEGIN END __CLASS__ __DIR__ __FILE__ __FUNCTION__ __LINE__ __METHOD__ __NAMESPACE__ abstract alias and
args as assert async begin binary bool break byte case catch class clone const continue cpp_include
cpp_namespace cpp_type declare def default del delete do double dynamic elif else elseif elsif end
enddeclare endfor endforeach endif endswitch endwhile ensure enum except exception exec extends false
finally float for foreach from function global goto i16 i32 i64 i8 if implements import in include inline
instanceof interface is java_package lambda list map module namespace native new next nil not oneway
optional or package pass perl_package php_namespace print private protected public py_module raise redo
register required rescue retry return ruby_namespace self senum service set sizeof slist
smalltalk_category smalltalk_prefix static string struct super switch synchronized then this throw throws
transient true try typedef undef union unless unsigned until use uuid var virtual void volatile when while
with xor xsd_all xsd_attrs xsd_namespace xsd_nillable xsd_optional yield
"""

#: What Apache's compiler refuses as a name: its own words, and those of languages it generates for.
THRIFT = frozenset(_THRIFT_WORDS.split())

#: Words of the schema language itself: a type so named could not be told from them.
SCHEMA = frozenset({"optional", "list", "map", "bool", "i64", "double", "string", "binary"})

_EVERYWHERE = {"Thrift": THRIFT, "C++": cpp.KEYWORDS, "Python": python.RESERVED_FIELD_NAMES}

#: For each kind of name: the languages, and what each takes.
FOR_TYPES = {
    **_EVERYWHERE,
    "Python": python.RESERVED_TYPE_NAMES | python.RESERVED_FIELD_NAMES,
    "schema": SCHEMA,
}
FOR_FIELDS = _EVERYWHERE
FOR_MEMBERS = {**_EVERYWHERE, "Python": python.RESERVED_MEMBER_NAMES}
FOR_VALUES = {**_EVERYWHERE, "Python": python.RESERVED_FIELD_NAMES | {"name", "value", "mro"}}
