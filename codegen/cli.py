"""The command line of the compiler: `pt2wire schema generate | check | lint`.

Exit codes: 0 fine, 1 findings, 2 failure (a file that cannot be read, a wrong argument).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .faults import Finding, Level, SchemaError
from .lint import lint
from .model import Schema
from .outputs import compare_tree, render_all, write_tree
from .render import COMMAND
from .resolve import load_schema

_FINE, _FINDINGS, _FAILURE = 0, 1, 2


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
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return _FAILURE
    except SchemaError as error:
        _print(error.findings, arguments.format)
        return _FINDINGS
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="pt2wire schema", description="Compile and check schema.yaml.")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, run, text in (
        ("generate", _generate, "write all bindings"),
        ("check", _check, "compare the bindings on disk with what generate would write"),
        ("lint", _lint, "judge the schema"),
    ):
        command = commands.add_parser(name, help=text, description=text.capitalize() + ".")
        command.set_defaults(run=run)
        command.add_argument(
            "--schema", type=Path, default=None, help="default: schema.yaml of this source tree"
        )
        command.add_argument(
            "--format", choices=("text", "github"), default="text", help="how faults are printed"
        )
        if run is not _lint:
            command.add_argument(
                "--out", type=Path, default=None, help="default: generated/ beside the schema"
            )
    return parser


def _generate(arguments: argparse.Namespace) -> int:
    schema_path, out = _paths(arguments)
    schema = load_schema(schema_path)
    blocking = [finding for finding in lint(schema) if finding.level is not Level.STYLE]
    if blocking:
        _print(blocking, arguments.format)
        return _FINDINGS
    files = render_all(schema, schema_path.read_bytes())
    changed = write_tree(files, out)
    for path in changed:
        print(f"{out / path}")
    print(f"{len(changed)} of {len(files)} files changed in {out}")
    return _FINE


def _check(arguments: argparse.Namespace) -> int:
    schema_path, out = _paths(arguments)
    schema = load_schema(schema_path)
    files = render_all(schema, schema_path.read_bytes())
    differences = compare_tree(files, out)
    if not differences:
        print(f"{out} is up to date with {schema_path} ({len(files)} files)")
        return _FINE
    for difference in differences:
        print(f"{out / difference.path}: {difference.state}")
        if difference.diff:
            print(difference.diff)
    print(f"{len(differences)} files are not as generated from {schema_path}. Run: {COMMAND}")
    return _FINDINGS


def _lint(arguments: argparse.Namespace) -> int:
    schema: Schema = load_schema(_schema_path(arguments))
    findings = lint(schema)
    _print(findings, arguments.format)
    return _FINDINGS if findings else _FINE


def _paths(arguments: argparse.Namespace) -> tuple[Path, Path]:
    schema_path = _schema_path(arguments)
    return schema_path, arguments.out or schema_path.parent / "generated"


def _schema_path(arguments: argparse.Namespace) -> Path:
    return arguments.schema or Path("schema.yaml")


def _print(findings: tuple[Finding, ...] | list[Finding], form: str) -> None:
    for finding in findings:
        print(finding.github() if form == "github" else finding.text())
