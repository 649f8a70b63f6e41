# SPDX-License-Identifier: MIT
"""The report of ./run as one SVG: a group of bars for each figure with a comparison, each on its own scale, because
megabytes a second and microseconds cannot share one."""
from html import escape
from statistics import median

COLOURS = {"plenum": "#1f6feb", "pipe": "#57606a", "cat": "#8c959f", "socat": "#bf8700", "socat_b": "#9a6700",
           "node": "#2da44e", "quiet": "#8c959f", "cold": "#8c959f", "second": "#2da44e",
           "empty": "#8c959f", "live": "#57606a", "one": "#8c959f", "direct": "#8c959f",
           "direct_second": "#2da44e", "stream": "#8c959f"}
LEFT, WIDTH, BAR, GAP = 150, 520, 16, 26


def text(x, y, words, size=12, weight="normal", anchor="start"):
    return (f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" font-weight="{weight}" text-anchor="{anchor}">'
            f"{escape(words)}</text>")


def amount(x):
    return f"{x:,.0f}" if x >= 100 else f"{x:.1f}" if x >= 10 else f"{x:.2f}"


def group(figure, names, y):
    """The bars of one figure from y on: return the pieces, and the start of the next."""
    middle = {k: median(v) for k, v in figure["values"].items() if v}
    top = max(middle.values()) or 1
    title = figure["name"] + (f" ({figure['unit']})" if figure["unit"] else "")
    out = [text(LEFT, y, title, 13, "bold")]
    if figure["target"]:
        out.append(text(LEFT + WIDTH + 110, y, "wanted: " + figure["target"], 11, anchor="end"))
    for kind, value in middle.items():
        y += BAR + 4
        width = max(1.0, WIDTH * value / top)
        out.append(text(LEFT - 8, y, names[kind], anchor="end"))
        out.append(f'<rect x="{LEFT}" y="{y - 12}" width="{width:.1f}" height="{BAR}" fill="{COLOURS[kind]}"/>')
        low, high = (WIDTH * f(figure["values"][kind]) / top for f in (min, max))
        out.append(f'<path d="M{LEFT + low:.1f} {y - 4}H{LEFT + min(high, WIDTH * 1.05):.1f}" stroke="black"/>')
        out.append(text(LEFT + max(width, min(high, WIDTH * 1.05)) + 6, y, amount(value), 11))
    return out, y + GAP


def draw(report, names):
    y, body = 50, []
    for figure in report["figures"]:
        if len([v for v in figure["values"].values() if v]) < 2:
            continue
        pieces, y = group(figure, names, y)
        body += pieces
    head = (f"{report['bytes'] / 1e6:.0f} MB of mixed lines, {report['cpus']} CPUs; medians, "
            "the black line is the range of the rounds")
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 130}" height="{y}" '
            f'font-family="sans-serif">\n<rect width="100%" height="100%" fill="white"/>\n'
            + text(LEFT, 22, head) + "\n" + "\n".join(body) + "\n</svg>\n")
