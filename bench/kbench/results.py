"""Figures, the table, and the file of results."""
import datetime
import json
import os
import platform
import statistics

from . import procs


class Figure:
    """What the trials of one thing gave: `values` in `unit`."""
    def __init__(self, values, unit):
        self.values = list(values)
        self.unit = unit

    @property
    def median(self):
        return statistics.median(self.values)

    def minus(self, base):
        return Figure([value - base for value in self.values], self.unit)

    def text(self):
        return number(self.median)

    def span(self):
        return f"{number(min(self.values))}-{number(max(self.values))}"

    def json(self):
        return {
            "unit": self.unit, "median": self.median, "min": min(self.values), "max": max(self.values), "trials":
            self.values
        }


def number(value):
    """Three figures or so, thousands apart."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


class Goal:
    """A limit for a value.

    `ratio` is the value as a part of the limit (of 0: the value); `void` says why the value shows nothing, if so.
    """
    def __init__(self, words, value, limit, at_least=False, void=""):
        self.words, self.void = words, void
        self.ratio = value / limit if limit else value
        self.met = not void and (value >= limit if at_least else value <= limit)

    def text(self):
        if self.void:
            return f"{self.words}: NOT SHOWN, {self.void}"
        return f"{self.words}: {'met' if self.met else 'NOT MET'} ({number(self.ratio)})"

    def json(self):
        return {"goal": self.words, "met": self.met, "ratio_to_goal": self.ratio, "void": self.void}


class Row:
    """One line of the table. `ratio` is the peer's median divided by kymo's, or None."""
    def __init__(self, what, tracer, figure, ratio=None, goals=(), note=""):
        self.what, self.tracer, self.figure = what, tracer, figure
        self.ratio, self.goals, self.note = ratio, list(goals), note

    def cells(self):
        ratio = "" if self.ratio is None else f"{number(self.ratio)}x"
        goals = "; ".join(goal.text() for goal in self.goals)
        return [
            self.what, self.tracer,
            self.figure.text(),
            self.figure.span(), self.figure.unit, ratio, "; ".join(filter(None, [goals, self.note]))
        ]

    def json(self):
        return {
            "what": self.what, "tracer": self.tracer, "figure": self.figure.json(), "peer_by_kymo": self.ratio, "goals":
            [goal.json() for goal in self.goals], "note": self.note
        }


HEAD = ["what", "tracer", "median", "min-max", "unit", "peer/kymo", "goal: met or not (value/goal)"]
RIGHT = {2, 3, 5}


def table(sections):
    """The text of {title: rows}."""
    body = [(title, [row.cells() for row in rows]) for title, rows in sections.items() if rows]
    cells = [HEAD] + [row for _, rows in body for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(HEAD))]

    def line(row):
        return "  ".join(
            cell.rjust(widths[i]) if i in RIGHT else cell.ljust(widths[i]) for i, cell in enumerate(row)).rstrip()

    lines = [line(HEAD), "-" * len(line(HEAD))]
    for title, rows in body:
        lines += ["", title]
        last = None
        for row in rows:
            lines.append(line(row if row[0] != last else ["", *row[1:]]))
            last = row[0]
    return "\n".join(lines)


def _first_line(argv):
    try:
        done = procs.run(argv, timeout=10, check=False)
    except procs.BenchError:
        return None
    lines = (done.stdout or done.stderr).splitlines()
    return lines[0] if lines else None


def machine(repository):
    """What the figures were measured on and with."""
    cpu = None
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        cpu = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), None)
    return {
        "cpu": cpu, "cpus": os.cpu_count(), "cpus_used": sorted(os.sched_getaffinity(0)), "kernel": platform.release(),
        "libc": " ".join(platform.libc_ver()), "gcc": _first_line(["gcc", "--version"]), "lttng": _first_line(
            ["lttng", "--version"]), "uftrace": _first_line(["uftrace", "--version"]), "bpftrace": _first_line(
                ["bpftrace",
                 "--version"]), "commit": _first_line(["git", "-C", repository, "describe", "--always", "--dirty"]),
    }


def save(path, options, where, sections, unavailable, raw):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    content = {
        "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"), "machine": where, "options":
        options, "unavailable": unavailable, "rows":
        {title: [row.json() for row in rows] for title, rows in sections.items()}, "raw": raw,
    }
    with open(path, "w", encoding="utf-8") as file:
        json.dump(content, file, indent=1)
        file.write("\n")
