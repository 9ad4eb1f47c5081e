"""What people say about runs: a name, tags and a note. None of it is part of a run, or of its id.

    store.tag("41630c", "good", remove=["draft"])
    store.set_name("41630c", "baseline")
    store.set_note("41630c", "the one in Figure 2")

A run that is trained again keeps them. They are in the index and, for a new index, in a small file for each run.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from grokscope.errors import SpecError, StoreError, quoted
from grokscope.store.contents import Damaged, document_bytes
from grokscope.store.files import write_atomically
from grokscope.store.opened import as_store_error
from grokscope.store.records import StoredRun
from grokscope.store.runs import Runs
from grokscope.store.schema import REMARKS_SEAL, SOUND_REMARKS

_WORD = re.compile(r"\w[\w.:/+-]*")
_MOST_LETTERS = 60  # of a tag or a name
_MOST_TAGS = 50
_MOST_OF_A_NOTE = 4000


@dataclass(frozen=True)
class Remarks:
    """A name, tags and a note; all may be missing."""

    name: str | None = None
    tags: tuple[str, ...] = ()
    note: str = ""

    def joined(self, other: "Remarks") -> "Remarks":
        """What two stores say about a run: these come first, and nothing is lost but a second name.

        >>> Remarks("best", ("good",), "mine").joined(Remarks("other", ("fast",), "theirs"))
        Remarks(name='best', tags=('fast', 'good'), note='mine\\ntheirs')
        """
        tags = tuple(sorted({*self.tags, *other.tags}))
        notes = [self.note] if other.note in self.note else [*filter(None, [self.note]), other.note]
        return Remarks(self.name or other.name, tags, "\n".join(notes))

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"name": self.name, "tags": list(self.tags), "note": self.note}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "Remarks":
        """The inverse of `to_dict`; raises SpecError if nobody can have said that."""
        name, note = content["name"], content["note"]
        tags = tuple(sorted({checked_tag(tag) for tag in content["tags"]}))
        return cls(None if name is None else checked_name(name), tags, checked_note(note))


def checked_tag(tag: object) -> str:
    """A tag, or an error that says what one looks like.

    >>> checked_tag("seed:3")
    'seed:3'
    """
    return _checked_word("tag", tag)


def checked_name(name: object) -> str:
    """The name of a run, or an error. It must not look like an id, since a run may be called by either."""
    word = _checked_word("name", name)
    if re.fullmatch("[0-9a-f]{1,16}", word):
        raise SpecError(f"name = {quoted(word)} is not allowed: it could be the beginning of a run's id")
    if word.partition(":")[0] == "analytic":
        raise SpecError(f"name = {quoted(word)} is not allowed: commands mean the closed-form network by it")
    return word


def checked_note(note: object) -> str:
    """A note, or an error. Lines are allowed, other control characters are not."""
    if not isinstance(note, str) or not all(line.isprintable() for line in note.replace("\t", " ").splitlines()):
        raise SpecError(f"note = {quoted(note)} is not allowed: must be plain text, without control characters")
    if len(note) > _MOST_OF_A_NOTE:
        raise SpecError(f"the note has {len(note):,} characters: at most {_MOST_OF_A_NOTE:,} are allowed")
    return note.strip()


def _checked_word(what: str, word: object) -> str:
    if not isinstance(word, str) or not _WORD.fullmatch(word) or len(word) > _MOST_LETTERS:
        raise SpecError(
            f"{what} = {quoted(word)} is not allowed: must be letters and digits, with _ . : / + - between, at most "
            f"{_MOST_LETTERS} of them"
        )
    return word


class RemarkedRuns(Runs):
    """Runs, and what people say about them."""

    def tag(self, run: str, *tags: str, remove: Iterable[str] = ()) -> StoredRun:
        """Add tags to a run, and remove others."""
        added, removed = {checked_tag(tag) for tag in tags}, set([remove] if isinstance(remove, str) else remove)
        if both := added & removed:
            raise SpecError(f"the tag {quoted(min(both))} cannot be both added and removed")
        run_id = self.resolve_id(run)
        with self._changing(run_id), self._transaction():
            before = self._remarks_of(run_id)
            self._say(run_id, replace(before, tags=tuple(sorted((set(before.tags) | added) - removed))))
        return self.resolve(run_id)

    def set_name(self, run: str, name: str) -> StoredRun:
        """Give a run a name, by which commands find it too; "" takes it away. No two runs have the same."""
        checked = checked_name(name) if name else None
        run_id = self.resolve_id(run)
        with self._changing(run_id), self._transaction():
            taken = self._index.execute("SELECT run_id FROM remarks WHERE name = ? AND run_id != ?", (checked, run_id))
            if other := taken.fetchone():
                raise StoreError(f"run {other[0]} is called {checked} already: give it another name first")
            self._say(run_id, replace(self._remarks_of(run_id), name=checked))
        return self.resolve(run_id)

    def set_note(self, run: str, note: str) -> StoredRun:
        """Write something about a run, in place of an earlier note; "" takes it away."""
        checked = checked_note(note)
        run_id = self.resolve_id(run)
        with self._changing(run_id), self._transaction():
            self._say(run_id, replace(self._remarks_of(run_id), note=checked))
        return self.resolve(run_id)

    def remarks(self) -> dict[str, Remarks]:
        """What is said about runs, by their ids."""
        found, damaged = self.sound_and_damaged_remarks()
        self._warn("tags, name or note of run", damaged)
        return found

    def sound_and_damaged_remarks(self) -> tuple[dict[str, Remarks], list[str]]:
        """The remarks, and the runs whose remarks have an entry in the index that has been changed."""
        with self._reading():
            rows = self._index.execute(
                f"SELECT run_id, name, tags, note, {SOUND_REMARKS} FROM remarks ORDER BY run_id"
            ).fetchall()
        found, damaged = {}, []
        for run_id, name, tags, note, sound in rows:
            if sound:
                found[run_id] = Remarks(name, tuple(map(str, json.loads(tags))), note)
            else:
                damaged.append(str(run_id))
        return found, damaged

    def put_remarks(self, run_id: str, remarks: Remarks) -> Remarks:
        """Say this about a run, in place of what was said before. A name that another run has gets a number."""
        with self._changing(run_id), self._transaction():
            rows = self._index.execute("SELECT name FROM remarks WHERE run_id != ? AND name IS NOT NULL", (run_id,))
            taken = {name for (name,) in rows}
            name, number = remarks.name, 1
            while name in taken:
                number += 1
                name = f"{remarks.name}-{number}"
            said = replace(remarks, name=name)
            self._say(run_id, said)
        return said

    def _changing(self, run_id: str) -> Any:
        return as_store_error(f"cannot write the tags, name or note of run {run_id} to the store {self.path}")

    def _remarks_of(self, run_id: str) -> Remarks:
        query = f"SELECT name, tags, note FROM remarks WHERE run_id = ? AND {SOUND_REMARKS}"
        row = self._index.execute(query, (run_id,)).fetchone()
        return Remarks(row[0], tuple(map(str, json.loads(row[1]))), row[2]) if row else Remarks()

    def _say(self, run_id: str, remarks: Remarks) -> None:
        """Inside a transaction, so that nobody else changes them meanwhile: the file first, then the index."""
        if len(remarks.tags) > _MOST_TAGS:
            raise SpecError(f"run {run_id} would have {len(remarks.tags)} tags: at most {_MOST_TAGS} are allowed")
        if remarks == Remarks():
            self._index.execute("DELETE FROM remarks WHERE run_id = ?", (run_id,))
            self._remove([self._remarks_file(run_id)])
            return
        self._remarks_file(run_id).parent.mkdir(exist_ok=True)
        content = document_bytes("remarks", {"run_id": run_id, **remarks.to_dict()})
        write_atomically(self._remarks_file(run_id), content)
        row = (run_id, remarks.name, json.dumps(remarks.tags), remarks.note)
        self._index.execute("DELETE FROM remarks WHERE run_id = ?", (run_id,))
        self._index.execute("INSERT INTO remarks VALUES (?, ?, ?, ?, '')", row)  # fails if the name is another run's
        self._index.execute(f"UPDATE remarks SET seal = {REMARKS_SEAL} WHERE run_id = ?", (run_id,))


def remarks_from(document: dict[str, Any], run_id: str) -> Remarks:
    """What the file of a run's remarks says."""
    try:
        if document["run_id"] != run_id:
            raise Damaged("it is about another run")
        return Remarks.from_dict(document)
    except (KeyError, TypeError, SpecError) as error:
        raise Damaged(f"it says what nobody can have said ({error})") from None
