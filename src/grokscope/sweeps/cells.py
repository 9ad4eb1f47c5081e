"""The run of a cell, also of one that a user's code refuses.

>>> spec_of_cell(RunSpec(), {"task.modulus": 31}).task.modulus
31
"""

from collections.abc import Mapping
from typing import Any

from grokscope.extension import ExtensionError
from grokscope.section import make_section
from grokscope.spec import FAMILIES, RunSpec, TrainingSpec


def spec_of_cell(base: RunSpec, fields: Mapping[str, object]) -> RunSpec:
    """The base with some fields replaced. Where a user's class has the fields but fails with them, as when its examples
    are made, the spec comes unresolved: its run fails when it is trained and is noted then, and the others go on."""
    try:
        return base.updated(fields)
    except ExtensionError:
        return _untried(base, fields)


def _untried(base: RunSpec, fields: Mapping[str, object]) -> RunSpec:
    content = base.model_dump(exclude_unset=True)
    for path, value in fields.items():
        section, _, field = path.partition(".")
        content.setdefault(section, {})[field] = value
    # Made first, so that what is wrong with a class or a field is still refused before anything is trained.
    made = {name: make_section(family, content.get(name, {})) for name, family in FAMILIES.items()}
    unresolved: dict[str, Any] = {
        name: make_section(family, made[name].model_dump(), unresolved=True) for name, family in FAMILIES.items()
    }
    return RunSpec(training=TrainingSpec(**content.get("training", {})), **unresolved)
