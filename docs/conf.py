"""How Sphinx builds this site: ``sphinx-build -W --keep-going docs build/docs`` (extra ``docs`` of setup.cfg).

Everything that a page loads is in the build: the theme's fonts are the reader's own, and no script is fetched.
"""

import sys
from importlib import metadata
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

project = "swsearch"
author = "the swsearch authors"
copyright = "the swsearch authors, Apache 2.0"  # Sphinx's name for it
try:
    release = metadata.version("swsearch")
except metadata.PackageNotFoundError:  # built in a checkout that is not installed
    release = "checkout"
version = release

extensions = [
    "myst_parser",  # pages are Markdown, so that they can be read where they lie, too
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",  # reads the sections of numpydoc
    "generated",
]
exclude_patterns = ["extensions"]

default_role = "py:obj"  # docstrings name objects in single backquotes, code in double ones
autodoc_typehints = "none"  # docstrings say types
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
napoleon_google_docstring = False
napoleon_use_param = False  # parameters that share a description stay together
napoleon_use_rtype = False

myst_enable_extensions = ["deflist", "attrs_block"]  # the second one for the glossary
myst_heading_anchors = 3
smartquotes_action = "D"  # dashes alone: quotes of commands stay as they are

html_theme = "furo"
html_title = f"swsearch {release}"
html_show_sphinx = False
html_copy_source = False
html_static_path = ["static"]
html_css_files = ["pages.css"]
templates_path: list[str] = []
