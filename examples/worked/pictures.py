"""Reads the SVG pictures of attention weights and of images, and compares what they
show with their data."""
import collections
import math
import xml.etree.ElementTree

SVG = "{http://www.w3.org/2000/svg}"
# Lengths are drawn to a tenth of a pixel.
PLACE = 0.051
ELLIPSIS = "…"


def elements(svg):
    """Returns the elements of a picture outside its legend."""
    root = xml.etree.ElementTree.fromstring(svg)
    of_legend = {part for legend in _legends(root) for part in legend.iter()}
    return [element for element in root.iter() if element not in of_legend]


def _legends(root):
    return root.findall(f"{SVG}g[@class='legend']")


class Legend:
    """The meaning of shades: the colours of no weight and of the greatest weight,
    that weight as text, and whether there is a colour for unknown weights."""

    def __init__(self, svg):
        (legend,) = _legends(xml.etree.ElementTree.fromstring(svg))
        self.colours = tuple(stop.get("stop-color")
                             for stop in legend.iter(f"{SVG}stop"))
        texts = [text.text for text in legend.iter(f"{SVG}text")]
        least, self.greatest = texts[:2]
        assert least == "0", least
        assert texts[2:] in ([], ["not known"]), texts
        self.has_unknown = len(texts) == 3


def marks(svg):
    """Returns the weights that have their own elements: (panel, row, column) to
    (weight or None if unknown, element)."""
    found = {}
    for element in elements(svg):
        if element.get("class") != "weight":
            continue
        place = tuple(int(element.get(f"data-{axis}"))
                      for axis in ("panel", "row", "column"))
        assert place not in found, f"two marks at {place}"
        said = element.get("data-weight")
        found[place] = (None if said == "unknown" else float(said), element)
    return found


def bundles(svg):
    """Returns the elements of a picture of many weights; each has one shade."""
    return [element for element in elements(svg)
            if element.get("class") == "weights"]


def number(element, name):
    return float(element.get(name))


def labels(drawn):
    """Returns the texts of a picture outside its legend."""
    return [element for element in drawn if element.tag == f"{SVG}text"]


def pixels(svg):
    """Returns the elements of an image in order."""
    return [element for element in elements(svg)
            if element.get("class") == "pixel"]


def grey(colour):
    """Returns the brightness of a grey in [0, 1]. Fails for other colours."""
    level = int(colour[1:3], 16)
    assert colour == "#" + 3 * f"{level:02x}", colour
    return level / 255


def shade(element):
    """Returns the visible weight, relative to the picture's greatest: the whiteness
    of a cell or a pixel, or the redness of a line. None if it is blue: unknown."""
    if element.get("stroke-opacity") is None:
        colour = element.get("fill") or element.get("stroke")
        return None if colour == UNKNOWN else grey(colour)
    if element.get("stroke") == UNKNOWN:
        return None
    assert element.get("stroke") == RED
    return number(element, "stroke-opacity")


# Half a step of grey.
GREY = 0.5 / 255 + 1e-9
UNKNOWN = "#a9c4e6"
RED = "#d00000"
# The colours of no weight and of the greatest.
MATRIX = ("#000000", "#ffffff")
LINES = ("#ffffff", RED)


def same(want, got, tolerance):
    """True if two pictures are made of the same elements at the same places,
    in the same sizes and under the same labels, and show the same weights or
    values, to a share of the greatest, in shades that are a step apart at most.
    Not for pictures of many weights."""
    def near(a, b, greatest):
        if None in (a, b):
            return a is b
        return abs(a - b) <= tolerance * max(greatest, 1e-30)

    def alike(a, b):
        shades = shade(a), shade(b)
        if None in shades:
            return shades == (None, None)
        return abs(shades[0] - shades[1]) <= 2 * GREY

    assert not bundles(want) and not bundles(got)
    if _frame(want) != _frame(got):
        return False
    found = [marks(svg) for svg in (want, got)]
    if found[0].keys() != found[1].keys():
        return False
    if found[0]:
        greatest = [float(Legend(svg).greatest) for svg in (want, got)]
        if abs(greatest[0] - greatest[1]) > 1e-3 * greatest[0]:
            return False
    for at, (weight, mark) in found[0].items():
        other_weight, other = found[1][at]
        if not near(weight, other_weight, greatest[0]) or not alike(mark, other):
            return False
    images = [pixels(svg) for svg in (want, got)]
    values = [[number(pixel, "data-value") for pixel in image]
              for image in images]
    return all(alike(a, b) and near(x, y, max(map(abs, values[0])))
               for a, b, x, y in zip(*images, *values))


