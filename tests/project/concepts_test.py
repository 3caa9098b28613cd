"""Checks that the tests named in docs/concepts.md exist: a file of tests/ in
backticks, then tests of that file."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Text in parentheses, such as "(27 cases of PyTorch)", is not a test.
NAME = re.compile(r"\([^)]*\)|`(\w+_test)`|\b([A-Z][A-Za-z]*[a-z][A-Z]\w*)\b")


def missing(cell, tests):
    """Yields the tests that a cell names and `tests` (file to text) does not have."""
    file = None
    for found in NAME.finditer(cell):
        if found[1]:
            file = found[1]
            if file not in tests:
                yield file
        elif found[2] and not re.search(rf"\(\w+,\s*{found[2]}\)",
                                        tests.get(file, "")):
            yield f"{file} {found[2]}"


class ConceptsTest(unittest.TestCase):
    def test_names_tests_that_there_are(self):
        tests = {path.stem: path.read_text()
                 for path in (ROOT / "tests").rglob("*_test.*")}
        # Registered by CMake, and of a script.
        tests["worked_examples_test"] = ""
        rows = [line for line in
                (ROOT / "docs/concepts.md").read_text().splitlines()
                if line.startswith("| ")][1:]
        self.assertGreater(len(rows), 20)
        for row in rows:
            held_by = row.rsplit("|", 2)[1]
            self.assertRegex(held_by, r"`\w+_test`", row)
            self.assertEqual(list(missing(held_by, tests)), [], row)

    def test_finds_what_is_missing(self):
        tests = {"a_test": "TEST(ATest,\n     HoldsThis) {", "b_test": ""}
        self.assertEqual(list(missing("`a_test` HoldsThis (as PyTorch)",
                                      tests)), [])
        self.assertEqual(list(missing("`b_test` HoldsThis; `c_test`", tests)),
                         ["b_test HoldsThis", "c_test"])


if __name__ == "__main__":
    unittest.main()
