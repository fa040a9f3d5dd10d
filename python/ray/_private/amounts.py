"""Amounts of resources: which are refused, and how the scheduler counts them."""

from __future__ import annotations

import math

# The largest amount of a resource, as in common/resources.
_MAX_AMOUNT = 10**14
# The largest amount that may have a fraction. A larger float cannot hold ten-thousandths, the unit
# of common/resources.
_MAX_FRACTIONAL = 10**8


def cut_amount(name: str, value: float) -> float:
    """Rounds the amount of a resource down to what the scheduler counts.

    Its unit is 0.0001, for memory a byte, as in Ray: num_gpus=1/3 becomes 0.3333, and three of
    them fit on one GPU.
    """
    if name == "memory" or value > _MAX_FRACTIONAL:
        return float(int(value))
    units = value * 10_000
    nearest = round(units)  # In floating point, 0.0003 * 10000 is less than 3.
    return (nearest if abs(units - nearest) < 1e-6 else math.floor(units)) / 10_000


def cut_amounts(amounts: dict) -> dict:
    """Applies cut_amount() to amounts by resource name, and leaves out those that become zero."""
    cut = {name: cut_amount(name, amount) for name, amount in amounts.items()}
    return {name: amount for name, amount in cut.items() if amount}


def check_number(name: str, value, whole: bool = False):
    if value is None:
        return
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"The value of {name} must be a finite number, got {value}")
    if value < 0:
        raise ValueError(
            f"The keyword '{name}' only accepts None, 0 or a positive number, got {value}"
        )
    if value > _MAX_AMOUNT:
        raise ValueError(
            f"The value of {name} is {shown_number(value)}, more than the maximum of {_MAX_AMOUNT}"
        )
    if value and name != "memory" and not cut_amount(name, value):
        raise ValueError(
            f"The precision of the fractional quantity of resource {name} cannot go beyond "
            f"0.0001, got {value}"
        )
    if whole and value > 1 and value != int(value):
        raise ValueError(f"{name}: amounts above 1 must be whole numbers, got {value}")


def check_resources(resources: dict, where: str = "resources"):
    """Checks the names and amounts of custom resources."""
    for name, amount in resources.items():
        if not isinstance(name, str) or not name:
            raise ValueError(f"{where}: names are non-empty strings, got {name!r}")
        if name in ("CPU", "GPU"):
            raise ValueError(
                f"Use the 'num_{name.lower()}s' keyword instead of '{name}' in 'resources' keyword"
            )
        if not isinstance(amount, (int, float)):
            raise TypeError(f"{where}[{name!r}]: expected a number, got {type(amount).__name__}")
        check_number("memory" if name == "memory" else f'{where}["{name}"]', amount)


def shown_number(number) -> str:
    """The text of a number in a message, shortened when it is very long."""
    text = (
        str(number)
        if isinstance(number, float) or number < 10**30
        else f"{number:.3e}"
        if number < 10**300
        else "a number of hundreds of digits"
    )
    return text
