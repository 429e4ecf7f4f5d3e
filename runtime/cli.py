"""The command `pt2wire`: parses arguments and prints; what it prints is made elsewhere. Needs no torch.

Exit codes: 0 fine, 1 findings or differences, 2 failure, wrong usage included. Failures are one line on
stderr; the option --debug before the command, or PT2WIRE_DEBUG=1 in the environment, shows the traceback.
"""

from __future__ import annotations

import dataclasses
import importlib
import io
import itertools
import json
import os
import re
import sys
import warnings
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from . import locating
from .comparing import diff
from .converting import convert
from .errors import Pt2WireError, plain
from .generated.types import REVISION, SCHEMA_VERSION
from .inspecting import ProgramSummary, ValueSummary, summarize_archive
from .program_files import FileFormat, read_programs, validate_programs
from .validation import RULES
from .version import __version__

FINE, FINDINGS, FAILURE = 0, 1, 2

# typer does not export the class that all errors of wrong usage have in common.
_UsageProblem: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")

app = typer.Typer(
    help="Exported PyTorch programs as data: look at them, check them, compare them, convert them.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
_terminal = Console(highlight=False)

_FILE_HELP = "A .pt2 archive, or a program as JSON or Thrift."
_File = Annotated[str, typer.Argument(metavar="FILE", help=_FILE_HELP)]
_NAME_HELP = "Which program of an archive; of a JSON or Thrift file, what to call its program."
_Name = Annotated[str | None, typer.Option("--name", help=_NAME_HELP)]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs to read.")]


def main() -> None:
    """The entry point: runs one command and leaves with its exit code."""
    if sys.stderr is None:  # and print would take the other stream
        sys.stderr = io.StringIO()
    if sys.stdout is None:  # closed by whoever started this process, so that there is nobody to answer
        sys.exit(_fail("standard output is closed"))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # names may hold what the locale cannot spell
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Runs one command.

    Args:
        arguments: What stands behind `pt2wire` on the command line.

    Returns:
        The exit code.
    """
    options = itertools.takewhile(lambda argument: argument.startswith("-"), arguments)
    debug = os.environ.get("PT2WIRE_DEBUG", "") not in ("", "0") or "--debug" in options
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            if arguments[:1] == ["schema"]:
                return _schema(list(arguments[1:]))  # past typer, which would drop a `--`
            code = app(list(arguments), standalone_mode=False, prog_name="pt2wire")
            _write("", flush=True)
        return code if isinstance(code, int) else FINE
    except _UsageProblem as error:
        message = error.format_message()
        # There is no message where help was shown, as without any arguments.
        return _fail(f"{message} (see --help)") if message else FAILURE
    except SystemExit as error:
        # So typer says that nobody reads its help any more.
        if not isinstance(error.__context__, BrokenPipeError):
            raise
        _discard_output()
        return FINE
    except Pt2WireError as error:
        if debug:
            raise
        error.hint = error.hint and _in_options(error.hint)
        return _fail(str(error))
    except OSError as error:
        if debug:
            raise
        return _fail(str(error) if error.filename is None else f"{error.filename}: {error.strerror}")
    except ModuleNotFoundError as error:
        if debug:
            raise
        return _fail(f"this needs the Python package of {error.name}, which is not installed: see README.md")
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted")
    except Exception as error:
        if debug:
            raise
        return _fail(f"internal error: {type(error).__name__}: {error} (PT2WIRE_DEBUG=1 shows where)")


def _fail(message: str) -> int:
    print(f"pt2wire: {plain(message)}", file=sys.stderr)
    return FAILURE


#: Hints name arguments of functions and statements; whoever types has these instead.
_OPTIONS = {
    "to_format=": "--to ",
    "drop_unknown=True": "--drop-unknown",
    "allow_unsound=True": "--allow-unsound",
    "name=": "--name ",
    "`import ": "`--import ",
}


def _in_options(hint: str) -> str:
    for argument, option in _OPTIONS.items():
        hint = re.sub(rf"(?<!\w){re.escape(argument)}", option, hint)
    return hint


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"pt2wire: {plain(str(message))}", file=sys.stderr)


def _version(wanted: bool) -> None:
    if wanted:
        version = "{}.{}".format(*SCHEMA_VERSION)
        _print(f"pt2wire {__version__} (export format {version}, revision {REVISION})")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show tracebacks of failures. Stands before the command.")
    ] = False,
) -> None:
    pass


@app.command(name="inspect")
def inspect_command(
    file: _File,
    as_json: _Json = False,
    weights: Annotated[bool, typer.Option("--weights/--no-weights", help="List the weights.")] = True,
    name: _Name = None,
) -> int:
    """Show what is in a program: signature, symbols, operators, weights."""
    summaries = summarize_archive(read_programs(file, name))
    if as_json:
        _print_json([dataclasses.asdict(summary) for summary in summaries])
        return FINE
    for number, summary in enumerate(summaries):
        if number > 0:
            _print("")
        _print_summary(summary, weights)
    return FINE


@app.command(name="validate")
def validate_command(
    file: Annotated[str | None, typer.Argument(metavar="FILE", help=_FILE_HELP)] = None,
    as_json: _Json = False,
    rules: Annotated[bool, typer.Option("--rules", help="List the rules instead.")] = False,
    name: _Name = None,
    imports: Annotated[
        list[str] | None,
        typer.Option(
            "--import",
            metavar="MODULE",
            help="Import a module first, which defines or registers what the program names; may be repeated.",
        ),
    ] = None,
) -> int:
    """Check a file against all rules, without loading or running it.

    What load would refuse in this process is a finding as well: a class or operator of a library that is not
    imported, for example.
    """
    if rules:
        if as_json:
            _print_json([dataclasses.asdict(rule) for rule in RULES.values()])
        else:
            _print_table(
                "Rules",
                ("rule", "looks at", "what holds"),
                [(rule.id, rule.checked, rule.purpose) for rule in RULES.values()],
            )
        return FINE
    if file is None:
        raise typer.BadParameter("expected a file")
    for module in imports or ():
        _import(module)
    findings = validate_programs(file, name)
    if as_json:
        _print_json([dataclasses.asdict(finding) for finding in findings])
    else:
        for finding in findings:
            _print(f"{finding}{f' {_in_options(finding.hint)}' if finding.hint else ''}")
        _print(f"{file}: {_count(len(findings), 'finding')}")
    return FINDINGS if findings else FINE


def _import(module: str) -> None:
    """Imports what the caller names; what a file names is never imported."""
    try:
        importlib.import_module(module)
    except ImportError as error:
        raise typer.BadParameter(
            f"expected a module that can be imported, found {module!r}: {error}", param_hint="--import"
        ) from error


@app.command(name="convert")
def convert_command(
    source: Annotated[str, typer.Argument(metavar="IN", help=_FILE_HELP)],
    target: Annotated[str, typer.Argument(metavar="OUT", help="The file to write: .pt2, .json or .compact.")],
    to_format: Annotated[FileFormat | None, typer.Option("--to", help="What OUT is to be.")] = None,
    name: _Name = None,
    drop_unknown: Annotated[
        bool, typer.Option("--drop-unknown", help="Drop fields that only a newer version knows.")
    ] = False,
    allow_unsound: Annotated[
        bool, typer.Option("--allow-unsound", help="Write archives that pt2wire would not load.")
    ] = False,
) -> int:
    """Convert between .pt2 archives, PyTorch's JSON and Thrift compact."""
    if target == "-":  # elsewhere the standard output; here it would be a file of that name
        raise typer.BadParameter(
            "expected a file, found '-': write /dev/stdout for the output, ./- for a file called so",
            param_hint="OUT",
        )
    left_out = convert(
        source,
        target,
        to_format=to_format,
        name=name,
        drop_unknown=drop_unknown,
        allow_unsound=allow_unsound,
    )
    if left_out:
        print(f"pt2wire: {plain(target)} leaves out {', '.join(left_out)}", file=sys.stderr)
    return FINE


@app.command(name="diff")
def diff_command(
    one: Annotated[str, typer.Argument(metavar="A", help=_FILE_HELP)],
    other: Annotated[str, typer.Argument(metavar="B", help="Another one.")],
    as_json: _Json = False,
    name: _Name = None,
) -> int:
    """Show what differs between two programs, however their nodes are called and ordered."""
    archives = read_programs(one, name), read_programs(other, name)
    with_weights = all(archive.records for archive in archives)
    if not with_weights:  # JSON and Thrift files hold none
        for archive in archives:
            archive.weights, archive.constants = {}, {}
    differences = diff(*archives)
    if as_json:
        _print_json([dataclasses.asdict(difference) for difference in differences])
    else:
        for difference in differences:
            _print(str(difference))
        _print(_count(len(differences), "difference") + ("" if with_weights else ", weights not compared"))
    return FINDINGS if differences else FINE


@app.command(name="paths")
def paths_command(
    as_json: _Json = False,
    cxxflags: Annotated[
        bool, typer.Option("--cxxflags", help="Print the options that a C++ compiler needs.")
    ] = False,
    cmake: Annotated[
        bool, typer.Option("--cmake", help="Print the folder of the CMake package, for -Dpt2wire_DIR.")
    ] = False,
) -> int:
    """Show where the C++ headers, the CMake package, the Thrift IDL, the schema and the templates lie."""
    paths = locating.paths()
    if cmake:
        _print(paths["cmake"])
    elif cxxflags:
        _print(" ".join(f"-I{paths[name]}" for name in locating.INCLUDES))
    elif as_json:
        _print_json(paths)
    else:
        _print_table("", ("what", "where"), list(paths.items()))
    return FINE


@app.command(
    name="schema",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
)
def schema_command(context: typer.Context) -> int:
    """Compile schema.yaml, check what was generated, lint: see `pt2wire schema --help`."""
    return _schema(list(context.args))


def _schema(arguments: list[str]) -> int:
    # The only import of codegen.
    from .codegen.cli import main as codegen_main

    return codegen_main(arguments)


# Printing ------------------------------------------------------------------------------------


def _print(text: str) -> None:
    _write(plain(text) + "\n")


def _print_json(value: object) -> None:
    _write(json.dumps(value, indent=2) + "\n")


def _write(text: str, flush: bool = False) -> None:
    try:
        sys.stdout.write(text)
        if flush:
            sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()


def _discard_output() -> None:
    """Whoever read our output has seen enough; the exit code still says what the command found."""
    # Python would complain once more when it flushes at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


#: Characters that a column is padded to at most: a longer cell stands as it is, and does not pad every row.
_PADDED = 100


def _print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    cells = [[plain(str(cell)) for cell in row] for row in rows]
    if not cells:
        return
    filled = [i for i in range(len(columns)) if any(row[i] for row in cells)]
    columns = [columns[i] for i in filled]
    cells = [[row[i] for i in filled] for row in cells]
    if not _terminal.is_terminal:
        # Whole lines for other programs, without frames and wrapping.
        if title:
            _print(title)
        lines = [list(columns), *cells]
        widths = [max(len(line[i]) for line in lines if len(line[i]) <= _PADDED) for i in range(len(columns))]
        for line in lines:
            padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
            _print(("  " if title else "") + "  ".join(padded).rstrip())
        return
    table = Table(title=Text(title) if title else None, title_justify="left")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in cells:
        table.add_row(*(Text(cell) for cell in row))
    sys.stdout.flush()
    _terminal.print(table)


def _print_summary(summary: ProgramSummary, weights: bool) -> None:
    dialects = ", ".join(summary.dialects)
    _print(f"{summary.name}: format {summary.format}, torch {summary.torch_version}, dialect {dialects}")
    nodes = f"{_count(summary.nodes, 'node')} in {_count(summary.subgraphs + 1, 'graph')}"
    stored = f"{_count(len(summary.weights), 'weight')}, {_bytes(summary.stored_bytes)} in the file"
    _print(f"{nodes}, {stored}")
    _print_table("Inputs", _VALUE_COLUMNS, map(_value_row, _passed(summary.inputs)))
    _print_table("Outputs", _VALUE_COLUMNS, map(_value_row, summary.outputs))
    _print_table(
        "Symbols",
        ("symbol", "range"),
        [(symbol.name, _range(symbol.minimum, symbol.maximum)) for symbol in summary.symbols],
    )
    _print_table("Guards", ("holds for every input",), [(guard,) for guard in summary.guards])
    _print_table(
        "Operators", ("calls", "operator"), [(count, name) for name, count in summary.operators.items()]
    )
    if weights:
        _print_table(
            "Weights",
            ("weight", "kind", "type", "bytes", "record"),
            [(w.name, w.kind, w.type, w.bytes, w.record) for w in summary.weights],
        )


_VALUE_COLUMNS = ("name", "role", "type", "stands for")


def _value_row(value: ValueSummary) -> tuple[str, str, str, str]:
    return value.name, value.role, value.type, value.target or ""


def _passed(inputs: Iterable[ValueSummary]) -> list[ValueSummary]:
    # Weights have a table of their own.
    return [
        value for value in inputs if value.role in ("user input", "constant input", "custom obj", "token")
    ]


def _range(minimum: int | None, maximum: int | None) -> str:
    return f"{'-inf' if minimum is None else minimum} to {'inf' if maximum is None else maximum}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _bytes(number: int) -> str:
    size = float(number)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            return f"{size:,.0f} B" if unit == "B" else f"{size:,.1f} {unit}"
        size /= 1024
    raise AssertionError
