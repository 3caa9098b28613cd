"""Checks that the image's user and group have the ids that deploy/kubernetes and
volumes use. As root, if useradd exists, it runs the Dockerfile's command in an empty
root; otherwise it checks only the numbers."""

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
    """Returns the instructions, each in one line."""
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
