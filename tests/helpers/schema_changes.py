"""A schema, and for each rule on breaking changes one change of it that it finds and one that it does not."""

from __future__ import annotations

from typing import NamedTuple

from .schemas import MARK, indented

BASE = indented("""\
Kind:
  kind: enum
  since: "8.2"
  doc: Kind.
  values:
    ZERO: {value: 0, torch: zero, bits: 8, doc: Z.}
    ONE: {value: 1, c10: One, doc: O.}
    SIX: {value: 6, doc: S.}
Choice:
  kind: union
  since: "8.2"
  doc: Choice.
  fields:
    as_int: {id: 10, type: i64, doc: I.}
    as_text: {id: 20, type: string, doc: T.}
Thing:
  kind: struct
  since: "8.2"
  doc: Thing.
  reserved: {ids: [70], names: [gone]}
  fields:
    x: {id: 10, type: i64, doc: X.}
    kind: {id: 20, type: Kind, doc: K.}
    choices: {id: 30, type: list<Choice>, doc: C.}
    flag: {id: 40, type: bool, default: false, doc: F.}
    zero: {id: 80, type: double, default: 0.0, doc: Z.}
    shade: {id: 90, type: Kind, default: SIX, doc: S.}
    note: {id: 50, type: optional string, default: null, doc: N.}
    mine: {id: 1000, type: optional i64, since_revision: 1, default: null, doc: M.}
Own:
  kind: struct
  since_revision: 1
  doc: Own.
  fields:
    y: {id: 10, type: i64, doc: Y.}
""")
LOG = '  - {version: "8.20", torch: "2.12.0", note: First.}\n'
#: Of a version that PyTorch raised and changed no type.
ALONE = LOG.replace("8.20", "8.21").replace("First.", "No addition.")


class Pair(NamedTuple):
    """A rule, the change that it finds (old text: new, with a mark where), one that is fine, the message."""

    rule: str
    bad: dict[str, str]
    good: dict[str, str]
    message: str


MINOR = {'version: "8.20"\n': 'version: "8.21"\n', LOG: LOG + LOG.replace("8.20", "8.21")}
MAJOR = {
    'version: "8.20"\n': 'version: "9.0"\n',
    'oldest_version: "8.2"': 'oldest_version: "9.0"',
    LOG: LOG + LOG.replace("8.20", "9.0"),
}
REVISION = {"revision: 1\n": "revision: 2\n"}
KIND = BASE[BASE.index("  Kind:") : BASE.index("  Choice:")]
CHOICE = BASE[BASE.index("  Choice:") : BASE.index("  Thing:")]
OWN = BASE[BASE.index("  Own:") :]
THING = "  Thing:\n"
FLAG = "      flag: {id: 40, type: bool, default: false, doc: F.}\n"
NOTE = "note: {id: 50, type: optional string, default: null, doc: N.}\n"
NEW = 'new: {id: 60, type: optional i64, since: "8.21", default: null, doc: N.}\n'
AS_INT = "      as_int: {id: 10, type: i64, doc: I.}\n"
AS_TEXT = "      as_text: {id: 20, type: string, doc: T.}\n"
NEW_OWN = "new: {id: 1001, type: optional i64, since_revision: 2, default: null, doc: N.}\n"
MINE = "mine: {id: 1000, type: optional i64, since_revision: 1, default: null, doc: M.}\n"
#: JSON may hold longer integers than before, in a field of PyTorch's and in one of ours.
WIDENED = {"x: {id: 10, type: i64": "x: {id: 10, type: integer"}
OWN_WIDENED = {MINE: MINE.replace("i64", "integer")}
#: PyTorch adopts the names of a field and a type of ours, which go on under others.
ADOPTED = MINOR | {
    MINE: f'mine: {{id: 60, type: optional string, since: "8.21", default: null, doc: M.}}\n      own_{MINE}',
    OWN: OWN.replace("  Own:", "  Ours:") + OWN.replace("since_revision: 1", 'since: "8.21"'),
}


