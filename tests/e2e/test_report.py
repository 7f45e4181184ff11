"""The report page of the benchmark, looked at by a real browser: everything renders, and nothing is wider than a telephone.

The results are made up: every kind of record, more servers than there are marks, figures of many sizes, a wrong answer, and names that
would break a page that trusts them.
"""

import csv
import html
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import unittest
import xml.etree.ElementTree

import support
from support import Case

BENCH = pathlib.Path(os.environ.get("MAILYARD_BENCH", support.ROOT / "target/release/mailyard-bench")).resolve()
BROWSER = shutil.which("chromium")
BROWSER_SECONDS = 120
HOSTILE = "<b>x</b>\"&'"
SERVERS = ["mailyard-native", "dovecot-mbox", "dovecot-maildir", "dovecot-sdbox", "dovecot-mdbox", "cyrus", "courier", HOSTILE]
CONNECTIONS = [1, 2, 3, 7, 20]

# Loads the page in a frame of a given width and writes what it sees into its own document, which the browser then prints.
HARNESS = """<!doctype html><title>harness</title><iframe id="frame" style="width:{width}px;height:900px;border:0" src="{page}"></iframe>
<pre id="seen">nothing</pre><script>
const frame = document.getElementById("frame");
frame.addEventListener("load", () => {{
  const inside = frame.contentDocument, root = inside.documentElement;
  const scrolls = (element) => {{ for (let at = element; at; at = at.parentElement) if (getComputedStyle(at).overflowX === "auto") return true; return false; }};
  const wide = [...inside.querySelectorAll("body *")].filter((element) => element.getBoundingClientRect().right > root.clientWidth + 1
    && !scrolls(element)).map((element) => element.tagName + "." + element.getAttribute("class"));
  const outside = [...inside.querySelectorAll("figure svg")].flatMap((svg) => {{
    const frame = svg.getBoundingClientRect();
    return [...svg.querySelectorAll("text, g")].filter((mark) => {{ const box = mark.getBoundingClientRect();
      return box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1; }})
      .map((mark) => mark.textContent || mark.dataset.say); }});
  const mark = inside.querySelector("figure g[data-say]");
  mark.dispatchEvent(new frame.contentWindow.PointerEvent("pointermove", {{ bubbles: true, clientX: 100, clientY: 100 }}));
  document.getElementById("seen").textContent = JSON.stringify({{
    overflow: root.scrollWidth - root.clientWidth, wide: wide.slice(0, 5), outside: outside.slice(0, 5),
    plots: [...inside.querySelectorAll("figure svg")].filter((svg) => svg.getBoundingClientRect().height > 50).length,
    marks: inside.querySelectorAll("figure g[data-say] path[transform]").length,
    tables: inside.querySelectorAll("table").length, headings: [...inside.querySelectorAll("h2")].map((heading) => heading.textContent),
    hover: inside.getElementById("hover").textContent, broken: inside.querySelectorAll("b").length,
    colours: new Set([...inside.querySelectorAll(".legend svg path")].map((path) => frame.contentWindow.getComputedStyle(path).fill)).size,
    text: inside.body.innerText }});
}});
</script>"""


def made_up(seed):
    """The records of a run."""
    chance = random.Random(seed)
    machine = {"processor": "A processor with a rather long name @ 3.00GHz", "processors": 2, "memory_bytes": 25 << 30, "kernel": "Linux 6",
               "system": "Debian", "file_system": "ext4 (rw,relatime)"}
    yield {"record": "run", "command": ["mailyard-bench", "run", "--server", "a=imap://u:topsecret@h:1"], "version": "1", "began": 0,
           "machine": machine, "seed": 1, "repeat": 3, "quick": False}
    for name in SERVERS:
        yield {"record": "server", "name": name, "version": "1.0 " + "v" * 60, "format": "mbox", "durability": "all", "settings": ["a = 1"]}
    yield {"record": "limit", "name": "syncs", "how": "4 KiB each", "unit": "per_second", "values": [9000, 8000]}
    yield {"record": "note", "suite": "lisa2003", "server": "", "text": "cold: contents only"}
    for size in ["small", "large"]:
        for state in ["cold", "warm"]:
            for test in ["headers", "search \"happy\"", "expunge 1 %", "expunge 20 %"]:
                for server in [*SERVERS, "limit"]:
                    middle = 10 ** chance.uniform(-1.5, 3.5)
                    for turn in range(3):
                        wrong = server == "courier" and test == "headers"
                        verdict = {"verdict": "wrong", "why": "3 hits missing"} if wrong else {"verdict": "right"}
                        yield {"record": "sample", "suite": "lisa2003", "test": test, "size": size, "state": state, "server": server,
                               "measure": "time", "round": turn, "value": middle * chance.uniform(0.8, 1.2), "unit": "ms",
                               "better": "lower", "verdict": verdict}
    for connections in CONNECTIONS:
        for server in SERVERS:
            yield {"record": "sample", "suite": "populate2006", "test": "append", "parameters": {"connections": str(connections)},
                   "server": server, "measure": "rate", "round": 0, "value": 100 * connections ** chance.uniform(0.2, 1), "unit": "per_second",
                   "better": "higher", "verdict": {"verdict": "right"}}
    yield {"record": "problem", "server": "cyrus", "suite": "populate2006", "text": "it went away"}
    yield {"record": "end", "ended": 7200}


