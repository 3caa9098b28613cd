"""Reads and writes the commands and outputs of docs/attention.md."""
import re

# Digits inside a word, such as test1007, are not a number.
NUMBER = re.compile(r"(?<![\w.,-])-?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?"
                    r"(?!\w|[.,]\d)")


class Command:
    def __init__(self, line):
        self.line = line
        self.output = ""

    @property
    def picture(self):
        """Returns the SVG file that the command writes, or None."""
        found = re.search(r"> (\S+\.svg)$", self.line)
        return found.group(1) if found else None


class Setup:
    """A block of sh: the text of the example's `setup`."""

    def __init__(self):
        self.text = ""


class Section:
    """One example: the part from its line "Folder: ..." to the next heading."""

    def __init__(self):
        self.setup = None
        self.commands = []
        self.shown_pictures = []  # as the page names them


class Document:
    """A page whose fenced blocks have lines "$ COMMAND", each followed by its output,
    or, after "```sh", the text of a setup. The section of an example begins with
    a line "Folder: `examples/worked/NAME`"."""

    def __init__(self, path):
        self.path = path
        self.sections = {}
        # Lines of text, commands and setups, in their order.
        self._parts = []
        section = command = setup = None
        fenced = False
        for line in path.read_text().splitlines(keepends=True):
            folder = re.match(r"Folder: `examples/worked/(\w+)`", line)
            if folder:
                section = self.sections.setdefault(folder.group(1), Section())
            elif line.startswith("## "):
                section = None
            if line.startswith("```"):
                fenced = not fenced
                command = setup = None
                self._parts.append(line)
                if line == "```sh\n" and section is not None:
                    setup = section.setup = Setup()
                    self._parts.append(setup)
                continue
            if setup is not None:
                setup.text += line
                continue
            if fenced and section is not None and line.startswith("$ "):
                command = Command(line[2:].rstrip("\n"))
                section.commands.append(command)
                self._parts.append(command)
                continue
            if section is not None and not fenced:
                section.shown_pictures += re.findall(r"!\[[^]]*\]\((\S+)\)", line)
            if command is not None:
                if command.line.endswith("\\"):
                    command.line += "\n" + line.rstrip("\n")
                else:
                    command.output += line
                continue
            self._parts.append(line)

    def write(self):
        def text(part):
            if isinstance(part, Command):
                return f"$ {part.line}\n{part.output}"
            return part.text if isinstance(part, Setup) else part
        self.path.write_text("".join(map(text, self._parts)))


def _step(number):
    """Returns the value of one in a number's last digit."""
    mantissa, _, exponent = number.partition("e")
    _, _, decimals = mantissa.partition(".")
    return 10.0 ** ((int(exponent) if exponent else 0) - len(decimals))


def same_text(want, got):
    """Returns whether texts differ at most in the last digits of numbers, the finer one
    of two. Machines add floats up in different orders, and a final 0 may not be
    printed. Counts and other integers must be equal."""
    if NUMBER.sub("#", want) != NUMBER.sub("#", got):
        return False
    for a, b in zip(NUMBER.findall(want), NUMBER.findall(got)):
        value_a, value_b = (float(x.replace(",", "")) for x in (a, b))
        step = min(_step(a), _step(b))
        if value_a != value_b and (step == 1 or
                                   abs(value_a - value_b) > 1.01 * step):
            return False
    return True
