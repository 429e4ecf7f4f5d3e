"""Names that a schema cannot use, because a target language or what is generated in it has them for itself.

tests/test_codegen_names.py finds in the generated code what must stand here.
"""

from __future__ import annotations

import builtins
import keyword

from . import cpp
from .macros import APACHE_MACROS, MACROS

#: What Apache's compiler refuses as a name: its own words, and those of languages it generates for.
THRIFT = frozenset(
    """
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
""".split()
)

#: Names of the generated Python modules, and of what those have that import the types.
_PYTHON_MODULES = frozenset(
    """
Any BITS BUILDERS BY_ID BY_NAME C10_NAMES Callable ClassVar CodecError DEEP DepthError FIELD_IDS FieldSpec
IntEnum Iterable KW_ONLY ListOf MAX_INT MAX_JSON_DEPTH MAX_THRIFT_DEPTH MAX_WIDE MIN_INT MIN_WIDE MapOf NEWER
OLDEST_VERSION Path READ REVISION SCHEMA_VERSION Struct Suspect TORCH_NAMES TREESPEC_VERSION Type Union WRITE
Wide WidthError annotations base blank bounds builder check check_keys check_list check_map check_tree cls
collector dataclass expected field fields finish finish_all forget found index item item1 json_codec k k1 key
listed made make member meta name names number o optional own own_fields p partial parts pop read_binary
read_bool read_double read_enum read_int read_list read_map read_str read_wide required room self shown
shown_names slot text thrift_codec tree type_ type_name types unknown unread unset v v1 value values
write_binary write_bool write_double write_int write_list write_map write_str
""".split()
)

#: Attributes of structs in Python, and names within their classes.
_PYTHON_STRUCTS = frozenset(
    """
ClassVar FIELD_IDS KW_ONLY bool bytes dict field float int list mro str
""".split()
)

#: The same of unions.
_PYTHON_UNIONS = frozenset(
    """
ClassVar FIELD_IDS SLOTS become blank bool bytes create dict float int list property staticmethod str type
value
""".split()
)

#: Attributes of enums in Python, of any version.
_PYTHON_ENUMS = frozenset(
    """
as_integer_ratio bit_count bit_length conjugate denominator from_bytes imag mro name numerator real to_bytes
value
""".split()
)

#: Names that the C++ headers declare beside the types.
_CPP_NAMESPACES = frozenset(
    """
Archive ArchiveOptions Arena Binary Box Bytes CompactReader CompactWriter CrcTables Decoder Document
Encoder Entry Error FieldGuard FieldHeader FieldInfo Fields FlatMap Form Indirect ItemGuard JsonReader
JsonSizes JsonString JsonTranscoder KeyGuard LeftOut Limits List ListHeader Map MapHeader MapIndex MemberValue
Owned OwnedBuilder OwnedEntry OwnedOptions Payloads R Record S Sha256 Shape Shapes Span String
ThriftOptions ThriftReader ThriftWriter Trail Traits TranscodedJson TypeInfo Types Union Unknown
Unwrapped ValueInfo Values View ViewBuilder Weight Wire Zip ZipLimits base64_digits basic bits c10_name
constant copy crc32 crc_tables decode_compact decode_json decode_json_owned decode_owned detail
encode_compact equal equal_unions fits from_base64 has_name hash inflate is_ascii is_digit is_indirect
is_json_blank is_list is_map is_optional item_size json_double json_special lacks low_id make_base64_digits
make_crc_tables make_document make_owned make_weight map_file max_depth max_json_depth mix multiply_add
name needed_bytes no_position oldest_version_major oldest_version_minor over_budget owned position_of
pt2wire read_thrift refuse_skipped schema_revision schema_version_major schema_version_minor sha256
sha256_constants thrift_type thrift_types to_owned torch_name treespec_version utf8_sequence
valid_mixed_prefix valid_utf8_prefix why_no_weight wire_name wire_names write_thrift
""".split()
)

#: Names within structs and unions in C++.
_CPP_BODIES = frozenset(
    """
Binary Indirect List Map Member S String Union detail std
""".split()
)

#: What the comparisons of the C++ header call their first argument, which hides a type from the second.
_CPP_PARAMETERS = frozenset({"a"})

#: Constants of the IDL.
_THRIFT_CONSTANTS = frozenset(
    """
OLDEST_VERSION_MAJOR OLDEST_VERSION_MINOR REVISION TREESPEC_VERSION VERSION_MAJOR VERSION_MINOR
""".split()
)

#: Methods of what Apache's compiler makes of a struct.
_THRIFT_METHODS = frozenset(
    """
printTo read validate write
""".split()
)

#: Names in the modules and headers that Apache's compiler makes, which a type would hide there.
_THRIFT_CODE = frozenset(
    """
TApplicationException TException TFrozenDict TMessageType TProtocolException TTransport TType all_structs fid
fix_spec fname ftype int16_t int32_t int64_t iprot oprot sys uint32_t
""".split()
)

#: What keeps headers that Apache's compiler makes from being read twice: macros, too.
_APACHE_GUARDS = frozenset({"schema_CONSTANTS_H", "schema_TYPES_H"})

#: Names that keep what Apache's compiler makes in C++ from compiling: of types, of their members, of values.
APACHE_TYPES = APACHE_MACROS | _APACHE_GUARDS | {"TBase", "out", "swap", "to_string", "tracker", "xfer"}
APACHE_MEMBERS = APACHE_MACROS | _APACHE_GUARDS | {"int16_t", "out", "rhs", "to_string", "uint32_t"}
APACHE_VALUES = APACHE_MACROS | _APACHE_GUARDS | {"type"}

#: Words of the schema language itself: a type so named could not be told from them.
SCHEMA = frozenset({"optional", "list", "map", "bool", "i64", "integer", "double", "string", "binary"})

PYTHON_TYPES = frozenset({*keyword.kwlist, *dir(builtins)}) | _PYTHON_MODULES | _PYTHON_STRUCTS
_PYTHON_WORDS = frozenset(keyword.kwlist)

#: What no name can be in C++.
_CPP_WORDS = cpp.KEYWORDS | MACROS

#: For each kind of name: the languages, and what each takes.
FOR_NAMESPACES = {"Thrift": THRIFT, "C++": _CPP_WORDS | {"std"}}
FOR_TYPES = {
    "Thrift": THRIFT | _THRIFT_CONSTANTS | _THRIFT_METHODS | _THRIFT_CODE,
    "C++": _CPP_WORDS | _CPP_NAMESPACES | _CPP_BODIES | _CPP_PARAMETERS | cpp.UNION_NAMES,
    "Python": PYTHON_TYPES,
    "schema": SCHEMA,
}
FOR_FIELDS = {
    "Thrift": THRIFT | _THRIFT_METHODS,
    "C++": _CPP_WORDS | _CPP_BODIES,
    "Python": _PYTHON_WORDS | _PYTHON_STRUCTS,
}
FOR_MEMBERS = {**FOR_FIELDS, "Python": _PYTHON_WORDS | _PYTHON_UNIONS}
FOR_VALUES = {"Thrift": THRIFT, "C++": _CPP_WORDS, "Python": _PYTHON_WORDS | _PYTHON_ENUMS}