#: A type of one version, with a field of the next.
LATER_TYPE = {
    'version: "8.20"\n': 'version: "8.22"\n',
    LOG: LOG + LOG.replace("8.20", "8.21") + LOG.replace("8.20", "8.22"),
}
LATER = """\
  Extra:
    kind: struct
    since: "8.21"
    doc: E.
    fields:
      x: {id: 10, type: i64, doc: X.}
      is: y, since: "8.22", doc: Y.}
"""


def added(line: str, after: str = NOTE) -> dict[str, str]:
    return {after: after + "      " + line}


PAIRS = [
    Pair("type-removed", {OWN: "", "types:\n": f"{MARK}types:\n"}, {}, "struct `Own` was removed"),
    Pair(
        "type-removed",
        {CHOICE: "", "list<Choice>": "list<i64>", "types:\n": f"{MARK}types:\n"},
        MAJOR | {CHOICE: "", "list<Choice>": "list<i64>"},
        "union `Choice` was removed",
    ),
    Pair(
        "kind-changed",
        {CHOICE: CHOICE.replace("  Choice", f"  {MARK}Choice").replace("union", "struct")},
        MAJOR | {CHOICE: CHOICE.replace("union", "struct")},
        "`Choice` was a union and is a struct",
    ),
    Pair(
        "field-removed",
        {FLAG: "", THING: f"  {MARK}Thing:\n"},
        MAJOR | {FLAG: ""},
        "field `Thing.flag` (id 40) was removed",
    ),
    Pair(
        "member-removed",
        {"      as_text: {id: 20, type: string, doc: T.}\n": "", "  Choice:": f"  {MARK}Choice:"},
        MAJOR | {"      as_text: {id: 20, type: string, doc: T.}\n": ""},
        "union member `Choice.as_text` (id 20) was removed",
    ),
    Pair(
        "value-removed",
        {"      ONE: {value: 1, c10: One, doc: O.}\n": "", "  Kind:": f"  {MARK}Kind:"},
        MAJOR | {"      ONE: {value: 1, c10: One, doc: O.}\n": ""},
        "enum value `Kind.ONE` (value 1) was removed",
    ),
    Pair(
        "id-changed",
        {"x: {id: 10": f"{MARK}x: {{id: 60"},
        MAJOR | {"x: {id: 10": "x: {id: 60"},
        "the id of `Thing.x` was 10 and is 60",
    ),
    Pair(
        "id-changed",
        {"as_text: {id: 20": f"{MARK}as_text: {{id: 30"},
        MAJOR | {"as_text: {id: 20": "as_text: {id: 30"},
        "the id of `Choice.as_text` was 20 and is 30",
    ),
    Pair(
        "id-changed",
        {"mine: {id: 1000": f"{MARK}mine: {{id: 1001"},
        MAJOR | {"mine: {id: 1000": "mine: {id: 1001"},
        "the id of `Thing.mine` was 1000 and is 1001",
    ),
    Pair(
        "value-changed",
        {"ONE: {value: 1": f"{MARK}ONE: {{value: 2"},
        MAJOR | {"ONE: {value: 1": "ONE: {value: 2"},
        "the value of `Kind.ONE` was 1 and is 2",
    ),
    Pair(
        "id-reused",
        MAJOR | {NOTE: f"{MARK}remark: {{id: 50, type: optional i64, default: null, doc: R.}}\n"},
        {NOTE: NOTE + '      remark: {id: 60, type: optional i64, since: "8.21", default: null, doc: R.}\n'},
        "`Thing.remark` takes the id 50 of `note`",
    ),
    Pair(
        "id-reused",
        MAJOR | {NOTE: f"{MARK}remark: {{id: 50, type: i64, default: 0, doc: R.}}\n"},
        MAJOR
        | {NOTE: "remark: {id: 50, type: i64, default: 0, doc: R.}\n"}
        | {"ids: [70], names: [gone]": "ids: [70, 50], names: [gone, note], returned: [remark]"},
        "`Thing.remark` takes the id 50 of `note`",
    ),
    Pair(
        "id-reused",
        {"as_int: {id: 10": f"{MARK}as_int: {{id: 20", "as_text: {id: 20": "as_text: {id: 30"},
        MAJOR | {"as_int: {id: 10": "as_int: {id: 40", "as_text: {id: 20": "as_text: {id: 30"},
        "`Choice.as_int` takes the id 20 of `as_text`",
    ),
    Pair(
        "reserved-dropped",
        {"ids: [70]": "ids: []", NOTE: NOTE + f"      {MARK}" + NEW.replace("60", "70")},
        {NOTE: NOTE + "      " + NEW},
        "`70` is no longer reserved in `Thing`",
    ),
    Pair(
        "reserved-dropped",
        MINOR | {"names: [gone]": "names: []", NOTE: NOTE + f"      {MARK}" + NEW.replace("new", "gone")},
        MINOR
        | {"names: [gone]": "names: [gone], returned: [gone]"}
        | {NOTE: NOTE + "      " + NEW.replace("new", "gone")},
        "`gone` is no longer reserved in `Thing`",
    ),
    Pair(
        "reserved-dropped",
        MAJOR | {"ids: [70]": "ids: []", NOTE: NOTE + f"      {MARK}" + NEW.replace("60", "70")},
        MAJOR | {"ids: [70]": "ids: [70, 71]"},
        "`70` is no longer reserved in `Thing`",
    ),
    Pair(
        "reserved-dropped",
        {"names: [gone]": "names: []", THING: f"  {MARK}Thing:\n"},
        {"names: [gone]": "names: [gone, more]"},
        "`gone` is no longer reserved in `Thing`",
    ),
    Pair(
        "type-changed",
        {"x: {id: 10, type: i64": f"{MARK}x: {{id: 10, type: double"},
        MAJOR | {"x: {id: 10, type: i64": "x: {id: 10, type: double"},
        "the type of `Thing.x` was i64 and is double",
    ),
    Pair(
        "type-changed",
        {"choices: {id: 30, type: list<Choice>": f"{MARK}choices: {{id: 30, type: list<list<Choice>>"},
        {"list<Choice>": "list<Pick>", "  Choice:": "  Pick:"},
        "the type of `Thing.choices` was list<Choice> and is list<list<Choice>>",
    ),
    Pair(
        "required-added",
        {FLAG: f'      {MARK}new: {{id: 60, type: i64, since: "8.21", doc: N.}}\n' + FLAG},
        added(NEW),
        "`Thing.new` is new and has no default",
    ),
    Pair(
        "required-added",
        LATER_TYPE | {"types:\n": "types:\n" + LATER.replace("is: y", f"{MARK}y: {{id: 20, type: i64")},
        LATER_TYPE
        | {"types:\n": "types:\n" + LATER.replace("is: y", "y: {id: 20, type: optional i64, default: null")},
        "`Extra.y` is new and has no default",
    ),
    Pair(
        "made-required",
        {f"      {NOTE}": "", FLAG: f"      {MARK}note: {{id: 50, type: string, doc: N.}}\n" + FLAG},
        {NOTE: NOTE.replace("doc: N.", "doc: Another.")},
        "`Thing.note` was `optional` and no longer is",
    ),
    Pair(
        "made-required",
        {FLAG: "      " + MARK + FLAG.strip().replace("default: false, ", "") + "\n"},
        MAJOR | {"default: false, ": ""},
        "`Thing.flag` was with a default and no longer is",
    ),
    Pair(
        "made-optional",
        {
            "      x: {id: 10, type: i64, doc: X.}\n": "",
            NOTE: NOTE + f"      {MARK}x: {{id: 10, type: optional i64, default: null, doc: X.}}\n",
        },
        {},
        "`Thing.x` is `optional` now",
    ),
    Pair(
        "made-optional",
        {"y: {id: 10, type: i64,": f"{MARK}y: {{id: 10, type: i64, default: 0,"},
        {"y: {id: 10, type: i64, doc: Y.}": "y: {id: 10, type: i64, doc: Why.}"},
        "`Own.y` has a default now",
    ),
    Pair(
        "made-optional",
        {
            FLAG: "",
            NOTE: NOTE + f"      {MARK}flag: {{id: 40, type: optional bool, default: null, doc: F.}}\n",
        },
        {"doc: F.": "doc: Flag."},
        "`Thing.flag` is `optional` now: older readers see false in files that lack it",
    ),
    Pair(
        "default-changed",
        {FLAG: f"      {MARK}flagged: {{id: 40, type: bool, default: true, doc: F.}}\n"},
        {"doc: F.": "doc: Flag."},
        "the default of `Thing.flagged` was false and is true",
    ),
    Pair(
        "argument-added",
        {FLAG: f'      {MARK}new: {{id: 60, type: optional i64, since: "8.21", doc: N.}}\n' + FLAG},
        added(NEW),
        "`Thing.new` is new and has to be given",
    ),
    Pair(
        "argument-added",
        {
            f"      {NOTE}": "",
            FLAG: f"      {MARK}note: {{id: 50, type: optional string, doc: N.}}\n" + FLAG,
        },
        {NOTE: NOTE.replace("doc: N.", "doc: Another.")},
        "`Thing.note` has to be given now: it has lost its default",
    ),
    Pair(
        "default-changed",
        {"flag: {id: 40, type: bool, default: false": f"{MARK}flag: {{id: 40, type: bool, default: true"},
        MAJOR | {"default: false": "default: true"},
        "the default of `Thing.flag` was false and is true",
    ),
    Pair(
        "default-changed",
        {"zero: {id: 80, type: double, default: 0.0": f"{MARK}zero: {{id: 80, type: double, default: -0.0"},
        {"default: 0.0": "default: 0"},
        "the default of `Thing.zero` was `0.0` and is `-0.0`",
    ),
    Pair(
        "default-changed",
        {"shade: {id: 90, type: Kind, default: SIX": f"{MARK}shade: {{id: 90, type: Kind, default: ZERO"},
        # What names the value may be renamed: the number that it stands for is the same.
        {"SIX: {value: 6": "SEI: {value: 6", "default: SIX": "default: SEI"},
        "the default of `Thing.shade` was `SIX` and is `ZERO`",
    ),
    Pair(
        "default-changed",
        {
            "default: SIX": "default: UNO",
            "shade: {id: 90": f"{MARK}shade: {{id: 90",
            "ZERO: {value: 0": "UNO: {value: 0",
        },
        {
            "  Kind:": "  Sort:",
            "type: Kind, doc": "type: Sort, doc",
            "type: Kind, default": "type: Sort, default",
        },
        "the default of `Thing.shade` was `SIX` and is `UNO`",
    ),
    Pair(
        "mapping-changed",
        {"ZERO: {value: 0, torch: zero": f"{MARK}ZERO: {{value: 0, torch: nil"},
        {"ZERO: {value: 0, torch: zero": "ZERO: {value: 0, torch: zero, c10: Zero"},
        "`Kind.ZERO` stood for `torch: zero` and stands for `nil`",
    ),
    Pair(
        "mapping-changed",
        {"ONE: {value: 1, c10: One": f"{MARK}ONE: {{value: 1"},
        {"ONE: {value: 1": "ONE: {value: 1, torch: one"},
        "`Kind.ONE` stood for `c10: One` and stands for nothing",
    ),
    Pair(
        "bits-changed",
        {"ZERO: {value: 0, torch: zero, bits: 8": f"{MARK}ZERO: {{value: 0, torch: zero, bits: 16"},
        {"ONE: {value: 1,": "ONE: {value: 1, bits: 16,"},
        "`Kind.ZERO` had `bits: 8` and has 16",
    ),
    Pair(
        "bits-changed",
        {"ZERO: {value: 0, torch: zero, bits: 8": f"{MARK}ZERO: {{value: 0, torch: zero"},
        {"bits: 8": "bits: 8, c10: Zero"},
        "`Kind.ZERO` had `bits: 8` and has none",
    ),
    Pair(
        "owner-changed",
        {
            "mine: {id: 1000": f"{MARK}mine: {{id: 1000",
            "since_revision: 1, default: null, doc: M.": 'since: "8.2", default: null, doc: M.',
        },
        {},
        "`Thing.mine` was an extension and is the format's own",
    ),
    Pair(
        "owner-changed",
        {OWN: OWN.replace("  Own:", f"  {MARK}Own:").replace("since_revision: 1", 'since: "8.2"')},
        {},
        "`Own` was an extension and is the format's own",
    ),
    Pair(
        "field-renamed",
        {"x: {id: 10": f"{MARK}z: {{id: 10"},
        MAJOR | {"x: {id: 10": "z: {id: 10"},
        "field `Thing.x` was renamed to `z`",
    ),
    Pair(
        "field-renamed",
        {"as_int: {id: 10": f"{MARK}as_number: {{id: 10"},
        MAJOR | {"as_int: {id: 10": "as_number: {id: 10"},
        "union member `Choice.as_int` was renamed to `as_number`",
    ),
    Pair(
        "type-renamed",
        {"  Choice:": f"  {MARK}Pick:", "list<Choice>": "list<Pick>"},
        MAJOR | {"  Choice:": "  Pick:", "list<Choice>": "list<Pick>"},
        "`Choice` was renamed to `Pick`",
    ),
    Pair(
        "type-renamed",
        {"  Own:": f"  {MARK}Ours:"},
        ADOPTED | REVISION,
        "`Own` was renamed to `Ours`",
    ),
    Pair(
        "field-renamed",
        {"mine: {id: 1000": f"{MARK}own_mine: {{id: 1000"},
        ADOPTED | REVISION,
        "field `Thing.mine` was renamed to `own_mine`",
    ),
    Pair(
        "value-renamed",
        {"ONE: {value: 1": f"{MARK}UNO: {{value: 1"},
        MAJOR | {"ONE: {value: 1": "UNO: {value: 1"},
        "enum value `Kind.ONE` was renamed to `UNO`",
    ),
    Pair(
        "order-changed",
        {FLAG: "", NOTE: NOTE + f"      {MARK}" + FLAG.strip() + "\n"},
        added(NEW),
        "`Thing.flag` moved behind fields that it stood before",
    ),
    Pair(
        "order-changed",
        {FLAG: FLAG + f"      {MARK}{NEW}"},
        # Our own go by name, so PyTorch's may grow before them.
        added(NEW),
        "`Thing.new` is new and stands before `zero`",
    ),
    Pair(
        "order-changed",
        {
            OWN: OWN.replace(
                "      y:", f"      {MARK}new: {{id: 20, type: i64, default: 0, doc: N.}}\n      y:"
            )
        },
        {OWN: OWN + "      new: {id: 20, type: i64, default: 0, doc: N.}\n"},
        "`Own.new` is new and stands before `y`",
    ),
    Pair(
        "order-changed",
        {"x: {id: 10": "z: {id: 10", FLAG: "", NOTE: NOTE + f"      {MARK}" + FLAG.strip() + "\n"},
        # Members of a union have no order to rely on, whatever they are called.
        {AS_INT: "", AS_TEXT: AS_TEXT + AS_INT},
        "`Thing.flag` moved behind fields that it stood before",
    ),
    Pair(
        "version-low",
        added(NEW) | {'version: "8.20"\n': f'{MARK}version: "8.20"\n'},
        added(NEW) | MINOR,
        "`version` is 8.20 as before, which is too low for additions to the format: `Thing.new`",
    ),
    Pair(
        "version-low",
        {FLAG: ""} | MINOR | {'version: "8.20"\n': f'{MARK}version: "8.21"\n'},
        {FLAG: ""} | MAJOR,
        "`version` is 8.21, after 8.20, which is too low for breaking changes of the format: 1",
    ),
    Pair(
        "version-low",
        WIDENED | {'version: "8.20"\n': f'{MARK}version: "8.20"\n'},
        WIDENED | MINOR,
        "`version` is 8.20 as before, which is too low for additions to the format: `Thing.x`",
    ),
    Pair(
        "version-idle",
        MINOR | {'version: "8.20"\n': f'{MARK}version: "8.21"\n'},
        MINOR | added(NEW),
        "`version` was 8.20 and is 8.21, but no change of the format came",
    ),
    Pair(
        "version-idle",
        {'version: "8.20"\n': f'{MARK}version: "8.22"\n', LOG: LOG + ALONE + LOG.replace("8.20", "8.22")},
        {'version: "8.20"\n': 'version: "8.21"\n', LOG: LOG + ALONE},
        "`version` was 8.20 and is 8.22, but no change of the format came",
    ),
    Pair(
        "version-idle",
        MAJOR | added(NEW) | {'version: "8.20"\n': f'{MARK}version: "9.0"\n'},
        MINOR | added(NEW),
        "the major version was 8 and is 9, but no change breaks",
    ),
    Pair(
        "version-skips",
        added(NEW)
        | {'version: "8.20"\n': f'{MARK}version: "8.27"\n', LOG: LOG + LOG.replace("8.20", "8.27")},
        added(NEW) | {'version: "8.20"\n': 'version: "8.22"\n', LOG: LOG + ALONE.replace("8.21", "8.22")},
        "`version` was 8.20 and is 8.27, and nothing tells of 8.22",
    ),
    Pair(
        "version-skips",
        added(NEW)
        | {'version: "8.20"\n': f'{MARK}version: "8.22"\n', LOG: LOG + LOG.replace("8.20", "8.22")},
        added(NEW.replace("8.21", "8.22"))
        | {'version: "8.20"\n': 'version: "8.22"\n', LOG: LOG + ALONE + LOG.replace("8.20", "8.22")},
        "`version` was 8.20 and is 8.22, but nothing came with 8.22",
    ),
    Pair(
        "version-skips",
        MAJOR | {'version: "8.20"\n': f'{MARK}version: "9.2"\n'},
        MAJOR | {'version: "8.20"\n': 'version: "9.1"\n'},
        "`version` was 8.20 and is 9.2, and nothing tells of 9.1",
    ),
    Pair(
        "version-skips",
        MAJOR | {'version: "8.20"\n': f'{MARK}version: "11.0"\n'},
        MAJOR,
        "`version` was 8.20 and is 11.0, and nothing tells of 10.0",
    ),
    Pair(
        "version-lowered",
        {'version: "8.20"\n': f'{MARK}version: "2.25"\n', LOG: LOG.replace("8.20", "2.25")},
        {},
        "`version` was 8.20 and is 2.25",
    ),
    Pair(
        "version-lowered",
        {'version: "8.20"\n': f'{MARK}version: "8.19"\n', LOG: LOG.replace("8.20", "8.19")},
        {},
        "`version` was 8.20 and is 8.19",
    ),
    Pair(
        "oldest-lowered",
        {'oldest_version: "8.2"': f'{MARK}oldest_version: "8.1"'},
        MAJOR,
        "`oldest_version` was 8.2 and is 8.1",
    ),
    Pair(
        "oldest-raised",
        {'oldest_version: "8.2"': f'{MARK}oldest_version: "8.3"'},
        MAJOR,
        "`oldest_version` was 8.2 and is 8.3",
    ),
    Pair(
        "treespec-changed",
        {"treespec_version: 1": f"{MARK}treespec_version: 2"},
        MAJOR | {"treespec_version: 1": "treespec_version: 2"},
        "`treespec_version` was 1 and is 2",
    ),
    Pair(
        "revision-low",
        added(NEW_OWN) | {"revision: 1\n": f"{MARK}revision: 1\n"},
        added(NEW_OWN) | REVISION,
        "`revision` is 1 as before, in spite of new extensions: `Thing.new`",
    ),
    Pair(
        "revision-low",
        ADOPTED | {"revision: 1\n": f"{MARK}revision: 1\n"},
        ADOPTED | REVISION,
        "`revision` is 1 as before, in spite of new extensions: `Thing.own_mine`",
    ),
    Pair(
        "revision-low",
        OWN_WIDENED | {"revision: 1\n": f"{MARK}revision: 1\n"},
        OWN_WIDENED | REVISION,
        "`revision` is 1 as before, in spite of new extensions: `Thing.mine`",
    ),
    Pair(
        "revision-idle",
        {"revision: 1\n": f"{MARK}revision: 2\n"},
        REVISION | added(NEW_OWN),
        "`revision` was 1 and is 2, but no extension changed",
    ),
    Pair(
        "revision-skips",
        added(NEW_OWN) | {"revision: 1\n": f"{MARK}revision: 9\n"},
        added(
            NEW_OWN + "      " + NEW_OWN.replace("new", "newer").replace("1001", "1002").replace("2,", "3,")
        )
        | {"revision: 1\n": "revision: 3\n"},
        "`revision` was 1 and is 9, but nothing came with 3",
    ),
    Pair(
        "revision-skips",
        added(NEW_OWN) | {"revision: 1\n": f"{MARK}revision: 3\n"},
        added(NEW_OWN) | REVISION,
        "`revision` was 1 and is 3, but nothing came with 3",
    ),
    Pair("revision-lowered", {"revision: 1\n": f"{MARK}revision: 0\n"}, {}, "`revision` was 1 and is 0"),
    Pair(
        "since-backdated",
        added(MARK + NEW.replace(' since: "8.21",', "")) | MINOR,
        added(NEW) | MINOR,
        "`Thing.new` is new, but `since` 8.2",
    ),
    Pair(
        "since-backdated",
        added(MARK + NEW_OWN.replace("since_revision: 2", "since_revision: 1")) | REVISION,
        added(NEW_OWN) | REVISION,
        "`Thing.new` is new, but since revision 1",
    ),
    Pair(
        "since-rewritten",
        {"x: {id: 10, type: i64,": f'{MARK}x: {{id: 10, type: i64, since: "8.3",'},
        {"x: {id: 10, type: i64,": 'x: {id: 10, type: i64, since: "8.2",'},
        "`Thing.x` was there since 8.2, and now since 8.3",
    ),
    Pair(
        "since-rewritten",
        {CHOICE: CHOICE.replace("  Choice", f"  {MARK}Choice").replace('"8.2"', '"8.1"')},
        {CHOICE: CHOICE.replace("doc: I.", 'since: "8.2", doc: I.')},
        "`Choice` was there since 8.2, and now since 8.1",
    ),
    Pair(
        "removed-unreserved",
        {FLAG: "", THING: f"  {MARK}Thing:\n"} | MAJOR,
        {FLAG: "", "ids: [70], names: [gone]": "ids: [70, 40], names: [gone, flag]"} | MAJOR,
        "`Thing.flag` has gone and is not reserved",
    ),
    Pair(
        "removed-unreserved",
        {THING: f"  {MARK}Thing:\n", "flag: {id: 40": "flag: {id: 60"} | MAJOR,
        {"flag: {id: 40": "flag: {id: 60", "ids: [70]": "ids: [70, 40]"} | MAJOR,
        "the id 40 of `Thing.flag` has gone and is not reserved",
    ),
    Pair(
        "removed-unreserved",
        {THING: f"  {MARK}Thing:\n", "flag: {id: 40": "sign: {id: 40"} | MAJOR,
        {"flag: {id: 40": "sign: {id: 40", "names: [gone]": "names: [gone, flag]"} | MAJOR,
        "the name of `Thing.flag` has gone and is not reserved",
    ),
    Pair(
        "log-rewritten",
        {"log:\n" + LOG: f"{MARK}log:\n{LOG.replace('2.12.0', '2.11.0')}"},
        {"log:\n" + LOG: "log:\n" + LOG + LOG.replace("2.12.0", "2.13.0")},
        "the log has lost its line for 8.20, written by torch 2.12.0",
    ),
    Pair(
        "log-rewritten",
        {LOG: LOG.replace("  - {", f"  - {MARK}{{").replace("First.", "No addition.")},
        {LOG: LOG.replace("First.", "The first.")},
        "the log noted `First.` of 8.20, and now `No addition.`",
    ),
    Pair("namespace-changed", {"name: sample": f"{MARK}name: other"}, {}, "`name` was sample and is other"),
]