class Report(Case):
    def report(self, records):
        (self.folder / "results.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
        subprocess.run([BENCH, "report", self.folder], check=True, capture_output=True, timeout=60)
        return self.folder / "report.html"

    def browser(self, *arguments):
        self.assertIsNotNone(BROWSER, "Debian's package chromium is missing")
        command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--allow-file-access-from-files",
                   "--virtual-time-budget=10000", f"--user-data-dir={self.folder / 'browser'}", *arguments]
        return subprocess.run(command, check=True, capture_output=True, timeout=BROWSER_SECONDS, cwd=self.folder).stdout.decode()

    def seen(self, page, width):
        harness = self.folder / f"harness-{width}.html"
        harness.write_text(HARNESS.format(width=width, page=page.name))
        printed = self.browser("--window-size=1500,1000", "--dump-dom", harness.as_uri())
        return json.loads(html.unescape(re.search(r'<pre id="seen">(.*?)</pre>', printed, re.S)[1]))

    def test_renders_at_every_width(self):
        page = self.report(made_up(1))
        self.assertNotRegex(page.read_text(), r"(?:src|href)=\"(?!#)", "the page needs nothing from elsewhere")
        self.assertNotIn("topsecret", page.read_text())
        for width in (390, 768, 1280):
            with self.subTest(width=width):
                seen = self.seen(page, width)
                self.assertEqual((seen["overflow"], seen["wide"], seen["outside"]), (0, [], []))
                self.assertEqual(seen["plots"], 5, "four of marks and one of curves")
                self.assertEqual(seen["marks"], 4 * 4 * len(SERVERS) + len(CONNECTIONS) * len(SERVERS))
                self.assertEqual(seen["headings"], ["Summary", "lisa2003", "populate2006", "Machine and servers", "To repeat this"])
                self.assertIn("median", seen["hover"])
                self.assertEqual(seen["broken"], 0, "a name became markup")
                self.assertEqual(seen["colours"], len(SERVERS))
                for words in (HOSTILE, "3 hits missing", "it went away", "cold: contents only"):
                    self.assertIn(words, seen["text"])

    def test_screenshots(self):
        page = self.report(made_up(2))
        for name, dark in (("light", "0"), ("dark", "1")):
            picture = self.folder / f"{name}.png"
            self.browser("--window-size=1280,2400", f"--blink-settings=preferredColorScheme={'0' if dark == '1' else '1'}",
                         f"--screenshot={picture}", page.as_uri())
            self.assertEqual(picture.read_bytes()[:8], b"\x89PNG\r\n\x1a\n")
            self.assertGreater(picture.stat().st_size, 50_000, "an empty page makes a small picture")
            keep = os.environ.get("MAILYARD_SCREENSHOTS")
            if keep:
                shutil.copy(picture, pathlib.Path(keep) / picture.name)

    def test_pictures_that_stand_alone(self):
        self.report(made_up(5))
        pictures = sorted(self.folder.glob("plot-*.svg"))
        self.assertEqual(len(pictures), 5)
        for picture in pictures:
            root = xml.etree.ElementTree.parse(picture).getroot()
            self.assertEqual(root.tag, "{http://www.w3.org/2000/svg}svg")
            words = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
            self.assertTrue(set(SERVERS) <= set(words))
        shot = self.folder / "plot.png"
        self.browser("--window-size=560,900", f"--screenshot={shot}", pictures[0].as_uri())
        self.assertGreater(shot.stat().st_size, 15_000)
        keep = os.environ.get("MAILYARD_SCREENSHOTS")
        if keep:
            shutil.copy(shot, pathlib.Path(keep) / shot.name)

    def test_the_same_figures_in_every_form(self):
        page = self.report(made_up(3))
        report = json.loads((self.folder / "report.json").read_text())
        with open(self.folder / "report.csv", newline="") as file:
            rows = {(row["suite"], row["test"], row["size"], row["state"], row["parameters"], row["server"]): row for row in csv.DictReader(file)}
        cells = 0
        for suite in report["suites"]:
            for test in suite["tests"]:
                for server, cell in test["servers"].items():
                    parameters = " ".join(f"{name}={value}" for name, value in test["parameters"].items())
                    row = rows[suite["suite"], test["test"], test["size"], test["state"] or "", parameters, server]
                    self.assertAlmostEqual(float(row["median"]), cell["median"])
                    self.assertAlmostEqual(float(row["mean"]), sum(cell["values"]) / len(cell["values"]))
                    cells += 1
        self.assertEqual(cells, len(rows))
        self.assertTrue(page.exists())

    def test_a_run_that_was_cut_short(self):
        records = list(made_up(4))[:150]
        page = self.report(records)
        with open(self.folder / "results.jsonl", "a") as file:
            file.write('{"record":"sample","su')
        subprocess.run([BENCH, "report", self.folder], check=True, capture_output=True, timeout=60)
        self.assertIn("cut short", page.read_text())

    def test_no_results(self):
        done = subprocess.run([BENCH, "report", self.folder], capture_output=True, timeout=60)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(b"results.jsonl", done.stderr)


if __name__ == "__main__":
    unittest.main()
