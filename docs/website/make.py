"""Build the documentation as a website: `make docs`, or `python docs/website/make.py build/site`.

The site mirrors the repository: docs/sweeps.md becomes docs/sweeps.html, README.md becomes index.html. So a link that
works in the Markdown files works here too, with another ending. Formulas become MathML; nothing is loaded from
elsewhere, and the pages can be opened from disk. The lists of docs/README.md are the navigation.
"""

import html
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from latex2mathml.converter import convert as mathml
from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.util import ClassNotFound

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
MAP = PurePosixPath("docs/README.md")
LISTED_FOLDERS = ("examples",)  # folders of programs that pages link to


class Heading(NamedTuple):
    """A heading of a page."""

    level: int
    text: str
    anchor: str


def pages() -> list[PurePosixPath]:
    """All Markdown files of the documentation, from the root of the repository."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    return sorted(PurePosixPath(page.relative_to(ROOT).as_posix()) for page in found)


def parse(text: str) -> list[Token]:
    """Markdown as a list of tokens, headings with their anchors."""
    tokens = _parser().parse(text)
    seen: dict[str, int] = {}
    for token, inline in pairwise(tokens):
        if token.type == "heading_open":
            anchor = _slug(_text_of(inline))
            seen[anchor] = seen.get(anchor, -1) + 1
            token.attrSet("id", f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
    return tokens


def headings(tokens: list[Token]) -> list[Heading]:
    """The headings of a page, in order."""
    return [
        Heading(int(token.tag[1]), _text_of(inline), str(token.attrGet("id")))
        for token, inline in pairwise(tokens)
        if token.type == "heading_open"
    ]


def links(tokens: list[Token]) -> Iterator[Token]:
    """All links and pictures of a page."""
    for token in tokens:
        for child in token.children or []:
            if child.type in ("link_open", "image"):
                yield child


def target_of(token: Token) -> str:
    """Where a link leads, or what a picture shows."""
    return str(token.attrGet("href" if token.type == "link_open" else "src"))


def build(site: Path) -> None:
    """Write the whole site."""
    contents = {page: parse((ROOT / page).read_text(encoding="utf-8")) for page in pages()}
    navigation = _navigation(contents[MAP])
    copied = {name for page, tokens in contents.items() for name in _files_linked(page, tokens)}
    for folder in LISTED_FOLDERS:
        programs = sorted((ROOT / folder).glob("*.py"))
        copied |= {PurePosixPath(program.relative_to(ROOT).as_posix()) for program in programs}
        listing = "\n".join(f"- [{program.name}]({program.name})" for program in programs)
        contents[PurePosixPath(folder, "README.md")] = parse(f"# {folder.capitalize()}\n\n{listing}")
    for page, tokens in contents.items():
        for link in links(tokens):
            link.attrSet("href" if link.type == "link_open" else "src", _rewritten(page, target_of(link)))
        body = _parser().renderer.render(tokens, _parser().options, {})
        _write(site, page, _title(tokens, page), body, navigation, headings(tokens))
    for name in copied:
        if (program := _highlighted(name)) is not None:
            _write(site, name, name.name, f"<h1>{name.name}</h1>{program}", navigation, [])
        else:
            (site / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, site / name)
    (site / "style.css").write_text((HERE / "style.css").read_text(encoding="utf-8") + _code_colours())
    shutil.copyfile(HERE / "search.js", site / "search.js")
    (site / "search-index.js").write_text(f"const INDEX = {json.dumps(_search_index(contents))}", encoding="utf-8")


# ---- Markdown ---------------------------------------------------------------------------------------------------


def _parser() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"highlight": _coloured}).enable(["table", "strikethrough"])
    markdown.use(dollarmath_plugin, renderer=_formula, allow_digits=False)
    return markdown


def _formula(tex: str, options: dict[str, bool]) -> str:
    return str(mathml(tex.strip(), display="block" if options["display_mode"] else "inline"))


def _coloured(code: str, language: str, _: object) -> str:
    """A block of code; without a language it is left as it is."""
    try:
        lexer = get_lexer_by_name(language or "text")
    except ClassNotFound:
        return ""
    return str(highlight(code, lexer, HtmlFormatter(nowrap=True)))


def _highlighted(name: PurePosixPath) -> str | None:
    """A program as HTML; None for other files."""
    if name.suffix not in (".py", ".hpp", ".cpp", ".toml"):
        return None
    lexer = get_lexer_for_filename(name.name)
    code = highlight((ROOT / name).read_text(encoding="utf-8"), lexer, HtmlFormatter(nowrap=True))
    return f"<pre><code>{code}</code></pre>"


def _code_colours() -> str:
    light, dark = (HtmlFormatter(style=style).get_style_defs("pre") for style in ("friendly", "github-dark"))
    return f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"


def _text_of(inline: Token) -> str:
    """A heading without its markup."""
    return "".join(child.content for child in inline.children or [] if child.type in ("text", "code_inline"))


def _slug(text: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


def _title(tokens: list[Token], page: PurePosixPath) -> str:
    return next((heading.text for heading in headings(tokens)), page.stem)


# ---- links ------------------------------------------------------------------------------------------------------


def _files_linked(page: PurePosixPath, tokens: list[Token]) -> Iterator[PurePosixPath]:
    """What has to be copied: the pictures and files that a page links to."""
    for link in links(tokens):
        target = target_of(link).partition("#")[0]
        if target and "://" not in target and not target.startswith("mailto:"):
            path = PurePosixPath(os.path.normpath(page.parent / target))
            if path.suffix != ".md" and (ROOT / path).is_file():
                yield path


def _rewritten(page: PurePosixPath, target: str) -> str:
    """A link between Markdown files as one between pages."""
    path, hash_sign, anchor = target.partition("#")
    if not path or "://" in path or path.startswith("mailto:"):
        return target
    name = PurePosixPath(os.path.normpath(page.parent / path))
    if (ROOT / name).is_dir():
        name /= "README.md"
    place = _place(name) if name.suffix == ".md" or _highlighted(name) else name
    return _relative(place, page) + hash_sign + anchor


def _place(name: PurePosixPath) -> PurePosixPath:
    """Where the page of a file lies in the site."""
    if name.name == "README.md":
        return name.with_name("index.html")
    return name.with_suffix(".html") if name.suffix == ".md" else name.with_name(name.name + ".html")


def _relative(place: PurePosixPath, page: PurePosixPath) -> str:
    return PurePosixPath(os.path.relpath(place, _place(page).parent)).as_posix()


# ---- around a page ----------------------------------------------------------------------------------------------


def _navigation(tokens: list[Token]) -> list[tuple[str, list[tuple[str, PurePosixPath]]]]:
    """The sections of the map, each with its title and its pages."""
    sections: list[tuple[str, list[tuple[str, PurePosixPath]]]] = []
    in_item = False  # before the first link of an item of a list
    for token, following in zip(tokens, [*tokens[1:], tokens[-1]], strict=True):
        if token.type == "heading_open" and token.tag == "h2":
            sections.append((_text_of(following), []))
        in_item = in_item or token.type == "list_item_open"
        first = next((child for child in token.children or [] if child.type == "link_open"), None)
        if in_item and first is not None and sections:
            place = PurePosixPath(os.path.normpath(MAP.parent / target_of(first).partition("#")[0]))
            words = (token.children or [])[(token.children or []).index(first) + 1]
            sections[-1][1].append((words.content, place))
            in_item = False
    return sections


def _write(
    site: Path,
    page: PurePosixPath,
    title: str,
    body: str,
    navigation: list[tuple[str, list[tuple[str, PurePosixPath]]]],
    of_page: list[Heading],
) -> None:
    menu = []
    for section, entries in navigation:
        menu.append(f"<h2>{html.escape(section)}</h2><ul>")
        for words, place in entries:
            here = ' aria-current="page"' if place == page else ""
            menu.append(f'<li><a href="{_relative(_place(place), page)}"{here}>{html.escape(words)}</a></li>')
        menu.append("</ul>")
    contents = [
        f'<li><a href="#{each.anchor}">{html.escape(each.text)}</a></li>' for each in of_page if each.level == 2
    ]
    values = {
        "title": html.escape(title),
        "root": _relative(PurePosixPath("."), page),
        "menu": "\n".join(menu),
        "body": re.sub(r"(<table>.*?</table>)", r'<div class="wide">\1</div>', body, flags=re.DOTALL),
        "contents": f"<h2>On this page</h2><ul>{''.join(contents)}</ul>" if len(contents) > 1 else "",
    }
    template = (HERE / "page.html").read_text(encoding="utf-8")
    file = site / _place(page)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(re.sub(r"\{\{(\w+)\}\}", lambda found: values[found[1]], template), encoding="utf-8")


def _search_index(contents: dict[PurePosixPath, list[Token]]) -> list[list[str]]:
    """For each section of each page: the page's title, the heading, the address, and the words."""
    index = []
    for page, tokens in contents.items():
        title, rows = _title(tokens, page), []
        for token, inline in zip(tokens, [*tokens[1:], tokens[-1]], strict=True):
            if token.type == "heading_open":
                anchor = token.attrGet("id")
                rows.append([title, _text_of(inline), f"{_place(page)}#{anchor}", ""])
            elif token.type in ("inline", "fence") and rows:
                rows[-1][3] += " " + token.content
        index += rows
    return index


if __name__ == "__main__":
    destination = Path(sys.argv[1] if len(sys.argv) > 1 else "build/site")
    shutil.rmtree(destination, ignore_errors=True)
    build(destination)
    sys.stdout.write(f"{destination / 'index.html'}\n")
