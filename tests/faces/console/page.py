"""What a page says, read as a browser reads it."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

import httpx2

_VOID = {"input", "img", "meta", "link", "br"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    text: str = ""
    inside: list[str] = field(default_factory=list[str])
    """Tags of its ancestors."""


class Page(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self._open: list[Element] = []
        self.html = html
        self.feed(html)

    @staticmethod
    def of(response: httpx2.Response) -> Page:
        return Page(response.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs}, inside=[one.tag for one in self._open])
        self.elements.append(element)
        if tag not in _VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        while any(element.tag == tag for element in self._open):
            if self._open.pop().tag == tag:
                return

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.text += data

    def all(self, tag: str, **attributes: str) -> list[Element]:
        wanted = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
        return [
            element
            for element in self.elements
            if element.tag == tag and all(element.attributes.get(name) == value for name, value in wanted.items())
        ]

    def one(self, tag: str, **attributes: str) -> Element:
        found = self.all(tag, **attributes)
        assert len(found) == 1, f"{len(found)} of {tag} {attributes}"
        return found[0]

    def by_id(self, id_: str) -> Element:
        found = [element for element in self.elements if element.attributes.get("id") == id_]
        assert len(found) == 1, f"{len(found)} elements with the id {id_}"
        return found[0]

    @property
    def csrf(self) -> str:
        return self.all("input", name="csrf")[0].attributes["value"]

    def fields(self, action: str) -> list[tuple[str, str]]:
        """What a browser would post for the form with this action, untouched (text areas lose their first newline)."""
        form = self.one("form", action=action)
        start = self.elements.index(form)
        pairs: list[tuple[str, str]] = []
        for element in self.elements[start + 1 :]:
            if "form" not in element.inside:
                break
            name = element.attributes.get("name")
            if not name or element.tag == "button":
                continue
            kind = element.attributes.get("type")
            if element.tag == "textarea":
                pairs.append((name, element.text.removeprefix("\n").replace("\n", "\r\n")))
            elif element.tag == "select":
                options = [o for o in self.elements if o.tag == "option" and self._belongs(o, element)]
                chosen = [o for o in options if "selected" in o.attributes] or options[:1]
                pairs += [(name, option.attributes.get("value", option.text)) for option in chosen]
            elif element.tag == "input" and (kind not in ("radio", "checkbox") or "checked" in element.attributes):
                pairs.append((name, element.attributes.get("value", "")))
        return pairs

    def _belongs(self, option: Element, select: Element) -> bool:
        """Between this select and the next element that is no option."""
        index = self.elements.index(select)
        for element in self.elements[index + 1 :]:
            if element.tag != "option":
                return False
            if element is option:
                return True
        return False
