"""HTML of displays, read with the standard library's parser."""

from html.parser import HTMLParser

_VOID = {"br", "hr", "img", "input", "meta", "link", "wbr"}
#: Tags that a display may contain; none of them loads or runs anything.
_TAGS = {
    "b", "caption", "code", "del", "details", "div", "ins", "pre", "span", "style", "summary", "table", "tbody", "td",
    "th", "thead", "tr", "wbr",
    "svg", "title", "path", "g", "rect", "text",
}  # fmt: skip


class Page(HTMLParser):
    """A parsed display.

    Attributes:
        text: the visible text, without the style sheet and the titles shown on hovering.
        tags: names of the elements, in order.
    """

    def __init__(self, source: str) -> None:
        super().__init__()
        self.text, self.tags, self._open = "", [], []
        self.feed(source)
        self.close()
        assert self._open == [], f"not closed: {self._open}"

    def handle_starttag(self, tag, attrs):
        assert tag in _TAGS, tag
        assert not [name for name, _ in attrs if name.startswith("on") or name in ("href", "src")]
        assert len({name for name, _ in attrs}) == len(attrs)
        self.tags.append(tag)
        if tag not in _VOID:
            self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open and self._open[-1] == tag, f"</{tag}> closes {self._open}"
        self._open.pop()

    def handle_data(self, data):
        if "style" not in self._open and "title" not in self._open:
            self.text += data


def page(value: object) -> Page:
    """Parse the HTML of a value, which must be well formed."""
    return Page(value._repr_html_())


def fits(text: str, columns: int = 100) -> bool:
    """Return True if no line is longer than `columns`; escape codes do not count."""
    from functorch_like.markup import terminal

    return max(map(terminal.length, text.split("\n"))) <= columns