def changed(changes: dict[str, str]) -> str:
    """The base schema after changes of its text."""
    text = BASE
    for old, new in changes.items():
        assert text.count(old) >= 1, f"{old!r} is not there"
        text = text.replace(old, new, 1)
    return text


#: Two types that are alike, and the same two under other names.
TWINS = CHOICE + CHOICE.replace("  Choice", "  Option")
RENAMED_TWINS = TWINS.replace("  Choice", "  Pick").replace("  Option", "  Take")

#: Changes that come with all that they demand.
MENDED = {
    "nothing": {},
    "docs": {"doc: X.": "doc: Another text."},
    "an own field with its revision": added(NEW_OWN) | REVISION,
    "a field, a member and a value with a minor version": added(NEW)
    | MINOR
    | {
        "      as_text: {id: 20, type: string, doc: T.}\n": "      as_text: {id: 20, type: string, doc: T.}\n"
        '      as_bool: {id: 30, type: bool, since: "8.21", doc: B.}\n',
        "      ONE: {value: 1, c10: One, doc: O.}\n": "      ONE: {value: 1, c10: One, doc: O.}\n"
        '      TWO: {value: 2, since: "8.21", doc: T.}\n',
    },
    "an addition, then longer integers in JSON, each with its number": added(
        NEW + "      " + NEW_OWN.replace("new:", "newer:")
    )
    | WIDENED
    | OWN_WIDENED
    | {
        "revision: 1\n": "revision: 3\n",
        'version: "8.20"\n': 'version: "8.22"\n',
        LOG: LOG + LOG.replace("8.20", "8.21") + LOG.replace("8.20", "8.22"),
    },
    "longer integers in JSON, with both numbers": WIDENED | OWN_WIDENED | MINOR | REVISION,
    "names of ours that PyTorch adopts, with both numbers": ADOPTED | REVISION,
    "what was reserved and comes back, said so": MINOR
    | {"names: [gone]": "names: [gone], returned: [gone]"}
    | {NOTE: NOTE + '      gone: {id: 70, type: optional i64, since: "8.21", default: null, doc: G.}\n'},
    "anything, reserved, with a major version": MAJOR
    | {FLAG: "", "x: {id: 10, type: i64": "x: {id: 10, type: double"}
    | {"ids: [70], names: [gone]": "ids: [70, 40], names: [gone, flag]"},
    "what came after the base and has gone again, with a major version": MAJOR
    | {LOG: LOG + LOG.replace("8.20", "8.21") + LOG.replace("8.20", "9.0"), "ids: [70]": "ids: [70, 60]"},
    "an extension that came after the base and has gone again, with a major version": MAJOR
    | REVISION
    | {"x: {id: 10, type: i64": "x: {id: 10, type: double", "ids: [70]": "ids: [70, 1001]"},
    "an extension that gave way to PyTorch after its revision, and another one": added(
        NEW_OWN.replace("new:", "ours:")
        + "      "
        + NEW_OWN.replace("new:", "more:")
        .replace("1001", "1002")
        .replace("since_revision: 2", "since_revision: 4")
        + "      "
        + NEW
    )
    | MINOR
    | {"revision: 1\n": "revision: 4\n"},
    "a meaning that changed, as the log says, and an addition, with a major version": MAJOR
    | {LOG: LOG + LOG.replace("8.20", "9.0").replace("First.", "Changes what Thing.x means. Adds Thing.new.")}
    | added(NEW.replace("8.21", "9.0")),
    "another form of tree specs alone, with a major version": MAJOR
    | {"treespec_version: 1": "treespec_version: 2"},
    "a new type with a minor version": MINOR
    | {
        "types:\n": "types:\n"
        + CHOICE.replace("Choice", "Pick").replace("8.2", "8.21").replace("id: 10", "id: 11")
    },
    "a new type, and a member of it, each with its minor version": {
        'version: "8.20"\n': 'version: "8.22"\n',
        LOG: LOG + LOG.replace("8.20", "8.21") + LOG.replace("8.20", "8.22"),
        "types:\n": "types:\n"
        + CHOICE.replace("Choice", "Pick").replace("8.2", "8.21")
        + '      as_real: {id: 30, type: double, since: "8.22", doc: R.}\n',
    },
    "an own type, and a field of it, each with its revision": {
        "revision: 1\n": "revision: 3\n",
        "types:\n": "types:\n"
        + OWN.replace("  Own:", "  Extra:").replace("since_revision: 1", "since_revision: 2").rstrip("\n")
        + "\n      later: {id: 900, type: optional i64, since_revision: 3, default: null, doc: L.}\n",
    },
}
