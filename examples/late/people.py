"""Stands in for two people who label: `python late/people.py ITEMS OUT N` serves ITEMS and gives N labels each."""

import html
import re
import signal
import subprocess
import sys
import urllib.parse
import urllib.request

WANTED = ("sorry|excuse", "broke|closed|torn", "Monday|tomorrow|two days", "refund|free of|voucher")


def grade(page: str, rater: str) -> int:
    """A point for each thing that the house asks for; the second person is a little less careful."""
    shown = html.unescape(re.findall(r'aria-label="Response">(.*?)</div>', page, re.DOTALL)[0])
    points = sum(re.search(each, shown) is not None for each in WANTED)
    return 1 + max(0, points - (rater == "2" and len(shown) % 9 == 0))


def main(items: str, out: str, most: int) -> None:
    """Serve the items, label as each rater in turn, and stop the server."""
    command = [sys.executable, "-m", "dikast", "annotate", items, "--rubric", "late/house.yaml", "--raters", "2",
               "--out", out, "--port", "0"]  # fmt: skip
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    links = {}
    for line in server.stderr:
        name, _, link = line.strip().removeprefix("rater ").partition(": ")
        links[name] = link
        if name == "progress":
            break
    for rater in ("1", "2"):
        with urllib.request.urlopen(links[rater]) as answer:
            page = answer.read().decode()
        for _ in range(most):
            if "All done" in page:
                break
            task = re.findall(r'name="task" value="(\d+)"', page)[0]
            form = urllib.parse.urlencode({"task": task, "value": grade(page, rater)}).encode()
            with urllib.request.urlopen(f"{links[rater]}/label", form) as answer:
                page = answer.read().decode()
    server.send_signal(signal.SIGTERM)
    server.wait()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
