# The site's settings for Sphinx; make_site.py gives it its sources.
import pathlib
import re

here = pathlib.Path(__file__).resolve().parent
version_header = (here.parent.parent / "include/tilewright/version.h").read_text()

project = "Tilewright"
release = version = re.search(r'TILEWRIGHT_VERSION "(.*)"', version_header)[1]
extensions = ["myst_parser"]
myst_heading_anchors = 4
root_doc = "index"
highlight_language = "none"

html_theme = "furo"
html_title = f"Tilewright {version}"
html_static_path = [str(here / "static")]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_use_index = False
html_show_search_summary = False  # it fetches the pages that it found, which a browser refuses for files
