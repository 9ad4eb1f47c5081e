"""Formulas in sweep files: arithmetic over the fields of a run, and nothing else.

>>> from grokscope.spec import field_of
>>> rate = Formula("0.01 * sqrt(training.batch_size / 256)", "optimizer.learning_rate", field_of)
>>> rate.value({"training.batch_size": 64}.__getitem__, "finite number")
0.005
"""

import ast
import math
import operator
from collections.abc import Callable

from grokscope.errors import SpecError, did_you_mean, quoted
from grokscope.section import FieldInfo

MOST_CHARACTERS = 1000
MOST_NESTED = 100  # of operations in operations, a sum of so many terms being one: far below what Python can follow

_OPERATORS: dict[type[ast.AST], Callable[..., float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
}
_FUNCTIONS: dict[str, Callable[..., float]] = {
    "sqrt": math.sqrt,
    "log": math.log,
    "exp": math.exp,
    "min": min,
    "max": max,
    "round": round,
}


class Formula:
    """The right side of `path = formula`; checked when it is made. `field_of` knows which fields there are."""

    def __init__(self, text: object, path: str, field_of: Callable[[str], FieldInfo]) -> None:
        self._text, self._path, self._field_of = text, path, field_of
        self.fields: set[str] = set()
        if not isinstance(text, str):
            raise self._error('must be a text such as "0.01 * sqrt(training.batch_size / 256)"')
        if len(text) > MOST_CHARACTERS:
            raise self._error(f"a formula has at most {MOST_CHARACTERS:,} characters")
        try:
            self._tree = ast.parse(text, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two of what is nested too deeply
            raise self._error("not a formula") from None
        self._check(self._tree)

    def value(self, field: Callable[[str], object], kind: str) -> float:
        """The value, where `field` knows those of the fields; rounded if the field takes whole numbers."""
        try:
            result = self._evaluate(self._tree, field)
            return round(result) if kind == "whole number" else float(result)
        except (ArithmeticError, ValueError, TypeError) as error:
            raise self._error(str(error)) from None

    def _check(self, node: ast.AST, depth: int = 0) -> None:
        if depth > MOST_NESTED:
            raise self._error(f"more than {MOST_NESTED} operations in each other")
        match node:
            case ast.Constant(value=int() | float()):
                pass
            case ast.BinOp(left, operation, right) if type(operation) in _OPERATORS:
                self._check(left, depth + 1)
                self._check(right, depth + 1)
            case ast.UnaryOp(ast.USub(), operand):
                self._check(operand, depth + 1)
            case ast.Attribute(ast.Name(section), name):
                self._field_of(f"{section}.{name}")
                self.fields.add(f"{section}.{name}")
            case ast.Call(ast.Name(name), arguments, []):
                if name not in _FUNCTIONS:
                    raise self._error(f"unknown function {name}{did_you_mean(name, _FUNCTIONS)}")
                for argument in arguments:
                    self._check(argument, depth + 1)
            case _:
                known = f"numbers, fields such as training.batch_size, + - * / ** and {', '.join(_FUNCTIONS)}"
                part = ast.get_source_segment(str(self._text), node)
                raise self._error(f"{quoted(part)} is not allowed: a formula has {known}")

    def _evaluate(self, node: ast.AST, field: Callable[[str], object]) -> float:
        match node:
            case ast.Constant(value=int() | float() as value):
                return float(value)  # whole numbers without end, as 9 ** 9 ** 9, would take forever
            case ast.BinOp(left, operation, right):
                return _OPERATORS[type(operation)](self._evaluate(left, field), self._evaluate(right, field))
            case ast.UnaryOp(operation, operand):
                return _OPERATORS[type(operation)](self._evaluate(operand, field))
            case ast.Attribute(ast.Name(section), name):
                found = field(f"{section}.{name}")
                if not isinstance(found, int | float):
                    raise TypeError(f"{section}.{name} is {found!r}, not a number")
                return float(found)
            case ast.Call(ast.Name(name), arguments):
                return _FUNCTIONS[name](*(self._evaluate(argument, field) for argument in arguments))
        raise AssertionError(ast.dump(node))

    def _error(self, reason: str) -> SpecError:
        return SpecError(f"derived {self._path} = {quoted(self._text)}: {reason}")
