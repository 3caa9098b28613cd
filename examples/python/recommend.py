#!/usr/bin/python3
"""Recommends films by attention. All it needs to know is in the .proto files.

    examples/python/recommend.py --like alien --dislike titanic

Needs Debian's python3-grpcio, python3-protobuf and protobuf-compiler. protoc
generates the messages when the script starts. Calls are generic gRPC calls, so no
gRPC plugin is needed. Keys and values are sent as floats. The server is --server,
the variable ATTENDANT_SERVER, or 127.0.0.1:7600. The script keeps its catalog,
python-films (--catalog), so you can look at it and run the script again.
"""
import argparse
import importlib
import os
import pathlib
import subprocess
import sys
import tempfile
import uuid

import grpc

PROTOS = pathlib.Path(__file__).resolve().parents[2] / "proto"

# The two invented dimensions are action and romance.
FILMS = {
    "alien": ("Alien", [0.9, 0.0]),
    "die-hard": ("Die Hard", [1.0, 0.1]),
    "heat": ("Heat", [0.8, 0.2]),
    "titanic": ("Titanic", [0.3, 0.9]),
    "casablanca": ("Casablanca", [0.1, 1.0]),
    "notting-hill": ("Notting Hill", [0.0, 0.9]),
}


def generate_messages(protos):
    """Generates the messages in a temporary folder and imports them."""
    with tempfile.TemporaryDirectory() as folder:
        files = sorted(str(path.relative_to(protos))
                       for path in protos.rglob("*.proto"))
        subprocess.run(["protoc", f"-I{protos}", f"--python_out={folder}",
                        *files], check=True)
        # google.rpc is generated here, google.protobuf comes with the package.
        import google
        google.__path__.append(f"{folder}/google")
        sys.path.insert(0, folder)
        return [importlib.import_module(f"attendant.v1.{name}_pb2")
                for name in ("catalog_service", "item_service",
                             "attention_service", "attribute")]


class Service:
    """Calls the methods of one service of the server."""

    def __init__(self, channel, module, service):
        self._channel = channel
        self._module = module
        self._path = f"/attendant.v1.{service}"

    def __getattr__(self, method):
        call = self._channel.unary_unary(
            f"{self._path}/{method}",
            request_serializer=lambda request: request.SerializeToString(),
            response_deserializer=getattr(
                self._module, f"{method}Response").FromString)
        request_type = getattr(self._module, f"{method}Request")
        return lambda **fields: call(request_type(**fields), timeout=10)


def create_catalog(catalogs, attributes, name):
    return catalogs.CreateCatalog(
        name=name,
        schema={
            "key_fields": [{"name": "taste", "dimension": 2,
                            "temperature": 0.25}],
            "attributes": [{"name": "title",
                            "type": attributes.ATTRIBUTE_TYPE_STRING}],
        })


def upsert_films(items, item_type, name):
    films = []
    for film, (title, key) in FILMS.items():
        item = item_type(id=film)
        item.keys["taste"].floats.values.extend(key)
        item.attributes["title"].string_value = title
        films.append(item)
    # Make a new request_id for each write, and send it again if you retry that
    # write: the server then writes once and repeats its reply.
    return items.BatchUpsertItems(catalog=name, items=films,
                                  request_id=str(uuid.uuid4()))


def recommend(attention, name, liked, disliked):
    examples = [{"id": film, "weight": 1} for film in liked]
    examples += [{"id": film, "weight": -1} for film in disliked]
    return attention.Attend(
        catalog=name,
        query={"examples": {"examples": examples}},
        result_count=3,
        weight_scope="WEIGHT_SCOPE_CATALOG",
        read_mask={"paths": ["attributes.title"]})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", default=os.environ.get(
        "ATTENDANT_SERVER", "127.0.0.1:7600"))
    parser.add_argument("--catalog", default="python-films")
    parser.add_argument("--like", action="append", metavar="FILM",
                        choices=list(FILMS), help=", ".join(FILMS))
    parser.add_argument("--dislike", action="append", default=[],
                        metavar="FILM", choices=list(FILMS))
    options = parser.parse_args()
    liked = options.like or ["alien"]

    catalog_pb, item_pb, attention_pb, attribute_pb = generate_messages(PROTOS)
    with grpc.insecure_channel(options.server) as channel:
        try:
            create_catalog(Service(channel, catalog_pb, "CatalogService"),
                           attribute_pb, options.catalog)
            upsert_films(Service(channel, item_pb, "ItemService"),
                         item_pb.Item, options.catalog)
            answer = recommend(
                Service(channel, attention_pb, "AttentionService"),
                options.catalog, liked, options.dislike)
        except grpc.RpcError as error:
            print(f"{error.code().name}: {error.details()}", file=sys.stderr)
            return 1

    for item in answer.items:
        title = item.attributes["title"].string_value
        print(f"{item.weight:.6f}  {'#' * round(40 * item.weight):40}  {title}")
    print(f"these hold {answer.returned_mass.value:.1%} of the catalog's "
          f"attention ({answer.effective_item_count:.2f} effective items)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
