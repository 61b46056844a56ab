"""Pages generated while the site is built: the API reference, and files from the repository's root."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import api_pages
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
#: Files of the repository that become pages of the site.
COPIED = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "benchmarks/README.md": "benchmarks.md"}


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages."""
    for path, text in _generated().items():
        files.append(File.generated(config, path, content=text))
    return files


def _generated() -> dict[str, str]:
    found = api_pages.pages()
    texts = {page.path: api_pages.module_page(page) for page in found}
    texts["api/index.md"] = api_pages.index_page(found)
    texts["api/modules.md"] = api_pages.modules_page(found)
    for source, path in COPIED.items():
        texts[path] = (ROOT / source).read_text(encoding="utf-8").replace("](../docs/", "](")
    return texts


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Turn names of pages in the text, such as `docs/settings.md`, into links."""
    here = page.file.src_uri
    up = "../" * here.count("/")

    def link(match: re.Match[str]) -> str:
        path = match[1]
        return f"[{match[0]}]({up}{path})" if files.get_file_from_path(path) and path != here else match[0]

    lines, fenced = [], False
    for line in markdown.split("\n"):
        fenced ^= line.lstrip().startswith("```")
        lines.append(line if fenced else re.sub(r"(?<!\[)`docs/([\w/]+\.md)`(?!\])", link, line))
    return "\n".join(lines)
