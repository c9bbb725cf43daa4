"""Check the protocol's small models exhaustively: python -m model [--quick] [--trace]."""

import argparse
import sys
from collections.abc import Iterable

from .cases import CASES, Case, Finding, check
from .explore import Progress, story

ROW = "{:<17} {:<42} {:<22} {:>8}  {:<8} {:>9} {:>7}\n"


def main(arguments: list[str] | None = None) -> int:
    """Check and print a table; 0 if each case came out as it must, else 1, 130 after Ctrl-C."""
    options = _parser().parse_args(arguments)
    cases = [
        case
        for case in CASES
        if options.variant in (None, case.variant) and (case.quick or not options.quick)
    ]
    try:
        return _run(cases, trace=options.trace)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m model",
        description="Visit all states of small models of the protocol. It must hold in each, and"
        " the mistakes that are planted in it must be found.",
        epilog="exit codes: 0 all came out as they must, 1 one did not, 130 interrupted",
    )
    names = list(dict.fromkeys(case.variant for case in CASES))
    parser.add_argument("--variant", choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--quick", action="store_true", help="only what takes seconds")
    parser.add_argument(
        "--trace", action="store_true", help="tell a shortest counter-example for every violation"
    )
    return parser


def _run(cases: Iterable[Case], *, trace: bool) -> int:
    sys.stdout.write(
        ROW.format("variant", "", "bounds", "amnesias", "verdict", "states", "seconds")
    )
    surprises = 0
    for case in cases:
        finding = check(case, progress=_progress(case))
        _wipe()
        sys.stdout.write(_row(finding))
        if not finding.expected:
            surprises += 1
            sys.stdout.write(f"NOT EXPECTED: it {'holds' if finding.holds else 'is violated'}\n")
        if trace or not finding.expected:
            _tell(finding)
        sys.stdout.flush()
    return 1 if surprises else 0


def _row(finding: Finding) -> str:
    case, states = finding.case, f"{finding.explored.states:,}"
    verdict = "holds" if finding.holds else "violated"
    return ROW.format(
        case.variant, case.says, case.bounds, case.amnesias, verdict, states,
        f"{finding.seconds:.1f}",
    )  # fmt: skip


def _tell(finding: Finding) -> None:
    if finding.explored.trace:
        for line in story(finding.model, finding.explored.trace):
            sys.stdout.write(f"  {line}\n")
        sys.stdout.write(f"  broken: {finding.explored.broken}\n\n")


def _progress(case: Case) -> Progress | None:
    if not sys.stderr.isatty():
        return None

    def report(states: int, waiting: int) -> None:
        line = f"{case.variant}, {case.bounds}: {states:,} states, {waiting:,} to look at"
        sys.stderr.write(f"\r\033[K{line}")
        sys.stderr.flush()

    return report


def _wipe() -> None:
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K")
        sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
