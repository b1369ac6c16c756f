#!/usr/bin/env python3
"""Draws a timeline.json (Chrome trace, written with output.timeline) as a picture.

usage: timeline_png.py TIMELINE.json OUT.png [--step N] [--from MS] [--to MS]

One row for each stream of each rank, one bar for each operation, a colour for each kind of work, arrows from gathers to the
computations that use them. Needs matplotlib (Debian: python3-matplotlib).
"""
import argparse
import json
import sys

COLOURS = {"forward": "#4c78a8", "backward": "#1f4e79", "loss": "#72b7b2", "gather": "#f58518", "reduce": "#e45756",
           "accumulate": "#ff9da6", "finish": "#b279a2", "load": "#9d755d", "optimizer": "#54a24b", "sums": "#bab0ac",
           "step": "#d8d8d8"}


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)["traceEvents"]
    except OSError as problem:
        sys.exit(f"error: cannot read {path}: {problem.strerror}")
    except (ValueError, KeyError, TypeError):
        sys.exit(f"error: {path} is no timeline: it is not the JSON of a Chrome trace; a run writes one with --output.timeline")


def tracks(events):
    """(pid, tid) -> label, in the order in which viewers show them."""
    names, order, processes = {}, {}, {}
    for event in events:
        if event["ph"] != "M":
            continue
        key = (event["pid"], event.get("tid"))
        if event["name"] == "process_name":
            processes[event["pid"]] = event["args"]["name"].split(" on ")[0]
        elif event["name"] == "thread_name":
            names[key] = event["args"]["name"]
        elif event["name"] == "thread_sort_index":
            order[key] = event["args"]["sort_index"]
    keys = sorted(names, key=lambda key: (key[0], order[key]))
    return {key: f"{processes[key[0]]}: {names[key]}" for key in keys}


def window(events, arguments):
    """Microseconds to show."""
    slices = [event for event in events if event["ph"] == "X"]
    if arguments.step is not None:
        slices = [event for event in slices if event["name"] == f"step {arguments.step}"]
        if not slices:
            sys.exit(f"error: there is no step {arguments.step} in the timeline")
    begin = min(event["ts"] for event in slices)
    end = max(event["ts"] + event["dur"] for event in slices)
    zero = begin
    if arguments.begin is not None:
        begin = zero + 1000 * arguments.begin
    if arguments.end is not None:
        end = zero + 1000 * arguments.end
    return zero, begin, end


def plotting():
    try:
        import matplotlib
        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        sys.exit("error: cannot draw: matplotlib is not installed; install Debian's python3-matplotlib, or open the file in Perfetto")
    return pyplot


def draw(events, arguments, pyplot):

    rows = tracks(events)
    place = {key: len(rows) - 1 - index for index, key in enumerate(rows)}
    zero, begin, end = window(events, arguments)
    figure, axes = pyplot.subplots(figsize=(18, 0.55 * len(rows) + 1.4))
    for event in events:
        if event["ph"] != "X" or event["ts"] > end or event["ts"] + event["dur"] < begin:
            continue
        row, left, width = place[(event["pid"], event["tid"])], (event["ts"] - zero) / 1000, event["dur"] / 1000
        colour = COLOURS.get(event["name"].split()[0], "#888888")
        axes.barh(row, width, left=left, height=0.8, color=colour, edgecolor="white", linewidth=0.3)
        if width > 0.035 * (end - begin) / 1000:
            axes.text(left + width / 2, row, event["name"], ha="center", va="center", fontsize=6, clip_on=True)
    starts = {event["id"]: event for event in events if event["ph"] == "s"}
    for event in events:
        start = starts.get(event.get("id"))
        if event["ph"] != "f" or start is None or event["ts"] > end or start["ts"] < begin:
            continue
        axes.annotate("", xy=((event["ts"] - zero) / 1000, place[(event["pid"], event["tid"])]),
                      xytext=((start["ts"] - zero) / 1000, place[(start["pid"], start["tid"])]),
                      arrowprops={"arrowstyle": "->", "linewidth": 0.4, "color": "#444444"})
    axes.set_yticks([place[key] for key in rows], list(rows.values()))
    axes.set_xlim((begin - zero) / 1000, (end - zero) / 1000)
    axes.set_xlabel("milliseconds")
    kinds = [kind for kind in COLOURS if any(event["ph"] == "X" and event["name"].split()[0] == kind for event in events)]
    axes.legend([pyplot.Rectangle((0, 0), 1, 1, color=COLOURS[kind]) for kind in kinds], kinds, ncol=len(kinds),
                loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(arguments.out, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("timeline")
    parser.add_argument("out")
    parser.add_argument("--step", type=int, help="show this step only")
    parser.add_argument("--from", dest="begin", type=float, metavar="MS", help="from so many milliseconds on")
    parser.add_argument("--to", dest="end", type=float, metavar="MS", help="up to so many milliseconds")
    arguments = parser.parse_args()
    draw(read(arguments.timeline), arguments, plotting())


if __name__ == "__main__":
    main()
