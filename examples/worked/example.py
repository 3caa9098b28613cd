"""Tools for the check.py of an example."""
import json
import math
import operator
import os
import re
import shlex
import subprocess

import pictures

# The unit roundoff of a 32-bit float, and of a double.
EPSILON = 2.0 ** -24
DOUBLE = 2.0 ** -53
# Logits of story 10 have the largest error of all stories (see its check.py).
MOST_LOGIT_ERROR = 2.0 ** -11


def share_error(gap, logit_error=0):
    """Returns the largest relative error of a weight, which is e / sum of e.

    The server's e = exp(logit - greatest) are floats with a relative error of at
    most 2^-21 + gap 2^-24 (core/kernels/kernels.h), where gap is the greatest
    distance of two logits. The sum adds floats a few at a time, which is 9 2^-24
    more, the quotient is rounded, and logits have errors themselves."""
    return 2 * (2.0 ** -21 + gap * EPSILON + logit_error) + 10 * EPSILON


class Skipped(Exception):
    """The reason why an example can't run here."""


class Example:
    """An example in its scratch folder, with its server."""

    def __init__(self, folder, work, binaries, address):
        self.folder = folder
        self.work = work
        self.failures = []
        self.said = {}  # output by command of the page
        self.check_count = 0
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith("ATTENDANT_")}
        self._environment = dict(
            clean, ATTENDANT_SERVER=address, NO_COLOR="1",
            PATH=f"{binaries}:/usr/bin:/bin")
        # The page uses the default sizes of the setups.
        self._environment.pop("ITEMS", None)

    def _run(self, line):
        return subprocess.run(["bash", "-c", line], cwd=self.work,
                              env=self._environment, capture_output=True,
                              text=True)

    def refusal(self, line):
        """Runs a line that must fail, and returns its standard error."""
        result = self._run(line)
        self.true(f"{line}: refused", result.returncode != 0)
        return result.stderr

    def shell(self, line):
        """Runs a line and returns its standard output."""
        result = self._run(line)
        if result.returncode != 0:
            log = self.work / "setup.log"
            said = log.read_text() if "setup.log" in line else result.stderr
            if result.returncode == 77:
                raise Skipped(said.strip())
            raise RuntimeError(f"{self.folder.name}: {line}: status "
                               f"{result.returncode}: {said}")
        return result.stdout

    def ask(self, *arguments):
        """Returns the reply to `attendant --json ARGUMENTS`."""
        return json.loads(self.shell(
            shlex.join(["attendant", "--json", *map(str, arguments)])))

    def fail(self, message):
        self.failures.append(message)

    def true(self, what, condition):
        self.check_count += 1
        if not condition:
            self.fail(what)

    def equal(self, what, got, want):
        self.true(f"{what}: got {got}, want {want}", got == want)

    def near(self, what, got, want, tolerance):
        self.true(f"{what}: got {got!r}, want {want!r} within {tolerance:.3g}",
                  abs(got - want) <= tolerance)

    def weight(self, what, got, want, share):
        """Checks that a weight is `want` up to a share of it (see share_error)."""
        self.near(what, got, want, want * share)

    def all_near(self, what, got, want, tolerance):
        self.equal(f"{what}: count", len(got), len(want))
        for i, (a, b) in enumerate(zip(got, want)):
            self.near(f"{what}[{i}]", a, b, tolerance)

    def weights(self, *arguments):
        """Returns the weights of `attendant attend ARGUMENTS` by item id."""
        return {item["id"]: item["weight"]
                for item in self.ask("attend", *arguments)["items"]}

    def interest(self, what, got, candidate, events, temperature):
        """Checks that a candidate of `attendant rank` has the interest and the
        score that attention to these events gives it, by cosines in doubles.
        Returns the weights and their largest relative error."""
        dim = len(candidate)
        logits = [cosine(candidate, event) / temperature for event in events]
        e = list(map(math.exp, logits))
        weights = [x / sum(e) for x in e]
        # The errors of a cosine of floats are those of its products and two norms.
        share = share_error(max(logits) - min(logits),
                            3 * dim * EPSILON / temperature)
        # The errors of an interest are those of its weights and of adding up
        # products.
        parts = [[w * x for w, x in zip(weights, column)]
                 for column in zip(*events)]
        errors = [(share + (len(events) + 1) * EPSILON) * sum(map(abs, part))
                  for part in parts]
        interest = list(map(sum, parts))
        for d, error in enumerate(errors):
            self.near(f"{what}: interest[{d}]", got["interest"][d],
                      interest[d], error)
        # The direction of an interest turns by at most twice its relative error.
        self.near(f"{what}: score", got["score"], cosine(candidate, interest),
                  2 * norm(errors) / norm(interest) + dim * EPSILON)
        return weights, share

    def head_weights(self, *arguments):
        """Returns the weights [head][row][column] of `attendant contextualize`."""
        reply = self.ask("contextualize", *arguments, "--weights")
        return [rows(head["weights"], head["columnCount"])
                for head in reply["headWeights"]]

    def rank_weights(self, *words):
        """Returns the weights that a picture of `attendant rank` shows: candidates
        x the events that any of them names, in order. The history has at most
        100 events."""
        words = list(words)
        because = 3
        if "--because" in words:
            at = words.index("--because")
            because = int(words[at + 1])
            del words[at:at + 2]
        candidates = [
            [((event["profile"], event["index"]), event["weight"])
             for event in candidate["events"]]
            for candidate in self.ask(*words, "--because", 100)["candidates"]]
        places = sorted({place for events in candidates
                         for place, _ in events[:because]})
        return [[dict(events).get(place, 0.0) for place in places]
                for events in candidates]

    def check_picture(self, line, svg):
        """Checks that the picture which `line` draws shows the weights, or the
        pooled value, of the reply to the same request."""
        command = re.sub(r" > \S+$", "", re.sub(r" --svg=\w+", "", line))
        words = shlex.split(command.replace("\\\n", " "))[1:]
        if "--svg=image" in line:
            width = int(words[words.index("--image") + 1])
            # Nine digits are drawn, and JSON tells floats of each other.
            want = self.ask(*words)["pooledValue"]["values"]
            self.all_near(line, pictures.shown_image(svg, width), want, EPSILON)
            return
        if words[0] == "contextualize":
            want = self.head_weights(*words[1:])
        elif words[0] == "attend":
            heads = [item["headWeights"]
                     for item in self.ask(*words, "--by-head")["items"]]
            want = [[list(row)] for row in zip(*heads)]
        else:
            want = [self.rank_weights(*words)]
        shape = (len(want), len(want[0]), len(want[0][0]))
        got, tolerance = pictures.shown_weights(svg, shape)
        for p in range(shape[0]):
            for r in range(shape[1]):
                # Nine digits are drawn, and JSON tells floats of each other.
                self.all_near(f"{line}: panel {p}, row {r}", got[p][r],
                              want[p][r], tolerance + EPSILON)

    def summary(self):
        if self.failures:
            return "FAILED\n" + "\n".join(f"  {f}" for f in self.failures)
        return f"passed, {self.check_count} numbers and facts checked"


def rows(flat, width):
    return [flat[i:i + width] for i in range(0, len(flat), width)]


def dot(a, b):
    return sum(map(operator.mul, a, b))


def norm(vector):
    return sum(x * x for x in vector) ** 0.5


def cosine(a, b):
    return dot(a, b) / (norm(a) * norm(b))


def floats(vector):
    """Returns the components of a vector of a reply."""
    return vector["floats"]["values"]
