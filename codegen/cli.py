"""The command line of the compiler: `pt2wire schema generate | check | lint | breaking | ...`.

Exit codes: 0 fine, 1 findings, 2 failure (a file that cannot be read, a wrong argument).
"""

from __future__ import annotations

import argparse
import errno
import os
import shlex
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

from .breaking import SourceError, breaking, schema_before
from .compare_torch import compare_torch
from .faults import Finding, Level, SchemaError, annotation, in_order
from .history import as_of
from .lint import RULES, lint
from .model import Schema
from .outputs import (
    ForeignError,
    MisplacedError,
    compare_files,
    importable,
    refuse_misplaced,
    render_all,
    write_files,
)
from .render import COMMAND
from .resolve import load_schema
from .rule_list import describe
from .torch_schema import TorchSchemaError, find_torch, read_torch

_NAME = "pt2wire schema"
_FINE, _FINDINGS, _FAILURE = 0, 1, 2
_STATES = {
    "missing": "generate writes it",
    "stale": "not what generate writes",
    "orphan": "no target writes it; generate removes it if it was generated, else move it elsewhere",
    "folder": "a folder, where a file belongs; move it elsewhere, then generate",
    "empty": "an empty folder, which no target makes and git does not keep; remove it",
    "link": "a symbolic link, which others cannot follow; remove it, then generate",
}


def main(argv: list[str]) -> int:
    """Runs one command.

    Args:
        argv: The arguments behind `pt2wire schema`, such as `["check", "--schema", "schema.yaml"]`.

    Returns:
        The exit code.
    """
    try:
        arguments = _parser().parse_args(argv)
    except SystemExit as exit_request:  # argparse leaves this way after --help and after wrong arguments
        return int(exit_request.code or 0)
    try:
        code: int = arguments.run(arguments)
    except (OSError, SourceError, ForeignError, MisplacedError, TorchSchemaError) as error:
        text = str(error)
        if isinstance(error, OSError) and error.filename is not None:
            text = f"{error.filename}: {error.strerror}"
        print(f"{_NAME}: {text}", file=sys.stderr)
        return _FAILURE
    except SchemaError as error:
        _print(error.findings, arguments.format)
        code = _FINDINGS
    _say("", end="", flush=True)
    return code


class _Parser(argparse.ArgumentParser):
    """Failures of all kinds are one line, and begin alike."""

    def error(self, message: str) -> NoReturn:
        self.exit(_FAILURE, f"{_NAME}: {message} (see --help)\n")


def _parser() -> _Parser:
    parser = _Parser(prog=_NAME, description="Compile and check schema.yaml.")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, run, text in (
        ("generate", _generate, "write all bindings"),
        ("check", _check, "compare the bindings on disk with what generate would write"),
        ("lint", _lint, "judge the schema"),
        ("breaking", _breaking, "judge a change of the schema: whether files and readers go on to work"),
        ("compare-torch", _compare_torch, "show what the schema lacks of PyTorch's, as YAML to paste"),
        ("rules", _rules, "list the rules of lint and breaking"),
    ):
        command = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        command.set_defaults(run=run)
        if run is _rules:
            continue
        command.add_argument(
            "--schema", type=_path, default=None, help="default: schema.yaml in the working directory"
        )
        command.add_argument(
            "--format", choices=("text", "github"), default="text", help="how faults are printed"
        )
        if run is _breaking:
            command.add_argument(
                "--against",
                type=_name,
                required=True,
                metavar="FILE|GIT-REV",
                help="the schema before: a file, or a git revision, best the tag of the last release",
            )
        if run is _compare_torch:
            command.add_argument(
                "--torch",
                type=_path,
                default=None,
                help="folder of a torch package; default: the installed one",
            )
        if run in (_generate, _check):
            command.add_argument(
                "--out", type=_path, default=None, help="default: generated/ beside the schema"
            )
    return parser


def _name(text: str) -> str:
    """A file or revision named on the command line: the system takes no name with a NUL in it."""
    if "\0" in text:
        raise argparse.ArgumentTypeError(f"expected a name without NUL characters, found {text!r}")
    return text


def _path(text: str) -> Path:
    if not text:  # which would be the working directory
        raise argparse.ArgumentTypeError("expected a path, found ''")
    return Path(_name(text))


def _generate(arguments: argparse.Namespace) -> int:
    schema_path, out = _schema_path(arguments), _out(arguments)
    files = _render(schema_path)
    refuse_misplaced(schema_path, out)
    changed = write_files(files, out)
    for path in changed:
        _say(str(out / path))
    _say(f"{out} is up to date with {schema_path} (files changed: {len(changed)})")
    if not importable(out):
        hint = "for bindings in Python, name one that is an identifier with --out"
        print(
            f"{_NAME}: no statement of Python can import a folder called {out.name}: {hint}", file=sys.stderr
        )
    return _FINE


