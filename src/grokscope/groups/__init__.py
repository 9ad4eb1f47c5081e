"""Finite groups: their multiplication, their irreducible representations, and spectra over those."""

from grokscope.groups.group import Group, group_called, why_no_group
from grokscope.groups.representations import Representation, representations_of
from grokscope.groups.spectrum import Irreducibles

__all__ = ["Group", "Irreducibles", "Representation", "group_called", "representations_of", "why_no_group"]
