"""Reads the SVG pictures of attention weights."""
import math
import xml.etree.ElementTree

SVG = "{http://www.w3.org/2000/svg}"


def marks(svg):
    """The weights of a picture: (panel, row, column) to (weight, element)."""
    found = {}
    for element in xml.etree.ElementTree.fromstring(svg).iter():
        if element.get("class") != "weight":
            continue
        place = tuple(int(element.get(f"data-{axis}"))
                      for axis in ("panel", "row", "column"))
        assert place not in found, f"two marks at {place}"
        found[place] = (float(element.get("data-weight")), element)
    return found


def labels(svg):
    return [element.text for element in
            xml.etree.ElementTree.fromstring(svg).iter(f"{SVG}text")]


def pixels(svg):
    return [float(element.get("data-value")) for element in
            xml.etree.ElementTree.fromstring(svg).iter()
            if element.get("class") == "pixel"]


def same(want, got, tolerance=1e-5):
    """True if two pictures show the same weights or pixels, under the same
    labels."""
    numbers = [{place: mark[0] for place, mark in marks(svg).items()}
               for svg in (want, got)]
    values = [pixels(svg) for svg in (want, got)]
    # A scale's end is a label too, and a number.
    texts = [[text for text in labels(svg) if not text[:1].isdigit()]
             for svg in (want, got)]
    places = set(numbers[0]) | set(numbers[1])
    return (texts[0] == texts[1] and len(values[0]) == len(values[1]) and
            all(abs(numbers[0].get(at, 0) - numbers[1].get(at, 0)) <= tolerance
                for at in places) and
            all(abs(a - b) <= tolerance * max(1, abs(a))
                for a, b in zip(*values)))


def shown_weights(svg, shape):
    """The weights [panel][row][column] of a picture, read from what one sees:
    how white a cell is, or how red a line, relative to the panel's greatest.
    Fails where that is not what its data say, to half a step of grey or the
    last digit of an opacity."""
    panels, rows, columns = shape
    weights = [[[0.0] * columns for _ in range(rows)] for _ in range(panels)]
    found = marks(svg)
    for panel in range(panels):
        greatest = max((weight for at, (weight, _) in found.items()
                        if at[0] == panel), default=0)
        for at, (weight, element) in found.items():
            if at[0] != panel:
                continue
            if element.tag == f"{SVG}rect":
                grey = int(element.get("fill")[1:3], 16)
                assert element.get("fill") == "#" + 3 * f"{grey:02x}"
                seen, step = grey / 255, 0.5 / 255
            else:
                seen = float(element.get("stroke-opacity"))
                step = 0.0006 if seen >= 0.1 else 0.006 * seen + 1e-12
            share = weight / greatest if greatest else 0
            assert math.isclose(seen, share, abs_tol=step + 1e-9), at
            weights[panel][at[1]][at[2]] = weight
    return weights