def _frame(svg):
    """Returns the content of a picture without weights, values and their shades:
    elements with their attributes and texts, and the count of each."""
    told = {"fill", "stroke", "stroke-opacity", "data-weight", "data-value"}
    root = xml.etree.ElementTree.fromstring(svg)
    greatest = {legend.findall(f".//{SVG}text")[1] for legend in _legends(root)}
    parts = collections.Counter()
    for element in root.iter():
        shown = element.get("class") in ("weight", "pixel")
        text = (element.text or "").strip()
        if element.tag == f"{SVG}title":
            text = text.rpartition(": ")[0]  # of a tooltip
        parts[element.tag,
              tuple(sorted((name, value) for name, value in element.items()
                           if not (shown and name in told))),
              "" if element in greatest else text] += 1
    return parts


def shown_weights(svg, shape):
    """The weights [panel][row][column] of a picture, read from what one sees:
    how white a cell is, or how red a line, relative to the greatest of all
    panels, which the legend tells, and between which labels it stands; None
    where it is unknown. Second, how far a weight may be off: not at all where
    each is an element of its own, whose data say it. Fails where that is not
    what one sees, to half a step of grey or the last digit of an opacity."""
    panels, rows, columns = shape
    everything = elements(svg)
    texts = [label for label in labels(everything)
             if not label.get("font-weight")]  # a panel's title
    of_rows = [label for label in texts if label.get("text-anchor") == "end"]
    of_columns = [label for label in texts
                  if label.get("text-anchor") == "start"]
    assert len(of_rows) == panels * rows, len(of_rows)
    assert len(of_columns) == panels * columns, len(of_columns)
    names = [(of_rows[panel * rows:(panel + 1) * rows],
              of_columns[panel * columns:(panel + 1) * columns])
             for panel in range(panels)]
    legend = Legend(svg)
    assert legend.colours in (MATRIX, LINES), legend.colours
    read = _read_bundles if bundles(svg) else _read_marks
    weights, corners, tolerance = read(svg, legend, names)
    assert corners == sorted(set(corners)), "panels follow each other"
    unknown = any(None in row for panel in weights for row in panel)
    assert unknown == legend.has_unknown
    return weights, tolerance


def _read_marks(svg, legend, names):
    found = marks(svg)
    greatest = max((weight for weight, _ in found.values() if weight),
                   default=0)
    assert legend.greatest == f"{greatest:.4g}", legend.greatest
    weights, corners = [], []
    for panel, (rows, columns) in enumerate(names):
        table = [[0.0] * len(columns) for _ in rows]
        drawn = {}
        for at, (weight, element) in found.items():
            if at[0] != panel:
                continue
            seen = shade(element)
            if weight is None:
                assert seen is None, at
            else:
                if legend.colours == MATRIX:
                    step = GREY
                else:
                    step = 0.0006 if seen >= 0.1 else 0.006 * seen + 1e-12
                share = weight / greatest if greatest else 0
                assert math.isclose(seen, share, abs_tol=step), at
            row, column = at[1:]
            table[row][column] = weight
            drawn[row, column] = element
            _check_tooltip(element, rows[row].text, columns[column].text)
        weights.append(table)
        if legend.colours == MATRIX:
            assert len(drawn) == len(rows) * len(columns), "a cell for each"
            corners.append(_check_cells(drawn, rows, columns))
        else:
            corners.append(_check_lines(drawn, rows, columns))
    return weights, corners, 0


def _read_bundles(svg, legend, names):
    """Reads a picture of many weights: a run of cells of one shade is a stroke
    "Mx yhwidth", and a line is "Mx yLx y"."""
    greatest = float(legend.greatest)
    weights, corners = [], []
    for panel, (rows, columns) in enumerate(names):
        table = [[0.0] * len(columns) for _ in rows]
        heights = [[_middle(label) for label in side]
                   for side in (rows, columns)]
        covered = 0
        for bundle in bundles(svg):
            if int(bundle.get("data-panel")) != panel:
                continue
            seen = shade(bundle)
            weight = None if seen is None else seen * greatest
            strokes = "".join(path.get("d")
                              for path in bundle.iter(f"{SVG}path"))
            for stroke in strokes.split("M")[1:]:
                if legend.colours == MATRIX:
                    size = number(bundle, "stroke-width")
                    start, _, width = stroke.partition("h")
                    x, y = map(float, start.split())
                    row = _nearest(heights[0], y, size / 2)
                    first = round((x - _left(columns, size)) / size)
                    count = round(float(width) / size)
                    table[row][first:first + count] = count * [weight]
                    covered += count
                else:
                    (_, y1), (_, y2) = (map(float, end.split())
                                        for end in stroke.split("L"))
                    table[_nearest(heights[0], y1, 2 * PLACE)][
                        _nearest(heights[1], y2, 2 * PLACE)] = weight
        assert legend.colours == LINES or covered == len(rows) * len(columns)
        weights.append(table)
        corners.append((number(rows[0], "y"), number(rows[0], "x")))
    # Half a step, and the fourth digit of the stated greatest weight, or the third
    # digit of an opacity.
    return weights, corners, (GREY + 6e-4) * greatest


