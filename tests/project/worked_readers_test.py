"""Tests the comparisons of examples/worked on small texts and pictures: last digits
may differ, anything else is found."""
import pathlib
import re
import sys
import unittest

sys.dont_write_bytecode = True
WORKED = pathlib.Path(__file__).resolve().parents[2] / "examples/worked"
sys.path.insert(0, str(WORKED))
import document  # noqa: E402
import pictures  # noqa: E402

# The tolerance for pictures of equal weights.
SHARE = 2e-3


class SameTextTest(unittest.TestCase):
    def same(self, want, got):
        self.assertTrue(document.same_text(want, got), (want, got))
        self.assertTrue(document.same_text(got, want), (got, want))

    def other(self, want, got):
        self.assertFalse(document.same_text(want, got), (want, got))
        self.assertFalse(document.same_text(got, want), (got, want))

    def test_last_digits_may_differ(self):
        self.same("weight 0.9644, 96.4 %", "weight 0.9643, 96.5 %")
        self.same("[-1.072e-30]", "[-1.073e-30]")
        # As %g prints them.
        self.same("[0.5, 1]", "[0.4999, 0.9999]")

    def test_other_numbers_are_others(self):
        self.other("0.9644", "0.9642")
        self.other("0.9644", "1")
        self.other("0.0179", "0")
        self.other("4.403e-32", "4.405e-32")
        self.other("0.5", "-0.5")

    def test_counts_are_exact(self):
        self.other("81 pairs", "82 pairs")
        self.other("10 + 2,000 = 2,010", "11 + 2,001 = 2,012")
        self.other("2,000 items", "2,001 items")
        self.other("0.5 of 81.", "0.5 of 82.")

    def test_digits_of_words_are_letters(self):
        self.other("test1007  1.0 %", "test1008  1.0 %")
        self.other("W_Q_1", "W_Q_2")
        self.other("1st", "2nd")
        self.other("v1.05 and 1.05x", "v1.06 and 1.05x")
        self.other("v1.05 and 1.05x", "v1.05 and 1.06x")


def text(x, y, label, more='text-anchor="start"'):
    return f'<text x="{x}" y="{y}" font-size="10" {more}>{label}</text>'


def picture(*parts):
    return f'<svg xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'


def legend(none, most, greatest=0.8, more=""):
    return (f'<g class="legend"><stop stop-color="{none}"/><stop '
            f'stop-color="{most}"/>{text(20, 40, 0)}{text(50, 40, greatest)}'
            f'{more}</g>')


def weight_of(row, column, weight):
    return (f'class="weight" data-panel="0" data-row="{row}" '
            f'data-column="{column}" data-weight="{weight}"><title>{row} → '
            f'{column}: {weight}</title></')


MATRIX = picture(
    text(21, 5, 0), text(31, 5, 1), text(5, 18, 0, 'text-anchor="end"'),
    '<rect x="20" y="10" width="10" height="10" fill="#ffffff" ',
    weight_of(0, 0, 0.8), 'rect>',
    '<rect x="30" y="10" width="10" height="10" fill="#404040" ',
    weight_of(0, 1, 0.2), 'rect>',
    legend("#000000", "#ffffff"))
LINES = picture(
    text(5, 13.5, 0, 'text-anchor="end"'), text(60, 13.5, 0), text(60, 23.5, 1),
    '<line x1="10" x2="50" y1="10" y2="20" stroke="#d00000" '
    'stroke-opacity="0.25" ', weight_of(0, 1, 0.2), 'line>',
    '<line x1="10" x2="50" y1="10" y2="10" stroke="#d00000" '
    'stroke-opacity="1" ', weight_of(0, 0, 0.8), 'line>',
    legend("#ffffff", "#d00000"))
# Weights by shade: 1 on column 0, none on 1, unknown on 2.
UNKNOWN = picture(
    text(21, 5, 0), text(31, 5, 1), text(41, 5, 2),
    text(5, 18.5, 0, 'text-anchor="end"'),
    *(f'<path class="weights" data-panel="0" stroke="{colour}" '
      f'stroke-width="10" d="M{x} 15h10"/>'
      for x, colour in ((15, "#ffffff"), (25, "#000000"), (35, "#a9c4e6"))),
    legend("#000000", "#ffffff", 1, text(60, 40, "not known")))
MANY = picture(
    text(5, 13.5, 0, 'text-anchor="end"'), text(5, 23.5, 1, 'text-anchor="end"'),
    text(60, 13.5, 0), text(60, 23.5, 1),
    '<g class="weights" data-panel="0" stroke="#a9c4e6" '
    'stroke-opacity="1"><path d="M10 20L50 10"/></g>',
    '<g class="weights" data-panel="0" stroke="#d00000" '
    'stroke-opacity="0.25"><path d="M10 10L50 20"/><path d="M10 20L50 20"/></g>',
    '<g class="weights" data-panel="0" stroke="#d00000" '
    'stroke-opacity="1"><path d="M10 10L50 10"/></g>',
    legend("#ffffff", "#d00000", more=text(60, 40, "not known")))
IMAGE = picture(*(
    f'<rect x="{8 * (i % 2)}" y="{8 * (i // 2)}" width="8" height="8" '
    f'fill="{fill}" class="pixel" data-value="{value}"/>'
    for i, (fill, value) in enumerate((("#000000", 0), ("#808080", 1),
                                       ("#404040", 0.5), ("#ffffff", 2)))))


