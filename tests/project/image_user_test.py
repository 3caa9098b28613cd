"""The image's user and group have the numbers that deploy/kubernetes and volumes
name: what the Dockerfile runs to make them is run into an empty root. For root,
where there are such programs; others look at the numbers alone."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NUMBER = "7600"


def dockerfile_lines():
    """Its instructions, each in one line."""
    text = (ROOT / "deploy/docker/Dockerfile").read_text()
    return text.replace("\\\n", " ").splitlines()


class ImageUserTest(unittest.TestCase):
    def command(self):
        found = [line for line in dockerfile_lines() if "useradd" in line]
        self.assertEqual(len(found), 1)
        return found[0].removeprefix("RUN ")

    def test_runs_as_these_numbers(self):
        self.assertIn(f"USER {NUMBER}:{NUMBER}", dockerfile_lines())
        self.assertRegex(self.command(), rf"\bgroupadd .*--gid {NUMBER}\b")

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("useradd"),
                         "asks for root and useradd")
    def test_user_and_group_get_them(self):
        with tempfile.TemporaryDirectory() as root:
            etc = pathlib.Path(root, "etc")
            etc.mkdir()
            for name in ("passwd", "group", "shadow", "gshadow", "login.defs"):
                (etc / name).touch()
            command = re.sub(r"\b(groupadd|useradd)\b",
                             rf"\1 --prefix {root}", self.command())
            subprocess.run(command, shell=True, check=True)
            user = (etc / "passwd").read_text().split(":")
            self.assertEqual(user[0], "attendant")
            self.assertEqual(user[2:4], [NUMBER, NUMBER])


if __name__ == "__main__":
    unittest.main()
