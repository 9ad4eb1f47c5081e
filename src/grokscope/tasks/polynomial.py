"""A polynomial of m and n modulo p as classification.

>>> PolynomialTask(polynomial="x^3 + x*y", modulus=5, corruption=0).describe()
'x3+xy mod 5'
"""

import re
from functools import cache
from typing import Annotated, ClassVar, Self

import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from grokscope.tasks.dataset import Examples
from grokscope.tasks.task import InputShape, Task
from grokscope.waves import Waves

_TERM = re.compile(r"([+-]?)(\d*)(?:x(\d*))?(?:y(\d*))?")
_SIGNS_OF_POWER_AND_PRODUCT = re.compile(r"(?<=[xy])\^(?=\d)|(?<=[\dxy])\*(?=[xy])")
_MOST_DEGREE = 64
Terms = dict[tuple[int, int], int]  # the powers of x and y, and their factor


def terms_of(polynomial: str) -> Terms | None:
    """Powers and factors; None if it is not a polynomial in x and y.

    >>> terms_of("x3 + 2xy - y + 1")
    {(3, 0): 1, (1, 1): 2, (0, 1): -1, (0, 0): 1}
    """
    text = _SIGNS_OF_POWER_AND_PRODUCT.sub("", re.sub(r"\s", "", polynomial))
    terms: Terms = {}
    for part in re.findall(r"[+-]?[^+-]+|[+-]", text):
        found = _TERM.fullmatch(part)
        if not found or part in "+-":
            return None
        sign, factor, x, y = found.groups()
        powers = tuple(0 if power is None else int(power or 1) for power in (x, y))
        if max(powers) > _MOST_DEGREE or len(factor) > 6:
            return None
        key = (powers[0], powers[1])
        terms[key] = terms.get(key, 0) + (-1 if sign == "-" else 1) * int(factor or 1)
    return {key: terms[key] for key in sorted(terms, key=lambda k: (-sum(k), -k[0])) if terms[key]}


def _canonical(value: object) -> object:
    """One polynomial is one spec, however it is written; what is none stays as it is, to be refused."""
    terms = terms_of(value) if isinstance(value, str) else None
    if not terms:
        return value
    text = ""
    for (x, y), factor in terms.items():
        letters = "".join(name + ("" if power == 1 else str(power)) for name, power in (("x", x), ("y", y)) if power)
        number = "" if abs(factor) == 1 and letters else str(abs(factor))
        text += ("-" if factor < 0 else "+") + number + letters
    return text.removeprefix("+")


class PolynomialTask(Task):
    """A polynomial such as x3+xy of m (x) and n (y), modulo p."""

    kind: str = "polynomial"
    polynomial: Annotated[str, BeforeValidator(_canonical)] = "x3+xy"
    modulus: Annotated[int, Field(ge=2, lt=65536)] = 97

    _noun: ClassVar[str] = "pairs"

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not terms_of(self.polynomial):
            raise self.refuse("polynomial", "must be terms in x and y with powers up to 64, such as x3+2xy-1")
        self.check()
        return self

    def describe(self) -> str:
        """The polynomial and the modulus."""
        return f"{self.polynomial} mod {self.modulus}"

    @property
    def example_count(self) -> int:
        """Every pair (m, n) has an answer."""
        return self.modulus**2

    @property
    def classes(self) -> int:
        """The residues."""
        return self.modulus

    @property
    def inputs(self) -> InputShape:
        """Pairs of residues."""
        return InputShape(True, 2, self.modulus)

    @property
    def named_by_pairs(self) -> bool:
        """They are."""
        return True

    def examples(self) -> Examples:
        """All pairs in the order of m·p + n, which is also what they are called."""
        return _pairs(self.polynomial, self.modulus)

    def waves(self) -> Waves:
        """Over the index: the output layer is periodic in it, the input layers in powers."""
        return Waves(
            np.arange(self.modulus),
            why_no_relation=f"for {self.polynomial} the inputs need not be periodic, so there is no relation between "
            "the phases",
        )


@cache
def _pairs(polynomial: str, p: int) -> Examples:
    names = np.arange(p * p, dtype=np.int64)
    m, n = names // p, names % p
    answers = np.zeros(p * p, np.int64)
    for (x, y), factor in (terms_of(polynomial) or {}).items():
        term = np.full(p * p, factor % p)
        for variable, power in ((m, x), (n, y)):
            for _ in range(power):
                term = term * variable % p
        answers = (answers + term) % p
    return Examples(np.stack([m, n], axis=1), answers, classes=p, names=names)
