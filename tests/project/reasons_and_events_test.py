"""Each reason of an error and each event of the log that the sources have stands
in docs/, with what to do, and none that they have not."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
REASON = '"([A-Z]+(?:_[A-Z]+)*)"'
EVENT = '"([a-z]+(?:_[a-z]+)*)"'


def read_sources(*folders):
    """The text of each file of these folders, without comments."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".h", ".cc"):
                yield re.sub("//[^\n]*", "", path.read_text(encoding="utf-8"))


def calls(text, names):
    """The arguments of each call of one of these functions."""
    for match in re.finditer(rf"\b(?:{names})\(", text):
        depth = 1
        end = match.end()
        while depth > 0:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        yield text[match.end():end - 1]


def find_reasons(texts):
    constants = dict(match for text in texts for match in
                     re.findall(rf"\b(k[A-Z]\w*)(?:\[\])? =\s+{REASON};", text))
    for text in texts:
        for arguments in calls(text, "StatusWithReason|FieldError"):
            yield from re.findall(REASON, arguments)
            for name in re.findall(r"\bk[A-Z]\w*", arguments):
                if name in constants:
                    yield constants[name]


def find_events(texts):
    for text in texts:
        for arguments in calls(text, "LogEvent|LogLine|LogSome|Log"):
            # Before the fields.
            yield from re.findall(EVENT, arguments.split("{")[0])[:1]
        if "BackgroundChanges::Look" in text:
            for arguments in calls(text, "compare"):
                yield from re.findall(EVENT, arguments)


def first_column(page, head):
    """The names in the first column of a page's table that begins so."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    table = text.split(head, 1)[1].split("\n\n", 1)[0]
    return [name for cell in re.findall(r"^\| ([^|]*) \|", table, re.MULTILINE)
            for name in re.findall("`([^`]*)`", cell)]


class DocumentedTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.texts = list(read_sources("core", "service"))

    def test_every_reason_and_no_other(self):
        known = set(find_reasons(self.texts))
        self.assertGreater(len(known), 30)
        self.assertEqual(sorted(first_column("errors.md", "| reason | what")),
                         sorted(known))

    def test_every_reason_of_clients_and_no_other(self):
        known = set(find_reasons(list(read_sources("client"))))
        self.assertGreater(len(known), 5)
        self.assertEqual(
            sorted(first_column("errors.md", "| reason of a client |")),
            sorted(known))

    def test_every_event_and_no_other(self):
        known = set(find_events(self.texts))
        self.assertGreater(len(known), 20)
        self.assertEqual(
            sorted(first_column("operations.md", "| event | level |")),
            sorted(known))


if __name__ == "__main__":
    unittest.main()
