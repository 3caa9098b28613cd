#!/usr/bin/python3
"""Prints the numbers of a .npy file of float64."""
import array
import pathlib
import sys

data = pathlib.Path(sys.argv[1]).read_bytes()
numbers = array.array("d", data[10 + int.from_bytes(data[8:10], "little"):])
print(*(f"{number:.12g}" for number in numbers))
