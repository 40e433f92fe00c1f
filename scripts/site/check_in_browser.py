#!/usr/bin/env python3
"""Opens every page of a site in Chromium, headless, at 1280 and at 390 pixels, and fails where a page is wider than the window, where an
element is cut off that cannot be scrolled, and where the browser complains. Needs Debian's chromium; serves the site on this machine's loopback
alone, while it runs.

Usage: scripts/site/check_in_browser.py FOLDER [--screenshot PAGE WIDTH FILE.png]"""
import functools
import http.server
import json
import pathlib
import re
import subprocess
import sys
import threading

CHROMIUM = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr"]
# Each page in turn in a frame of the width: a phone's is less than the browser's own window may be.
CHECK = """<body><iframe id="frame" style="border:0"></iframe><pre id="said"></pre><script>
const frame = document.getElementById("frame"), said = document.getElementById("said");
async function load(page, width) {
  frame.width = width;
  frame.height = 900;
  await new Promise(done => { frame.onload = done; frame.src = page; });
  await new Promise(done => setTimeout(done, 30));
}
function isScrolled(element, style) {
  for (let outer = element.parentElement; outer; outer = outer.parentElement)
    if (["auto", "scroll"].includes(style(outer).overflowX)) return true;
  return false;
}
function problem(page, width) {
  const style = element => page.defaultView.getComputedStyle(element);
  if (page.documentElement.scrollWidth > width + 1) return "is " + page.documentElement.scrollWidth + " pixels wide";
  for (const each of page.querySelectorAll("article *")) {
    const place = each.getBoundingClientRect(), what = each.tagName + " '" + each.textContent.trim().slice(0, 40) + "'";
    if (place.width && place.right > width + 1 && !isScrolled(each, style)) return "cuts off " + what;
    if (style(each).overflowX == "hidden" && each.scrollWidth > each.clientWidth + 1) return "hides a part of " + what;
  }
}
(async () => {
  let count = 0;
  for (const width of [1280, 390])
    for (const page of PAGES) {
      await load(page, width);
      const found = problem(frame.contentDocument, width);
      if (found) said.textContent += page + " at " + width + " " + found + "\\n";
      ++count;
    }
  said.textContent += "seen: " + count;
})();
</script></body>"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    """The site, and one page beside it."""
    page = ""

    def do_GET(self):
        if self.path != "/check":
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(self.page.encode())

    def log_message(self, *_):
        pass


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    pages = sorted(str(file.relative_to(folder)) for file in folder.rglob("*.html"))
    screenshot = sys.argv[3:] if sys.argv[2:3] == ["--screenshot"] else None
    Quiet.page = CHECK.replace("PAGES", json.dumps(pages))
    if screenshot:
        Quiet.page = f'<body style="margin:0"><iframe src="{screenshot[0]}" width="{screenshot[1]}" height="1400" style="border:0"></iframe>'
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/check"
    if screenshot:
        subprocess.run([*CHROMIUM, "--window-size=1300,1400", "--virtual-time-budget=4000", f"--screenshot={screenshot[2]}", address], check=True,
                       stderr=subprocess.DEVNULL)
        return
    seen = subprocess.run([*CHROMIUM, "--window-size=1400,1000", "--virtual-time-budget=300000", "--dump-dom", address],
                          capture_output=True, text=True, timeout=600)
    said = re.search(r'<pre id="said">(.*?)</pre>', seen.stdout, re.DOTALL)
    if not said or f"seen: {2 * len(pages)}" not in said[1]:
        sys.exit(f"check_in_browser: not every page was seen\n{seen.stderr[-2000:]}")
    wrong = said[1].splitlines()[:-1] + [line for line in seen.stderr.splitlines() if "CONSOLE" in line]
    print("\n".join(wrong + [f"check_in_browser: {len(pages)} pages at 1280 and 390 pixels, {len(wrong)} problems"]))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
