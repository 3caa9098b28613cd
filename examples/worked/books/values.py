#!/usr/bin/python3
"""Prints each book's description as the opaque value of its item: bytes that the
server stores and returns, and never reads."""
import base64
import csv
import json
import sys

with open(sys.argv[1], newline="") as file:
    for row in csv.DictReader(file):
        value = base64.b64encode(row["description"].encode()).decode()
        print(json.dumps({"id": row["id"], "opaque_value": value}))