class PicturesTest(unittest.TestCase):
    def test_weights_are_read(self):
        for svg in (MATRIX, LINES):
            self.assertEqual(pictures.shown_weights(svg, (1, 1, 2)),
                             ([[[0.8, 0.2]]], 0))
        self.assertEqual(pictures.shown_image(IMAGE, 2), [0, 1, 0.5, 2])

    def test_many_weights_are_read_by_shade(self):
        weights, tolerance = pictures.shown_weights(UNKNOWN, (1, 1, 3))
        self.assertEqual(weights, [[[1, 0, None]]])
        self.assertTrue(0.5 / 255 < tolerance < 1 / 255)
        self.assertEqual(pictures.shown_weights(MANY, (1, 2, 2))[0],
                         [[[0.8, 0.2], [None, 0.2]]])
        for svg, said, wrong, shape in (
                (UNKNOWN, "M25 15", "M25 35", (1, 1, 3)),
                (UNKNOWN, "not known", "known", (1, 1, 3)),
                (UNKNOWN, '"#a9c4e6"', '"#000000"', (1, 1, 3)),
                (UNKNOWN, 'd="M35 15h10"', 'd=""', (1, 1, 3)),
                (MANY, "L50 10", "L50 12", (1, 2, 2)),
                (MANY, "#ffffff", "#000000", (1, 2, 2))):
            self.assertIn(said, svg)
            with self.assertRaises(AssertionError, msg=(said, wrong)):
                pictures.shown_weights(svg.replace(said, wrong, 1), shape)

    def test_what_is_unknown_is_not_nothing(self):
        unknown = MATRIX.replace("#404040", "#a9c4e6").replace(
            '"0.2"', '"unknown"').replace(": 0.2", ": unknown").replace(
                "</g>", text(60, 40, "not known") + "</g>")
        self.assertEqual(pictures.shown_weights(unknown, (1, 1, 2)),
                         ([[[0.8, None]]], 0))
        self.assertTrue(pictures.same(unknown, unknown, SHARE))
        self.assertFalse(pictures.same(unknown, MATRIX, SHARE))
        self.assertFalse(pictures.same(
            unknown, unknown.replace("#a9c4e6", "#404040"), SHARE))

    def test_what_one_sees_is_what_the_data_say(self):
        for svg, said, wrong in (
                (MATRIX, "#404040", "#434343"),
                (MATRIX, "#404040", "#404041"),
                (MATRIX, 'x="30"', 'x="40"'),
                (MATRIX, 'y="10"', 'y="20"'),
                (MATRIX, '"5" y="18"', '"5" y="28"'),
                (MATRIX, 'x="31"', 'x="41"'),
                (MATRIX, "0 → 1", "0 → 2"),
                (MATRIX, "0.8</text>", "0.7</text>"),
                (LINES, 'opacity="0.25"', 'opacity="0.35"'),
                (LINES, 'y2="20"', 'y2="10"'),
                (LINES, 'y1="10"', 'y1="20"'),
                (LINES, "0 → 1", "1 → 0"),
                (LINES, "0.8</text>", "0.7</text>"),
                (LINES, 'stop-color="#d00000"', 'stop-color="#0000d0"')):
            self.assertIn(said, svg)
            with self.assertRaises(AssertionError, msg=(said, wrong)):
                pictures.shown_weights(svg.replace(said, wrong, 1), (1, 1, 2))
        for said, wrong in (("#404040", "#434343"), ('x="8"', 'x="16"'),
                            ('y="8"', 'y="16"')):
            self.assertIn(said, IMAGE)
            with self.assertRaises(AssertionError, msg=(said, wrong)):
                pictures.shown_image(IMAGE.replace(said, wrong, 1), 2)

    def test_the_heaviest_line_is_drawn_last(self):
        first, second = re.findall("<line .*?</line>", LINES)
        with self.assertRaises(AssertionError):
            pictures.shown_weights(LINES.replace(first, "@").replace(
                second, first).replace("@", second), (1, 1, 2))

    def test_last_digits_of_pictures_may_differ(self):
        for svg, said, near in ((MATRIX, "0.2", "0.200001"),
                                (MATRIX, "0.8</text>", "0.8001</text>"),
                                (LINES, "0.2\"", "0.200001\""),
                                (IMAGE, '"0.5"', '"0.500001"')):
            self.assertIn(said, svg)
            self.assertTrue(pictures.same(
                svg, svg.replace(said, near), SHARE), said)

    def test_other_pictures_are_others(self):
        for svg, said, wrong in (
                (MATRIX, '-weight="0.2"', '-weight="0.21"'),
                (MATRIX, 'x="30"', 'x="40"'),
                (MATRIX, ">1</text>", ">2</text>"),
                (MATRIX, "#404040", "#444444"),
                (IMAGE, "#404040", "#444444"),
                (LINES, 'opacity="0.25"', 'opacity="0.3"'),
                (MATRIX, 'x="5" y="18"', 'x="6" y="18"'),
                (LINES, ">1</text>", ">3 PIECES</text>"),
                (LINES, 'y2="20"', 'y2="10"'),
                (LINES, '-weight="0.2"', '-weight="0.21"'),
                (IMAGE, '"0.5"', '"0.6"'),
                (IMAGE, 'x="8"', 'x="16"'),
                (MATRIX, "0.8</text>", "0.9</text>"),
                (MATRIX, 'class="legend"', 'class="legend" opacity="0"'),
                (MATRIX, "</svg>", '<rect width="99" height="99"/></svg>'),
                (MATRIX, '</title>', ' and more: 0.2</title>'),
                (LINES, "<svg", '<svg transform="scale(0)"')):
            self.assertIn(said, svg)
            self.assertFalse(pictures.same(
                svg, svg.replace(said, wrong, 1), SHARE), (said, wrong))


if __name__ == "__main__":
    unittest.main()
