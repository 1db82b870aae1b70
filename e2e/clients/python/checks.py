"""Runs named checks against a gateway, prints one line for each, and ends with a summary.

A check is an async function. It fails by raising; everything else that was
registered still runs. BASE_URL is the gateway with its prefix, for example
http://127.0.0.1:10000/openai/v1, API_KEY the key that it takes.
"""

import asyncio
import os
import secrets
import sys
import traceback

BASE_URL = os.environ["BASE_URL"]
API_KEY = os.environ["API_KEY"]

# Makes prompts of this run differ from those of an earlier one, which the upstream's cache may still know.
RUN = secrets.token_hex(8)

# How long one check may take. Nothing good comes near it.
PATIENCE_SECONDS = 60

_checks = []


def check(function):
    """Registers a check under the function's name. Those of modules that are only imported do not run."""
    if function.__module__ == "__main__":
        _checks.append(function)
    return function


def equal(got, want, what="value"):
    """Fails unless got is want, in type and value."""
    if type(got) is not type(want) or got != want:
        raise AssertionError(f"{what}: got {got!r}, want {want!r}")


def true(condition, what):
    """Fails with what unless condition holds."""
    if not condition:
        raise AssertionError(what)


async def _run(group, *arguments):
    failed = 0
    for function in _checks:
        name = f"{group}: {function.__name__}"
        try:
            await asyncio.wait_for(function(*arguments), PATIENCE_SECONDS)
            print(f"ok    {name}")
        except Exception as error:  # a failed check must not hide the others
            failed += 1
            print(f"FAIL  {name}: {type(error).__name__}: {error}")
            traceback.print_exc()
    return len(_checks), failed


def main(groups):
    """Runs all checks once per group, a name with the checks' arguments."""

    async def everything():
        counts = [await _run(name, *arguments) for name, *arguments in groups]
        return sum(total for total, _ in counts), sum(failed for _, failed in counts)

    total, failed = asyncio.run(everything())
    print(f"{total} checks, {failed} failed")
    sys.exit(1 if failed or not total else 0)
