"""Renders Markdown as GitHub does, by its own renderer, and prints the cells of all tables and the elements as JSON."""

import json
import sys

import cmarkgfm
from lxml import html


def main(path):
    text = open(path, encoding="utf-8").read()
    # GitHub lets HTML through this renderer and cleans it up afterwards; here all of it must be harmless by itself.
    options = cmarkgfm.cmark.Options.CMARK_OPT_UNSAFE
    page = html.fromstring(f"<div>{cmarkgfm.github_flavored_markdown_to_html(text, options)}</div>")
    tables = [
        [[" ".join(cell.text_content().split()) for cell in row] for row in table.iter("tr")]
        for table in page.iter("table")
    ]
    elements = sorted({element.tag for element in page.iter() if isinstance(element.tag, str)})
    # Outside of code, GitHub takes this for people, issues and links.
    for code in list(page.iter("code")):
        tail, parent, before = code.tail or "", code.getparent(), code.getprevious()
        if before is not None:
            before.tail = (before.tail or "") + tail
        else:
            parent.text = (parent.text or "") + tail
        parent.remove(code)
    first = text.split("\n", 1)[0]
    json.dump({"first": first, "tables": tables, "elements": elements, "prose": page.text_content()}, sys.stdout)


main(sys.argv[1])
