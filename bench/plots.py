"""Plots as SVG text: no more than bench/README.md needs."""

import math
from xml.sax.saxutils import escape

COLOURS = ["#1b6ca8", "#c4541b", "#3a8f4d", "#7a4fa3"]
FONT = 'font-family="sans-serif" font-size="12"'


def text(x, y, content, anchor="start", more=""):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {FONT} '
            f'{more}>{escape(content)}</text>')


def line(x1, y1, x2, y2, colour="#ccc", width=1):
    return (f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
            f'stroke="{colour}" stroke-width="{width}"/>')


def dot(x, y, colour):
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>'


def document(width, height, parts):
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
        f'height="{height}" viewBox="0 0 {width} {height}">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        *parts, "</svg>"]) + "\n"


class LogScale:
    """Values from `least` to `most`, above 0, onto pixels."""

    def __init__(self, least, most, begin, end):
        self._begin, self._end = begin, end
        self._log_least, self._log_most = math.log(least), math.log(most)

    def __call__(self, value):
        share = ((math.log(value) - self._log_least) /
                 (self._log_most - self._log_least))
        return self._begin + share * (self._end - self._begin)


def ticks(least, most, steps):
    """steps x powers of ten that lie in the range."""
    exponents = range(math.floor(math.log10(least)),
                      math.ceil(math.log10(most)) + 1)
    return [step * 10.0 ** e for e in exponents for step in steps
            if least <= step * 10.0 ** e <= most]


def ratios(points):
    """Rows (label, rival, median, least, greatest): a dot with whiskers."""
    row_height, left, width, top = 20, 330, 760, 46
    least = min(0.9, *(p[3] for p in points)) * 0.95
    most = max(2, *(p[4] for p in points)) * 1.05
    x = LogScale(least, most, left, width - 20)
    labels = list(dict.fromkeys(p[0] for p in points))
    rivals = list(dict.fromkeys(p[1] for p in points))
    height = top + row_height * len(labels) + 30
    parts = []
    for tick in ticks(least, most, [1, 2, 3, 5]):
        parts.append(line(x(tick), top - 8, x(tick), height - 26,
                          "#888" if tick == 1 else "#ddd"))
        parts.append(text(x(tick), height - 10, f"{tick:g}x", "middle"))
    for index, label in enumerate(labels):
        y = top + row_height * index + 6
        parts.append(text(left - 12, y + 4, label, "end"))
        for _, rival, median, low, high in (
                p for p in points if p[0] == label):
            colour = COLOURS[rivals.index(rival)]
            parts.append(line(x(low), y, x(high), y, colour, 2))
            parts.append(dot(x(median), y, colour))
    for index, rival in enumerate(rivals):
        parts.append(dot(left + 160 * index, 16, COLOURS[index]))
        parts.append(text(left + 160 * index + 10, 20, f"against {rival}"))
    return document(width, height, parts)


def lines(series, x_title, y_title):
    """{name: [(x, y)]} on logarithmic axes."""
    width, height, left, right, top, bottom = 640, 400, 70, 20, 20, 50
    xs = [x for points in series.values() for x, _ in points]
    ys = [y for points in series.values() for _, y in points]
    x_range = (min(xs) / 1.2, max(xs) * 1.2)
    y_range = (min(ys) / 1.3, max(ys) * 1.3)
    x = LogScale(*x_range, left, width - right)
    y = LogScale(*y_range, height - bottom, top)
    parts = []
    for tick in ticks(*x_range, [1]):
        parts.append(line(x(tick), top, x(tick), height - bottom, "#ddd"))
        parts.append(text(x(tick), height - bottom + 18, f"{tick:,.0f}",
                          "middle"))
    for tick in ticks(*y_range, [1, 2, 5]):
        parts.append(line(left, y(tick), width - right, y(tick), "#ddd"))
        parts.append(text(left - 8, y(tick) + 4, f"{tick:g}", "end"))
    for index, (name, points) in enumerate(series.items()):
        colour = COLOURS[index % len(COLOURS)]
        for (x1, y1), (x2, y2) in zip(points, points[1:]):
            parts.append(line(x(x1), y(y1), x(x2), y(y2), colour, 2))
        parts += [dot(x(a), y(b), colour) for a, b in points]
        parts.append(dot(left + 14, top + 12 + 18 * index, colour))
        parts.append(text(left + 24, top + 16 + 18 * index, name))
    parts.append(text((left + width - right) / 2, height - 10, x_title,
                      "middle"))
    middle = (top + height - bottom) / 2
    parts.append(text(16, middle, y_title, "middle",
                      f'transform="rotate(-90 16 {middle:.1f})"'))
    return document(width, height, parts)
