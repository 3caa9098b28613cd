"""Tests what scripts/count-tests makes of invented reports, and that the skips that
.ci/run expects name tests that there are."""
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PASSED = '<testcase name="Passes" classname="ATest"/>'
SKIPPED = '<testcase name="{}" classname="ATest"><skipped message="a"/></testcase>'


class CountTestsTest(unittest.TestCase):
    def count(self, *cases, skips=None, preset="release", output="", failures=0):
        """Exit status and output of count-tests for one program of such cases."""
        with tempfile.TemporaryDirectory() as scratch:
            reports = pathlib.Path(scratch)
            (reports / "a_test.xml").write_text(
                f'<testsuites tests="{len(cases)}" failures="{failures}">'
                f'<testsuite>{"".join(cases)}</testsuite></testsuites>')
            (reports / "ctest.junit").write_text(
                f'<testsuite><testcase name="a_test" status="'
                f'{"fail" if failures else "run"}"/><testcase name="b_test" '
                f'status="run"><system-out>{output}</system-out></testcase>'
                '</testsuite>')
            arguments = []
            if skips is not None:
                (reports / "skips").write_text(skips)
                arguments = [reports / "skips", preset]
            ran = subprocess.run([ROOT / "scripts" / "count-tests", reports,
                                  *arguments], capture_output=True, text=True)
            return ran.returncode, ran.stdout + ran.stderr

    def test_a_skip_fails_only_those_who_say_what_they_expect(self):
        cases = (PASSED, SKIPPED.format("Skips"))
        for skips, want in ((None, 0), ("", 1), ("a_test ATest.Skips\n", 0),
                            ("a_test ATest.Passes\n", 1),
                            ("b_test ATest.Skips\n", 1),
                            ("# all\na_test *.Sk?ps  # some\n", 0)):
            status, said = self.count(*cases, skips=skips)
            self.assertEqual(status, want, (skips, said))
            self.assertIn("a_test: ATest.Skips", said)
            self.assertIn("2 passed, 0 failed, 1 skipped (2 programs)", said)
            self.assertEqual("must run" in said, want == 1, said)

    def test_conditions_are_of_the_preset_and_the_machine(self):
        for condition, preset, want in (
                ("asan", "asan", 0), ("asan", "release", 1), ("asan", "tsan", 1),
                ("tsan asan", "asan", 0), ("root not-root", "release", 0),
                ("no-flag_of_no_processor", "release", 0),
                ("asan no-flag_of_no_processor", "release", 0)):
            status, said = self.count(
                PASSED, SKIPPED.format("Skips"), preset=preset,
                skips=f"a_test ATest.Skips {condition}\n")
            self.assertEqual(status, want, (condition, preset, said))
        status, said = self.count(PASSED, skips="a_test * sometimes\n")
        self.assertEqual(status, 1)
        self.assertIn("unknown condition sometimes", said)

    def test_python_programs_skip_some(self):
        output = "Ran 2 tests in 0.1s\n\nOK (skipped=1)\n"
        for skips, want in ((None, 0), ("", 1), ("b_test some\n", 0)):
            status, said = self.count(PASSED, skips=skips, output=output)
            self.assertEqual(status, want, said)
            self.assertIn("b_test: some", said)
        status, said = self.count(PASSED, skips="", output="OK\n")
        self.assertEqual(status, 0, said)

    def test_failures_fail(self):
        self.assertEqual(self.count(PASSED)[0], 0)
        self.assertEqual(self.count(PASSED, failures=1)[0], 1)

    def test_expected_skips_are_of_tests_that_there_are(self):
        tests = set()
        for path in (ROOT / "tests").rglob("*.cc"):
            tests |= set(re.findall(r"^TEST(?:_[FP])?\((\w+),\s*(\w+)\)",
                                    path.read_text(), re.MULTILINE))
        suites = {suite for suite, _ in tests}
        lines = (ROOT / ".ci" / "expected-skips").read_text().splitlines()
        checked = 0
        for line in filter(None, lines):
            # Those of Python, of whole programs and of every kernel apart.
            found = re.match(r"\w+ (?:[\w*]+/)?(\w+)\.(\w+|\*)", line)
            if found is None:
                continue
            suite, test = found.groups()
            checked += 1
            if test == "*":
                self.assertIn(suite, suites)
            else:
                self.assertTrue(any(one == suite and name.startswith(test)
                                    for one, name in tests), line)
        self.assertGreater(checked, 20)


if __name__ == "__main__":
    unittest.main()
