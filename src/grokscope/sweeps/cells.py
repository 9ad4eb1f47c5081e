"""The run of a cell, also of one that a user's code refuses.

>>> spec_of_cell(RunSpec(), {"task": RunSpec().section_with("task", {"modulus": 31})}).task.modulus
31
"""

from collections.abc import Mapping
from typing import Any

from grokscope.extension import ExtensionError
from grokscope.section import Section, make_section
from grokscope.spec import FAMILIES, RunSpec


def spec_of_cell(base: RunSpec, sections: Mapping[str, Section]) -> RunSpec:
    """The base with some sections replaced.

    Where a user's class has its fields but fails with them, as when its examples are made, the spec comes unresolved:
    its run fails when it is trained and is noted then, and the others go on.
    """
    try:
        return base.with_sections(sections)
    except ExtensionError:
        chosen: dict[str, Any] = {name: getattr(base, name) for name in (*FAMILIES, "training")} | dict(sections)
        for name, family in FAMILIES.items():
            chosen[name] = make_section(family, chosen[name].model_dump(), unresolved=True)
        return RunSpec(**chosen)