def _middle(label):
    """Of a letter, from the line that it stands on."""
    return number(label, "y") - 0.35 * number(label, "font-size")


def _nearest(places, place, tolerance):
    best = min(range(len(places)), key=lambda i: abs(places[i] - place))
    assert abs(places[best] - place) <= tolerance, (place, places[best])
    return best


def _left(columns, size):
    """Where the first of cells begins, whose labels stand over them."""
    return number(columns[0], "x") - 0.6 * size


def _check_cells(cells, rows, columns):
    """Checks that cells form a grid, with each row and column next to its label.
    Returns the (y, x) of its corner."""
    left, top, width, height = (number(cells[0, 0], name)
                                for name in ("x", "y", "width", "height"))
    for (row, column), cell in cells.items():
        assert abs(number(cell, "x") - left - column * width) <= 2 * PLACE
        assert abs(number(cell, "y") - top - row * height) <= 2 * PLACE
        assert number(cell, "width") == width
        assert number(cell, "height") == height
    for row, label in enumerate(rows):
        assert number(label, "x") < left
        assert 0 < number(label, "y") - top - row * height <= height
    for column, label in enumerate(columns):
        assert number(label, "y") < top
        assert 0 < number(label, "x") - left - column * width <= width
    return top, left


def _check_lines(lines, rows, columns):
    """Checks that each line goes from its row's label to its column's, and that the
    heaviest is drawn last. Returns the (y, x) of the first label."""
    for (row, column), line in lines.items():
        assert abs(number(line, "y1") - _middle(rows[row])) <= 2 * PLACE
        assert abs(number(line, "y2") - _middle(columns[column])) <= 2 * PLACE
        assert (number(rows[row], "x") < number(line, "x1")
                < number(line, "x2") < number(columns[column], "x"))
    # Unknown weights come first.
    shades = [-1 if shade(line) is None else shade(line)
              for line in lines.values()]
    assert shades == sorted(shades), "the heaviest on top"
    for side in (rows, columns):
        heights = [number(label, "y") for label in side]
        assert heights == sorted(set(heights)), "labels follow each other"
    return min(_middle(label) for label in rows + columns), number(rows[0], "x")


def _check_tooltip(element, row, column):
    """Checks that a tooltip names what is drawn. Long labels are shortened."""
    tooltip = element.find(f"{SVG}title").text
    names, _, weight = tooltip.rpartition(": ")
    assert weight == element.get("data-weight"), tooltip
    if row.endswith(ELLIPSIS) or column.endswith(ELLIPSIS):
        assert names.startswith(row.rstrip(ELLIPSIS)), tooltip
        assert f" → {column.rstrip(ELLIPSIS)}" in names, tooltip
    else:
        assert names == f"{row} → {column}", tooltip


def shown_image(svg, width):
    """The values of an image of `width` pixels across, read row by row. Fails
    where a pixel's place or shade is not what its data say: black is 0 or the
    least, white the greatest."""
    drawn = pixels(svg)
    values = [number(pixel, "data-value") for pixel in drawn]
    black, white = min(0, *values), max(0, *values)
    left, top, size = (number(drawn[0], name) for name in ("x", "y", "width"))
    for i, (pixel, value) in enumerate(zip(drawn, values)):
        row, column = divmod(i, width)
        assert abs(number(pixel, "x") - left - column * size) <= 2 * PLACE, i
        assert abs(number(pixel, "y") - top - row * size) <= 2 * PLACE, i
        assert number(pixel, "width") == number(pixel, "height") == size, i
        bright = (value - black) / (white - black) if white > black else 0
        assert abs(shade(pixel) - bright) <= GREY, i
    return values
