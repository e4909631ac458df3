"""XML as a tree of nodes that know their line, read without entities, external files or surprises."""

import os
from xml.etree.ElementTree import ParseError

from defusedxml.common import DefusedXmlException, DTDForbidden
from defusedxml.ElementTree import DefusedXMLParser

from decision.files.text import read_bytes
from decision.model.errors import InputError


class XmlNode:
    """An element: its tag, attributes, children, and where it is."""

    __slots__ = ("attributes", "children", "line", "path", "tag")

    def __init__(self, tag: str, attributes: dict[str, str], path: str, line: int) -> None:
        self.tag = tag
        self.attributes = attributes
        self.path = path
        self.line = line
        self.children: list[XmlNode] = []

    @property
    def element(self) -> str:
        """What the element is called in messages: ``<host> 'taurus-1'``."""
        name = self.attributes.get("id", self.attributes.get("version"))
        return f"<{self.tag}>" if name is None else f"<{self.tag}> {name!r}"

    def error(self, text: str) -> InputError:
        """An error that names the file, the line and the element."""
        return ElementError(self, text)


class ElementError(InputError):
    """A fault of one element."""

    def __init__(self, node: XmlNode, text: str) -> None:
        super().__init__(f"{node.path}, line {node.line}, {node.element}: {text}")
        self.node = node
        self.text = text  # the fault alone


class _Tree:
    """Receives a parser's events and builds nodes from them."""

    def __init__(self, path: str, first_line: int) -> None:
        self.path = path
        self.parser = _Parser(target=self, forbid_dtd=True, forbid_entities=True, forbid_external=True)
        self.first_line = first_line
        self.open: list[XmlNode] = []
        self.root: XmlNode | None = None

    def line(self) -> int:
        return int(self.parser.parser.CurrentLineNumber) + self.first_line

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        node = XmlNode(tag, attributes, self.path, self.line())
        if self.open:
            self.open[-1].children.append(node)
        else:
            self.root = node
        self.open.append(node)

    def end(self, tag: str) -> None:
        self.open.pop()

    def data(self, text: str) -> None:
        """Text between elements says nothing; but only with this method does the parser refuse unknown entities."""


class _Parser(DefusedXMLParser):
    """Allows a DOCTYPE only if it declares nothing itself. Nothing external is ever fetched."""

    def defused_start_doctype_decl(self, name: str, sysid: str, pubid: str, has_internal_subset: bool) -> None:
        if has_internal_subset:
            raise DTDForbidden(name, sysid, pubid)


def read_xml(path: str | os.PathLike[str]) -> XmlNode:
    """The root of an XML file.

    Raises:
        InputError: if the file is unreadable, not well-formed, or declares entities or a DTD of its own.
    """
    data = read_bytes(path)
    text = data.lstrip()  # SimGrid allows blank lines before <?xml
    tree = _Tree(str(path), data[: len(data) - len(text)].count(b"\n"))
    try:
        tree.parser.feed(text)
        tree.parser.close()
    except ParseError as error:
        line = error.position[0] + tree.first_line
        reason = str(error).partition(": line")[0]  # the parser says the line, too
        raise InputError(f"{path}, line {line}: not well-formed XML: {reason}") from None
    except DefusedXmlException:
        reason = "a DOCTYPE with declarations, an entity or an external file is refused; remove it"
        raise InputError(f"{path}, line {tree.line()}: {reason}") from None
    except (ValueError, LookupError) as error:  # an unknown or impossible encoding
        raise InputError(f"{path}: not readable as XML: {error}") from None
    if tree.root is None:
        raise InputError(f"{path}: not well-formed XML: no element found")
    return tree.root
