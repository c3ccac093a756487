"""`python -m benchmarks [NAME ...]`: measure this project against its peers and print the table of ratios."""

import argparse
import importlib
import sys
from pathlib import Path

from benchmarks.lines import SGLANG_PYTHON, Line, Options, Skipped, machine_words, table
from tests.support.laptop import CHECKOUT

NAMES = (
    "noop",
    "overhead",
    "many_points",
    "slurm_array",
    "startup",
    "drafter",
    "sweep",
    "growth",
    "memory",
    "client",
    "saturation",
    "comparing",
)


def main() -> None:
    """Run the named measurements, or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; default: all")
    parser.add_argument("--runs", type=int, default=11, help="rounds that count (default 11)")
    parser.add_argument(
        "--data", type=Path, default=CHECKOUT / "orchestrator" / "demo" / "data", help="default: bundled"
    )
    parser.add_argument("--peers", type=Path, metavar="PYTHON", help="a Python that has SpecForge and speculators")
    parser.add_argument("--ansible", type=Path, metavar="BIN", help="ansible-playbook; default: a venv is made for it")
    parser.add_argument("--pyinfra", type=Path, metavar="BIN", help="pyinfra; default: a venv is made for it")
    parser.add_argument("--sglang", type=Path, metavar="PYTHON", help="a Python that has SGLang; default: .sglang-venv")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(NAMES)
    if unknown:
        parser.error(f"expected names of {', '.join(NAMES)}, found: {', '.join(sorted(unknown))}")
    options = Options(
        runs=arguments.runs,
        data=arguments.data.absolute(),
        peers_python=arguments.peers and arguments.peers.absolute(),
        ansible=arguments.ansible and arguments.ansible.absolute(),
        pyinfra=arguments.pyinfra and arguments.pyinfra.absolute(),
        sglang_python=(arguments.sglang or SGLANG_PYTHON).absolute(),
    )
    lines: list[Line | Skipped] = []
    for name in arguments.names or NAMES:
        sys.stderr.write(f"{name} ")
        lines += importlib.import_module(f"benchmarks.{name}").measure(options)
    print(f"{machine_words()}\n\n{table(lines)}")


main()
