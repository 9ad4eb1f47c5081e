"""How many claims hold, split by what a reader should know: the size of the networks, seeds, blindness, section.

for line in summary(entries):
    print(line)
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from grokscope.experiments.claim import Verdict
from grokscope.experiments.claims_page import cause_of, is_the_papers
from grokscope.experiments.record import Entry
from grokscope.experiments.scale import PAPER, PAPER_MODULUS
from grokscope.spec import RunSpec

Table = list[list[str]]  # the first row is the heading


def summary(entries: Sequence[Entry]) -> list[str]:
    """The result in a few sentences."""
    papers = [entry for entry in entries if is_the_papers(entry.claim)]
    words = []
    if papers:
        words.append(f"The paper's: {_counts(papers)}.")
        words += _what_holds(papers)
    if ours := [entry for entry in entries if not is_the_papers(entry.claim)]:
        words.append(f"Ours, about the paper or beyond it: {_counts(ours)}.")
    return words


def in_force(entries: Iterable[Entry]) -> list[Entry]:
    """Those that were not superseded."""
    return [entry for entry in entries if entry.verdict is not Verdict.SUPERSEDED]


def holding(entries: Iterable[Entry]) -> list[Entry]:
    """Those that hold, some of them with an erratum."""
    return [entry for entry in entries if entry.verdict in (Verdict.HOLDS, Verdict.CORRECTED)]


def _counts(entries: Sequence[Entry]) -> str:
    standing = in_force(entries)
    numbers = Counter(entry.verdict for entry in standing)
    counts = ", ".join(f"{verdict}: {numbers[verdict]}" for verdict in Verdict if numbers[verdict])
    superseded = len(entries) - len(standing)
    also = f"; superseded: {superseded}" if superseded else ""
    return f"{len(standing)} {'claim' if len(standing) == 1 else 'claims'} ({counts}{also})"


def _what_holds(entries: Sequence[Entry]) -> list[str]:
    good = holding(entries)
    if not good:
        return []
    sizes = Counter(size_of(entry) for entry in good)
    parts = ", ".join(f"{sizes[size]} {size}" for size in _SIZES if sizes[size])
    seen = sum(bool(entry.claim.seen_before) for entry in good)
    return [f"Behind the {len(good)} that hold: {parts}; not blind: {seen}."]


def superseded_words(entries: Sequence[Entry]) -> str:
    """How the claims fared that were superseded, and those that took their places."""
    known = {entry.claim.id: entry for entry in entries}
    before = [entry for entry in entries if entry.claim.superseded and entry.results]
    held = [entry for entry in before if entry.found is Verdict.HOLDS]
    others = [entry for entry in before if entry.found is not Verdict.HOLDS]
    if not before:
        return ""

    def successors(older: Sequence[Entry]) -> list[Entry]:
        names = {name: None for entry in older if entry.claim.superseded for name in entry.claim.superseded.by}
        return [known[name] for name in names if name in known and known[name].results]

    after_held, after_others = successors(held), successors(others)
    return (
        f"Of {len(before)} superseded claims {len(others)} had not held; of the {len(after_others)} in their places "
        f"{len(holding(after_others))} hold. The other {len(held)} had held; of the {len(after_held)} in their places "
        f"{len(after_held) - len(holding(after_held))} do not."
    )


def reasons(entries: Sequence[Entry]) -> str:
    """Why claims do not hold, and how many for each reason."""
    causes = [cause for entry in in_force(entries) if (cause := cause_of(entry))]
    numbers = Counter(cause.reason for cause in causes)
    return ", ".join(f"{reason}: {count}" for reason, count in numbers.most_common())


UNTRAINED, SEVERAL = "without training", "at the paper's size with 3 or more seeds"
ONE, COARSE = "at the paper's size with 1 seed", "at the paper's size on a coarser grid"
REDUCED = "at a reduced scale"
_SIZES = (UNTRAINED, SEVERAL, ONE, COARSE, REDUCED)


def size_of(entry: Entry) -> str:
    """How large and how many the networks are that a claim was measured on."""
    needs = entry.claim.needs(PAPER)
    if not needs.networks and not needs.diagrams:
        return UNTRAINED
    small = is_the_papers(entry.claim) and any(map(_is_small, needs.networks))
    if entry.scale != PAPER.name or small:
        return REDUCED
    if entry.grid:
        return COARSE
    return SEVERAL if entry.seeds >= 3 else ONE


def _is_small(spec: RunSpec) -> bool:
    """Whether a network has a smaller modulus than the paper's at every scale, as those of gradient descent have."""
    return spec.has("task.modulus") and spec.task.modulus < PAPER_MODULUS


def by_size(entries: Sequence[Entry]) -> Table:
    """A row for each verdict, by the size of the networks; what was not run has none."""
    return _split([entry for entry in entries if entry.results], size_of, _SIZES)


def by_blindness(entries: Sequence[Entry]) -> Table:
    """A row for each verdict, by what was known when the bounds were set."""
    return _split(entries, lambda entry: "not blind" if entry.claim.seen_before else "blind", ("blind", "not blind"))


def _split(entries: Sequence[Entry], kind: Callable[[Entry], str], kinds: Sequence[str]) -> Table:
    numbers = Counter((entry.verdict, kind(entry)) for entry in entries)
    shown = [verdict for verdict in Verdict if any(numbers[verdict, each] for each in kinds)]
    rows = [[str(verdict), *(_number(numbers[verdict, each]) for each in kinds)] for verdict in shown]
    return [["verdict", *kinds], *rows]


def by_part(parts: Sequence[tuple[str, Sequence[Entry]]]) -> Table:
    """A row for each part of the paper, by verdict; parts without claims are left out."""
    shown = [verdict for verdict in Verdict if any(entry.verdict is verdict for _, all_ in parts for entry in all_)]
    rows = []
    for title, entries in parts:
        numbers = Counter(entry.verdict for entry in entries)
        if entries:
            rows.append([title, *(_number(numbers[verdict]) for verdict in shown)])
    return [["section", *map(str, shown)], *rows]


def by_part_in_detail(parts: Sequence[tuple[str, Sequence[Entry]]]) -> Table:
    """A row for each part: how many hold and how many do not, and what is behind both."""
    behind = "blind", "3 seeds, full size", "smaller"
    rows = []
    for title, entries in parts:
        measured = [entry for entry in in_force(entries) if entry.results]
        good = holding(measured)
        others = [entry for entry in measured if entry not in good]
        if measured:
            rows.append([title, *_behind(good), *_behind(others)])
    return [["section", "hold", *behind, "do not", *behind], *rows]


def _behind(entries: Sequence[Entry]) -> list[str]:
    """How many they are, and how many of them are blind, of several seeds, or smaller than in the paper."""
    kinds = (
        lambda entry: True,
        lambda entry: not entry.claim.seen_before,
        lambda entry: size_of(entry) == SEVERAL,
        lambda entry: size_of(entry) in (COARSE, REDUCED),
    )
    return [_number(sum(map(kind, entries))) for kind in kinds]


def _number(count: int) -> str:
    return str(count) if count else ""