def _check(arguments: argparse.Namespace) -> int:
    schema_path, out = _schema_path(arguments), _out(arguments)
    files = _render(schema_path)
    differences = compare_files(files, out)
    if not differences:
        _say(f"{out} is up to date with {schema_path}")
        return _FINE
    for difference in differences:
        path = out / difference.path
        message = f"{difference.state}: {_STATES[difference.state]}"
        github = arguments.format == "github"
        _say(annotation(message, file=path) if github else f"{path}: {message}")
        if difference.diff:  # to GitHub, a line of it could be a command, whatever blanks stand before it
            _say(textwrap.indent(difference.diff, "| ", lambda line: True) if github else difference.diff)
    _say(f"Files that differ from what {schema_path} gives: {len(differences)}. Run: {_command(arguments)}")
    return _FINDINGS


def _lint(arguments: argparse.Namespace) -> int:
    schema_path = _schema_path(arguments)
    schema = load_schema(schema_path)
    findings = lint(schema)
    _print(findings, arguments.format)
    if findings:
        return _FINDINGS
    _say(f"{schema_path} is fine: {len(schema.types)} types, {len(RULES)} rules")
    return _FINE


def _breaking(arguments: argparse.Namespace) -> int:
    schema_path = _schema_path(arguments)
    after = load_schema(schema_path)
    try:
        before = schema_before(arguments.against, schema_path)
    except SchemaError as error:
        first, more = error.findings[0], len(error.findings) - 1
        raise SourceError(
            f"what to compare with is not a schema itself: {first.text()}"
            + (f" and {more} more" if more else "")
        ) from error
    # A change is judged by what it leads to as well: what lint finds there may be what is wrong with it.
    misread = [finding for finding in lint(after) if finding.level is Level.WIRE]
    findings = in_order([*misread, *breaking(before, after)])
    _print(findings, arguments.format)
    if findings:
        return _FINDINGS
    if after.version.major > before.version.major:
        said = "is a new major version, whose readers have to refuse files of"
    else:
        said = "breaks nothing of"
    _say(f"{schema_path}, {_numbers(after)}, {said} {arguments.against}, {_numbers(before)}")
    return _FINE


def _compare_torch(arguments: argparse.Namespace) -> int:
    schema_path = _schema_path(arguments)
    newest = schema = load_schema(schema_path)
    torch = read_torch(arguments.torch if arguments.torch is not None else find_torch())
    if torch.version < newest.version:  # an older torch is fine if it lacks nothing but what came later
        schema = as_of(newest, torch.version)
    comparison = compare_torch(schema, torch)
    if not comparison.additions and not comparison.contradictions and schema.version == torch.version:
        theirs = f"torch {torch.release}"
        if torch.version < newest.version:
            ahead = f"is ahead of {theirs}, version {torch.version}, and lacks nothing of it"
            _say(f"{schema_path}, version {newest.version}, {ahead}")
        else:
            _say(f"{schema_path} says what {theirs} says, version {torch.version}")
        return _FINE
    _say(comparison.text)
    return _FINDINGS


def _numbers(schema: Schema) -> str:
    return f"version {schema.version} revision {schema.revision}"


def _rules(arguments: argparse.Namespace) -> int:
    _say(describe())
    return _FINE


def _render(schema_path: Path) -> dict[str, bytes]:
    """The generated files; a schema that would give code that does not work is refused first."""
    schema = load_schema(schema_path)
    blocking = [finding for finding in lint(schema) if finding.level is not Level.STYLE]
    if blocking:
        raise SchemaError(blocking)
    return render_all(schema, schema_path.read_bytes())


def _schema_path(arguments: argparse.Namespace) -> Path:
    """The schema named, else that of the working directory; a hook must not judge any other."""
    if arguments.schema is not None:
        return Path(arguments.schema)
    path = Path("schema.yaml")
    if not path.exists():
        raise FileNotFoundError(errno.ENOENT, "no schema here; name one with --schema", str(path))
    return path


def _out(arguments: argparse.Namespace) -> Path:
    return arguments.out if arguments.out is not None else _schema_path(arguments).parent / "generated"


def _command(arguments: argparse.Namespace) -> str:
    """The command that mends what `check` found, with the same options."""
    options = [(f"--{name}", getattr(arguments, name)) for name in ("schema", "out")]
    given = [f" {option} {shlex.quote(str(value))}" for option, value in options if value is not None]
    return COMMAND + "".join(given)


def _print(findings: Iterable[Finding], form: str) -> None:
    for finding in findings:
        _say(finding.github() if form == "github" else finding.text())


def _say(text: str, end: str = "\n", flush: bool = False) -> None:
    """Prints also where the terminal cannot show every character of a diff, or nobody reads any more."""
    encoding = sys.stdout.encoding or "utf-8"
    try:
        print(text.encode(encoding, "backslashreplace").decode(encoding), end=end, flush=flush)
    except BrokenPipeError:
        # The exit code still says what was found. Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
