"""Reads the SVG pictures of attention weights and of images, and holds what one
sees in them to what their data say."""
import math
import xml.etree.ElementTree

SVG = "{http://www.w3.org/2000/svg}"
# Lengths are drawn to a tenth of a pixel.
PLACE = 0.051
ELLIPSIS = "…"


def elements(svg):
    return list(xml.etree.ElementTree.fromstring(svg).iter())


def marks(svg):
    """The weights of a picture: (panel, row, column) to (weight, element)."""
    found = {}
    for element in elements(svg):
        if element.get("class") != "weight":
            continue
        place = tuple(int(element.get(f"data-{axis}"))
                      for axis in ("panel", "row", "column"))
        assert place not in found, f"two marks at {place}"
        found[place] = (float(element.get("data-weight")), element)
    return found


def number(element, name):
    return float(element.get(name))


def scales(drawn):
    """The texts at both ends of each scale, which stand around its bar."""
    return [(drawn[i - 1], drawn[i + 1]) for i, element in enumerate(drawn)
            if element.get("fill") == "url(#scale)"]


def labels(drawn):
    """The texts of a picture but for those of scales, which are numbers."""
    apart = [text for ends in scales(drawn) for text in ends]
    return [element for element in drawn
            if element.tag == f"{SVG}text" and element not in apart]


def pixels(svg):
    """The elements of an image, in their order."""
    return [element for element in elements(svg)
            if element.get("class") == "pixel"]


def grey(element):
    """How bright an element is filled, in [0, 1]; no other colour will do."""
    fill = element.get("fill")
    level = int(fill[1:3], 16)
    assert fill == "#" + 3 * f"{level:02x}", fill
    return level / 255


def shade(element):
    """How much weight one sees, relative to the panel's greatest: how white a
    cell or a pixel is, or how red a line."""
    if element.tag == f"{SVG}rect":
        return grey(element)
    assert element.get("stroke") == "#d00000"
    return number(element, "stroke-opacity")


# Half a step of grey.
GREY = 0.5 / 255 + 1e-9


def same(want, got, tolerance=1e-5):
    """True if two pictures show the same weights or pixels at the same places,
    under the same labels, in shades that are a step apart at most."""
    def places(element):
        return [element.get(name)
                for name in ("x", "y", "x1", "y1", "x2", "y2")]

    def alike(a, b):
        return places(a) == places(b) and abs(shade(a) - shade(b)) <= 2 * GREY

    found = [marks(svg) for svg in (want, got)]
    images = [pixels(svg) for svg in (want, got)]
    texts = [[(label.text, places(label)) for label in labels(elements(svg))]
             for svg in (want, got)]
    if texts[0] != texts[1] or len(images[0]) != len(images[1]):
        return False
    for at in set(found[0]) | set(found[1]):
        # A weight of 0 has no line.
        here = [side.get(at, (0, None)) for side in found]
        if abs(here[0][0] - here[1][0]) > tolerance:
            return False
        drawn = [element for _, element in here if element is not None]
        if not alike(drawn[0], drawn[-1]):
            return False
    return all(alike(a, b) and
               abs(number(a, "data-value") - number(b, "data-value"))
               <= tolerance * max(1, abs(number(a, "data-value")))
               for a, b in zip(*images))


def shown_weights(svg, shape):
    """The weights [panel][row][column] of a picture, read from what one sees:
    how white a cell is, or how red a line, relative to the panel's greatest,
    and between which labels it stands. Fails where that is not what its data
    say, to half a step of grey or the last digit of an opacity."""
    panels, rows, columns = shape
    weights = [[[0.0] * columns for _ in range(rows)] for _ in range(panels)]
    found = marks(svg)
    everything = elements(svg)
    texts = [label for label in labels(everything)
             if not label.get("font-weight")]  # a panel's title
    of_rows = [label for label in texts if label.get("text-anchor") == "end"]
    of_columns = [label for label in texts
                  if label.get("text-anchor") == "start"]
    assert len(of_rows) == panels * rows, len(of_rows)
    assert len(of_columns) == panels * columns, len(of_columns)
    corners = []
    for panel in range(panels):
        here = {at[1:]: mark for at, mark in found.items() if at[0] == panel}
        greatest = max((weight for weight, _ in here.values()), default=0)
        for (row, column), (weight, element) in here.items():
            seen = shade(element)
            if element.tag == f"{SVG}rect":
                step = GREY
            else:
                step = 0.0006 if seen >= 0.1 else 0.006 * seen + 1e-12
            share = weight / greatest if greatest else 0
            assert math.isclose(seen, share, abs_tol=step), (panel, row, column)
            weights[panel][row][column] = weight
        names = (of_rows[panel * rows:(panel + 1) * rows],
                 of_columns[panel * columns:(panel + 1) * columns])
        drawn = {at: element for at, (_, element) in here.items()}
        if all(element.tag == f"{SVG}rect" for element in drawn.values()):
            assert len(drawn) == rows * columns, "a cell for each weight"
            corners.append(_check_cells(drawn, *names))
            least, most = scales(everything)[panel]
            assert (least.text, most.text) == ("0", f"{greatest:.4g}")
        else:
            corners.append(_check_lines(drawn, *names))
        for (row, column), element in drawn.items():
            _check_tooltip(element, names[0][row].text, names[1][column].text)
    assert corners == sorted(set(corners)), "panels follow each other"
    return weights


def _check_cells(cells, rows, columns):
    """That cells make up a grid, each row and column beside its label. Gives
    the (y, x) of its corner."""
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
    """That each line goes from its row's label to its column's, the heaviest
    drawn last. Gives the (y, x) of the first label."""
    def middle(label):
        """Of a letter, from the line that it stands on."""
        return number(label, "y") - 0.35 * number(label, "font-size")

    for (row, column), line in lines.items():
        assert abs(number(line, "y1") - middle(rows[row])) <= 2 * PLACE
        assert abs(number(line, "y2") - middle(columns[column])) <= 2 * PLACE
        assert (number(rows[row], "x") < number(line, "x1")
                < number(line, "x2") < number(columns[column], "x"))
    shades = [shade(line) for line in lines.values()]
    assert shades == sorted(shades), "the heaviest on top"
    for side in (rows, columns):
        heights = [number(label, "y") for label in side]
        assert heights == sorted(set(heights)), "labels follow each other"
    return min(middle(label) for label in rows + columns), number(rows[0], "x")


def _check_tooltip(element, row, column):
    """That a tooltip names what is drawn. Long labels are shortened."""
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
        assert abs(grey(pixel) - bright) <= GREY, i
    return values
