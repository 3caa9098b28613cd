// Writes the seeds of the fuzz targets: make_corpus tests/fuzz/corpus. Run it
// again when a format changes; seeds of bugs that were found have other names
// (bug-*) and stay.
#include <netinet/in.h>
#include <zlib.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>

#include "client/files/npy.h"
#include "core/base/fail_point.h"
#include "core/catalog/live/catalog_set.h"
#include "core/catalog/segments/segment_files.h"
#include "core/encode/text_encoder.h"
#include "core/storage/files/segment_directory.h"
#include "core/storage/files/stream_hash.h"
#include "core/storage/files/unlinked_files.h"
#include "core/storage/records/alias_codec.h"
#include "core/storage/records/catalog_record_codec.h"
#include "core/storage/records/item_codec.h"
#include "core/storage/records/model_codec.h"
#include "core/storage/snapshots/snapshot_stream.h"
#include "service/attendantd/flags.h"
#include "tests/client/safetensors_bytes.h"
#include "tests/core/catalog/random_filter.h"
#include "tests/core/storage/test_store.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/packed_files.h"
#include "tests/fuzz/rpc_requests.h"
#include "tests/fuzz/scratch.h"
#include "tests/fuzz/segment_files.h"

namespace attendant {
namespace {

namespace fs = std::filesystem;
using std::string_literals::operator""s;

template <typename T>
T Ok(absl::StatusOr<T> value) {
  Require(value.ok(), value.status().ToString());
  return *std::move(value);
}
void Ok(const absl::Status& status) { Require(status.ok(), status.ToString()); }

std::string ReadAll(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The seeds of one target.
class Corpus {
 public:
  Corpus(const std::string& root, const std::string& target)
      : directory_(fs::path(root) / target) {
    fs::create_directories(directory_);
    for (const auto& entry : fs::directory_iterator(directory_)) {
      const std::string name = entry.path().filename();
      if (absl::StartsWith(name, "valid") || absl::StartsWith(name, "seed")) {
        fs::remove(entry.path());
      }
    }
  }

  // Adds an input that the parser must accept.
  void AddValid(absl::string_view bytes) { Add("valid", bytes); }
  // Adds an input that the parser may refuse.
  void AddSeed(absl::string_view bytes) { Add("seed", bytes); }

 private:
  void Add(absl::string_view kind, absl::string_view bytes) {
    const std::string name = absl::StrFormat("%s-%02d", kind, ++count_);
    std::ofstream(directory_ / name, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

  const fs::path directory_;
  int count_ = 0;
};

void WriteFilters(const std::string& root) {
  Corpus corpus(root, "filter");
  for (const char* text :
       {"price < 5 AND (color = \"red\" OR tags:\"sale\") AND NOT EXISTS stock",
        "color IN ('a', \"b\", 'ab')", "tags CONTAINS 'a'", "price:*",
        "- stock >= -9223372036854775808 OR on_sale = true",
        "listed >= \"2026-01-31T12:00:00.5+01:00\"",
        "price == 1.5e-3 AND price != 9007199254740993",
        "color = 'x\\n\\t\\\\\\'' OR NOT (NOT (EXISTS tags))"}) {
    corpus.AddValid(text);
  }
  corpus.AddSeed("color = red");
  corpus.AddSeed(std::string(40, '(') + "stock = 1" + std::string(40, ')'));
  RandomFilters random(7);
  for (int i = 0; i < 12; ++i) {
    corpus.AddValid(Written(random.Tree(FilterSchema(), 3, false)));
  }
  for (const char* text :
       {"color < 'b' OR color <= 'a' AND color >= 'ab'", "color < ''",
        "color > 'zz' OR color < 'B'", "NOT (color >= '')",
        "stock IN (0, 1, -1, 2, 3, 4, 5, 6, 7, 9007199254740993)",
        "price IN (0, 0.5, -1, 2, 3, 4, 5, 6, 7, 1e300)",
        "on_sale IN (true, false)", "on_sale != true"}) {
    corpus.AddValid(text);
  }
  corpus.AddSeed("tags = 'a'");
  std::string many = "stock IN (1";
  for (std::int64_t i = 0; i < kMaxFilterValues; ++i) many += ",1";
  corpus.AddSeed(many + ")");
  for (std::uint64_t seed = 1; seed <= 16; ++seed) {
    const Filter filter = RandomFilters(seed).Tree(FilterSchema(), 3, true);
    const std::string bytes =
        "\x01" + BytesOf(std::vector<std::uint64_t>{seed});
    if (ValidateFilter(filter, FilterSchema(), "filter").ok()) {
      corpus.AddValid(bytes);
    } else {
      corpus.AddSeed(bytes);
    }
  }
}

// Replaces the first occurrence of `from`, which must exist.
std::string WithOther(std::string text, absl::string_view from,
                      absl::string_view to) {
  const std::size_t at = text.find(from.data(), 0, from.size());
  Require(at != text.npos, from);
  return text.replace(at, from.size(), to.data(), to.size());
}

SnapshotManifest Manifest() {
  SnapshotManifest manifest;
  manifest.catalog = "shop";
  manifest.name = "s";
  manifest.catalog_uid = "0123456789abcdef";
  manifest.create_time = absl::FromUnixNanos(1700000000123456789);
  manifest.sequence = 7;
  manifest.item_count = 3;
  manifest.parts = {{"record", 10, HashText("a")},
                    {"database/000012.sst", 1000, HashText("b")},
                    {"models/m/2", 0, HashText("")}};
  return manifest;
}

// Returns a record of RocksDB's log: a whole write, or its first (2), middle
// (3) or last (4) part. The checksum is a masked CRC-32C of type and payload.
std::string LogRecord(const std::string& payload, char type = '\x01') {
  const std::string checked = type + payload;
  std::uint32_t crc = ~0u;
  for (const char c : checked) {
    crc ^= static_cast<std::uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) {
      crc = crc >> 1 ^ (0x82f63b78u & (0u - (crc & 1u)));
    }
  }
  crc = ~crc;
  crc = (crc >> 15 | crc << 17) + 0xa282ead8u;
  std::string record(7, '\0');
  std::memcpy(record.data(), &crc, sizeof(crc));
  record[4] = static_cast<char>(payload.size() & 0xff);
  record[5] = static_cast<char>(payload.size() >> 8);
  record[6] = type;
  return record + payload;
}

// Logs longer than a block, which has 32 KiB.
void WriteLongLogs(Corpus& corpus) {
  constexpr std::size_t kBlockBytes = 32768;
  constexpr std::size_t kHeaderBytes = 7;
  const std::string first =
      LogRecord(std::string(kBlockBytes - kHeaderBytes, 'x'), '\x02');
  const std::string last = LogRecord(std::string(900, 'y'), '\x04');
  const std::string next = LogRecord("next");
  corpus.AddValid("l" + first + last + next);
  corpus.AddValid(
      "l" + first +
      LogRecord(std::string(kBlockBytes - kHeaderBytes, 'z'), '\x03') + last);
  // The rest of the block is too short for a header.
  corpus.AddValid("l" + LogRecord(std::string(kBlockBytes - 10, 'x')) +
                  std::string(3, '\0') + next);
  std::string torn = first + last;
  std::fill_n(torn.begin() + 1024, 512, '\0');
  corpus.AddSeed("l" + torn);
  // Counts as damage, because a later write follows.
  corpus.AddSeed("l" + torn + next);
  torn = first + last;
  std::fill_n(torn.begin() + kBlockBytes + 512, 395, '\0');
  corpus.AddSeed("l" + torn);
}

// An encoder as in a request, and a text.
std::string EncoderRequest(const TextEncoderParts& parts,
                           absl::string_view text) {
  std::string bytes;
  for (const std::size_t number :
       {parts.terms.size(), parts.idf.size(),
        static_cast<std::size_t>(parts.dim), parts.projection.size()}) {
    bytes.push_back(static_cast<char>(number));
  }
  for (const std::string& term : parts.terms) {
    bytes.push_back(static_cast<char>(term.size()));
    bytes += term;
  }
  return absl::StrCat("w", bytes, BytesOf(parts.idf), BytesOf(parts.projection),
                      text);
}

void WriteEncoders(Corpus& corpus) {
  const TextEncoderParts parts = {
      {"alarm", "#al", "clock"}, {1, 2, 0.5F}, 2, {1, 2, 3, 4, 5, 6}};
  corpus.AddValid(EncoderRequest(parts, "An ALARM clock; alarm"));
  corpus.AddValid(EncoderRequest(parts, "\xEF\xAC\x81 alarm \xC3\xA9"));
  for (const absl::string_view text :
       {absl::string_view(""), absl::string_view("nothing known"),
        absl::string_view("alarm \xff")}) {
    corpus.AddSeed(EncoderRequest(parts, text));
  }
  corpus.AddSeed(EncoderRequest(parts, std::string(16385, 'a')));
  const auto add = [&](auto change) {
    TextEncoderParts bad = parts;
    change(bad);
    corpus.AddSeed(EncoderRequest(bad, "alarm"));
  };
  add([](TextEncoderParts& bad) { bad = {}; });
  add([](TextEncoderParts& bad) { bad.terms[1] = ""; });
  add([](TextEncoderParts& bad) { bad.terms[2] = "alarm"; });
  add([](TextEncoderParts& bad) { bad.idf.pop_back(); });
  add([](TextEncoderParts& bad) { bad.idf[1] = -1; });
  add([](TextEncoderParts& bad) { bad.idf = {0, 0, 0}; });
  add([](TextEncoderParts& bad) { bad.dim = 0; });
  add([](TextEncoderParts& bad) { bad.dim = 4; });
  add([](TextEncoderParts& bad) {
    bad.projection[3] = std::numeric_limits<float>::infinity();
  });
  // As stored, without the checksum.
  std::string body = Ok(TextEncoder::Create(parts)).Serialize();
  body.resize(body.size() - sizeof(std::uint64_t));
  corpus.AddValid("u" + body);
  corpus.AddSeed("u" + WithOther(body, "clock", "alarm"));
  corpus.AddSeed("u" + body.substr(0, body.size() - 1));
  body[4] = '\x63';  // the version
  corpus.AddSeed("u" + body);
}

void WriteCodecs(const std::string& root) {
  Corpus corpus(root, "codec");
  for (int i = 0; i < 6; ++i) {
    corpus.AddValid("i" + EncodeItem(TestItem(i)));
    corpus.AddValid("i" + EncodeStoredItem(TestItem(i), i + 1));
  }
  CatalogRecord plain = TestRecord();
  plain.schema = {};
  plain.schema.key_fields = {{.name = "key", .dim = 8192}};
  CatalogRecord with_model = TestRecord();
  with_model.schema.key_fields[0].model = {"model", 3};
  for (const CatalogRecord& record : {TestRecord(), plain, with_model}) {
    corpus.AddValid("r" + EncodeCatalogRecord(record));
  }
  ModelRecord model = TestModel("model", 1);
  corpus.AddValid("m" + EncodeModel(model));
  const Projection projection = {{4, 3, std::vector<float>(12, 0.5F)}, {}};
  model.model = {MultiHeadProjections{.head_count = 2,
                                      .query = projection,
                                      .key = projection,
                                      .value = std::nullopt,
                                      .output = std::nullopt}};
  corpus.AddValid("m" + EncodeModel(model));
  AdditiveNetwork additive;
  additive.query_weight = {2, 3, std::vector<float>(6, 1)};
  additive.key_weight = {2, 4, std::vector<float>(8, 2)};
  additive.output_weight = {1, 2};
  model.model = {additive};
  corpus.AddValid("m" + EncodeModel(model));
  corpus.AddValid("a" + EncodeAlias("shop", "shop-2"));
  corpus.AddValid("v" + EncodeLastVersion({"model", 7}));
  corpus.AddValid("e" + EncodeModelEntry({"model", 7}));
  corpus.AddValid(
      "t" +
      Ok(TextEncoder::Create(
             {{"alarm", "#al", "clock"}, {1, 2, 0.5F}, 2, {1, 2, 3, 4, 5, 6}}))
          .Serialize());
  std::string manifest = EncodeSnapshotManifest(Manifest());
  manifest.resize(manifest.size() - kHashTextBytes - 1);
  corpus.AddValid("s" + manifest);
  const std::string log = LogRecord("first") + LogRecord(std::string(600, 'x'));
  corpus.AddValid("l" + log);
  corpus.AddValid("l" + LogRecord("first") + LogRecord("") +
                  std::string(1024, '\0'));
  // A sector of the last write is missing.
  corpus.AddValid("l" + log.substr(0, 512) + std::string(100, '\0'));
  WriteLongLogs(corpus);
  WriteEncoders(corpus);
  std::string stored = EncodeStoredItem(TestItem(1), 1);
  stored[1] = '\0';  // its sequence
  corpus.AddSeed("i" + stored);
  Item opaque = TestItem(2);
  opaque.opaque_value = "opaque";
  corpus.AddValid("i" + EncodeItem(opaque));
  const std::string whole = EncodeItem(opaque);
  corpus.AddSeed("i" + whole.substr(0, whole.size() - 1));
  corpus.AddSeed("i" + whole + "x");
  corpus.AddValid("k" + EncodeModelKey({"model", 7}));
  corpus.AddSeed("kmodel");
  CatalogRecord on_disk = TestRecord();
  on_disk.schema.key_fields[0].keys_on_disk = true;
  corpus.AddValid("r" + EncodeCatalogRecord(on_disk));
  corpus.AddSeed("r" + WithOther(EncodeCatalogRecord(on_disk),
                                 "\"version\":", "\"version\":9"));
  const auto add = [&](auto change) {
    SnapshotManifest bad = Manifest();
    change(bad);
    std::string text = EncodeSnapshotManifest(bad);
    text.resize(text.size() - kHashTextBytes - 1);
    corpus.AddSeed("s" + text);
  };
  add([](SnapshotManifest& bad) { bad.parts.push_back(bad.parts[0]); });
  add([](SnapshotManifest& bad) { bad.parts.erase(bad.parts.begin()); });
  add([](SnapshotManifest& bad) { bad.parts[1].size = -1; });
  add([](SnapshotManifest& bad) { bad.parts[1].path = "../record"; });
  add([](SnapshotManifest& bad) { bad.catalog = ""; });
  add([](SnapshotManifest& bad) { bad.name = "A"; });
  add([](SnapshotManifest& bad) { bad.catalog_uid = "x"; });
  add([](SnapshotManifest& bad) { bad.item_count = -1; });
  corpus.AddSeed("s" + WithOther(manifest, "\"version\": ", "\"version\": 9"));
}

void WriteStates(const std::string& root) {
  Corpus corpus(root, "state");
  std::mt19937 random(3);
  for (const float deviation : {0.1F, 3.0F, 1e4F}) {
    std::normal_distribution<float> normal(0, deviation);
    std::vector<float> logits;
    for (int i = 0; i < 60; ++i) logits.push_back(normal(random));
    logits[7] = -std::numeric_limits<float>::infinity();
    logits[9] = logits[8];
    corpus.AddValid(std::string("\x05\x02\x06", 3) + BytesOf(logits));
  }
}

std::string Gzip(const std::string& bytes) {
  const std::string path = Scratch() / "packed.gz";
  gzFile file = gzopen(path.c_str(), "wb");
  Require(file != nullptr, path);
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
  return ReadAll(path);
}

std::vector<NamedTensor> LinearLayers() {
  std::vector<NamedTensor> tensors;
  for (const std::string name : {"q_proj", "k_proj", "v_proj", "out_proj"}) {
    tensors.push_back(F32Tensor(name + ".weight", {2, 2}, {1, 0.5F, -1, 2}));
    tensors.push_back(F32Tensor(name + ".bias", {2}, {0, 1}));
  }
  return tensors;
}

std::string SmallFloats(const std::string& dtype, std::size_t bytes) {
  return SafetensorsBytes({{"w", dtype, {2, 1}, std::string(bytes, '\x3c')},
                           {"scalar", dtype, {}, std::string(bytes / 2, 1)}});
}

// Returns an array of ones whose header contains `fields`.
std::string NpyOf(const std::string& fields, std::size_t bytes) {
  const std::string header = absl::StrCat("{", fields, "}\n");
  std::string npy("\x93NUMPY\x01\x00", 8);
  npy.push_back(static_cast<char>(header.size()));
  npy.push_back('\0');
  return absl::StrCat(npy, header, std::string(bytes, '\x3f'));
}

// Files that are accepted or refused because of features that the others lack.
void WriteMoreFiles(Corpus& corpus) {
  const std::string order = ", 'fortran_order': ";
  corpus.AddValid("n" +
                  NpyOf("'shape': (2,), 'descr': '<f4'" + order + "True", 8));
  corpus.AddValid(
      "n" + NpyOf("\"descr\": \"<f8\"" + order + "False, 'shape': (1, 2)", 16));
  for (const char* shape : {"(1, 1, 2)", "()", "(2, 0)", "(3, 1)", "(2, 1"}) {
    corpus.AddSeed(
        "n" + NpyOf("'descr': '<f4'" + order + "False, 'shape': " + shape, 8));
  }
  corpus.AddSeed("n" +
                 NpyOf("'descr': '<f4'" + order + "True, 'shape': (2, 1)", 8));
  corpus.AddSeed("n" +
                 NpyOf("'descr': '<i4'" + order + "False, 'shape': (2,)", 8));
  corpus.AddSeed("n" + NpyOf("'descr': '<f4', 'descr': '<f4'", 8));
  corpus.AddSeed("n" + NpyOf("'descr': '<f4'" + order + "False", 8));
  corpus.AddSeed("n" + NpyOf("'descr': '<f4', 'shape': (2,)", 8));
  corpus.AddSeed("n" + NpyOf("'shape': (2,)" + order + "False", 8));
  const std::vector<float> floats = {1, 2, 3, 4};
  corpus.AddValid(std::string("v\x00", 2) + NpyBytes(floats, 2));
  corpus.AddValid("v\x01" + std::string("\x01\x00\x00\x00\x00\x00\x00\x00", 8));
  corpus.AddValid("v\x02" + std::string("1 2\n3 4\n"));
  corpus.AddSeed("v\x03" + std::string("1,2\n"));
  corpus.AddSeed("f" + BytesOf(std::vector<std::int32_t>{1, 0, 2, 0}));
  corpus.AddSeed("ia\nb\na\n");
  corpus.AddSeed("cid,name,id\n1,2,3\n");
  for (const char* dtype : {"F16", "F32"}) {
    // Smaller than declared; infinite; not a number.
    corpus.AddSeed("s" +
                   SafetensorsBytes({{"w", dtype, {3}, std::string(4, '\0')}}));
    const std::int64_t count = dtype[1] == '1' ? 2 : 1;
    corpus.AddSeed(
        "s" + SafetensorsBytes({{"w", dtype, {count}, "\0\x7c\x80\x7f"s}}));
    corpus.AddSeed(
        "s" + SafetensorsBytes({{"w", dtype, {count}, "\1\xfc\xc0\x7f"s}}));
  }
  corpus.AddValid("wshort");
  corpus.AddSeed("w" + std::string(200, 'x'));
  // A line and a field longer than any allowed.
  corpus.AddSeed("i" + Gzip(std::string(17 << 20, 'a')));
  corpus.AddSeed("c" + Gzip("id,name\na,\"" + std::string(3 << 20, 'b')));
  corpus.AddValid("c\xEF\xBB\xBFid,name\na,b");
  corpus.AddSeed("j{\"id\":" + std::string(40, '[') + std::string(40, ']') +
                 "}");
  corpus.AddSeed("j{\"a\":{\"b\":1,\"b\":2}}");
  corpus.AddSeed(
      "s" +
      SafetensorsBytes("{\"a\": {\"dtype\": \"F32\", \"shape\": [1], "
                       "\"data_offsets\": [0, 4]}, \"b\": {\"dtype\": "
                       "\"F32\", \"shape\": [1], \"data_offsets\": [0, 4]}}",
                       "abcd"));
}

void WriteFiles(const std::string& root) {
  Corpus corpus(root, "file");
  const std::vector<float> floats = {1, 2, 3, 4, 5, 6};
  const std::vector<double> doubles = {1e300, -2, 0.5};
  corpus.AddValid("n" + NpyBytes(floats, 2));
  corpus.AddSeed("n" + NpyBytes(std::span<const double>(doubles)));
  std::string version2 = NpyBytes(floats, 3);
  version2[6] = 2;
  version2.insert(10, 2, '\0');
  corpus.AddValid("n" + version2);
  std::string fvecs;
  for (const float f : {1.0F, -2.5F}) {
    const std::int32_t dim = 2;
    fvecs.append(reinterpret_cast<const char*>(&dim), sizeof(dim));
    fvecs += BytesOf<float>({f, f + 1});
  }
  corpus.AddValid("f" + fvecs);
  const std::string ids =
      "\xEF\xBB\xBF"
      "a\nb\r\ntt0111161\n\xC3\xA9";
  corpus.AddValid("i" + ids);
  corpus.AddValid("i" + Gzip(ids));
  const std::string csv =
      "name,price,id\r\nAnna,1.5,a\r\n\"x, \"\"y\"\"\nz\", 2 ,b\n\n,,c\n";
  corpus.AddValid("c" + csv);
  corpus.AddValid("c" + Gzip(csv));
  const std::string lines =
      "{\"id\": \"a\", \"price\": 1.5e3, \"tags\": [\"x\", \"\\u00e9\"]}\n\n"
      "{\"id\": \"b\", \"deep\": {\"a\": [[[null, true, -1]]]}}\n";
  corpus.AddValid("j" + lines);
  corpus.AddValid("j" + Gzip(lines));
  corpus.AddValid("s" + SafetensorsBytes(LinearLayers()));
  corpus.AddValid("s" + SmallFloats("F16", 4));
  corpus.AddValid("s" + SmallFloats("BF16", 4));
  corpus.AddValid("s" + SmallFloats("F64", 16));
  corpus.AddSeed("s" + SmallFloats("I32", 8));
  corpus.AddValid("t# two words\n1 0.5,-2e1\n\n\t3,  4 5 \r\n");
  WriteMoreFiles(corpus);
}

// A fit's directory with its encoder, and files outside it.
FileMap FittedFiles() {
  const TextEncoderParts parts = {{"alarm", "clock"}, {1, 2}, 2, {1, 2, 3, 4}};
  const std::vector<float> keys = {1, 2, 3, 4};
  return {{"fitted/model.json",
           "{\"version\":1,\"key_field\":{\"name\":\"k\",\"dimension\":2,"
           "\"score_kind\":\"cosine\",\"combine_kind\":\"sum\","
           "\"temperature\":1},\"attributes\":[{\"name\":\"int64\",\"type\":"
           "\"int64\"}],\"text_encoder\":true}"},
          {"fitted/ids.txt", "a\nb\n"},
          {"fitted/keys.npy", NpyBytes(keys, 2)},
          {"fitted/encoder.bin", Ok(TextEncoder::Create(parts)).Serialize()},
          {"fitted/attributes.jsonl",
           "{\"id\":\"a\",\"int64\":5,\"opaque_value\":\"AP8=\"}\n"}};
}

void WriteImportedFiles(Corpus& corpus) {
  const std::vector<float> keys = {1, 2, 3, 4};
  const std::vector<float> values = {5, 6};
  const FileMap fitted = FittedFiles();
  const FileMap beside = {{"rows", "a\nc\n"},
                          {"rows.npy", NpyBytes(keys, 2)},
                          {"values.npy", NpyBytes(values, 1)},
                          {"attributes", "{\"id\":\"c\",\"bool\":true}\n"}};
  const auto add = [&](bool valid, FileMap files, const FileMap& others) {
    for (const auto& [name, bytes] : others) files[name] = bytes;
    const std::string packed = "d" + Pack(files);
    if (valid) {
      corpus.AddValid(packed);
    } else {
      corpus.AddSeed(packed);
    }
  };
  add(true, fitted, {});
  add(true, beside, {});
  add(true, fitted, {{"attributes", "{\"id\":\"new\",\"bool\":true}\n"}});
  add(true, {{"rows", "a\n"}, {"partial", ""}},
      {{"values.npy", NpyBytes(std::vector<float>{1}, 1)}});
  // The same attributes again, and other ones.
  add(true, fitted, {{"attributes", fitted.at("fitted/attributes.jsonl")}});
  add(false, fitted, {{"attributes", "{\"id\":\"a\",\"int64\":6}\n"}});
  add(false, fitted,
      {{"attributes", "{\"id\":\"a\",\"opaque_value\":\"AA==\"}\n"}});
  add(false, fitted, {{"twice", ""}});
  add(false, fitted, {{"fitted/ids.txt", "a\n"}});
  add(false, fitted, {{"fitted/keys.npy", NpyBytes(keys, 4)}});
  add(false, fitted, {{"fitted/encoder.bin", "ATTE"}});
  const std::string model = fitted.at("fitted/model.json");
  for (const auto& [from, to] :
       {std::pair("\"k\"", "\"other\""), std::pair(":2", ":3"),
        std::pair(":2", ":0"), std::pair("cosine", "sine"),
        std::pair("sum", "all"), std::pair("\"temperature\":1", "\"t\":1"),
        std::pair("\"version\":1", "\"version\":9"), std::pair("[{", "[7,{"),
        std::pair("\"int64\"}", "\"int\"}"), std::pair("\"k\"", "\"\"")}) {
    add(false, fitted, {{"fitted/model.json", WithOther(model, from, to)}});
  }
  add(false, {{"fitted/model.json", model}}, {});
  add(false, beside, {{"field", "other"}});
  add(false, beside, {{"rows.txt", "1 2\n3 4\n"}});
  add(false, {{"rows", "a\n"}, {"attributes", "{\"id\":\"a\"}\n"}}, {});
  for (const char* line :
       {"{\"bool\":true}", "{\"id\":1}", "{\"id\":\"a\"}\n{\"id\":\"a\"}",
        "{\"id\":\"\"}", "{\"id\":\"a\",\"none\":1}",
        "{\"id\":\"a\",\"bool\":1}"}) {
    add(false, beside, {{"attributes", line}});
  }
}

// Tensors in all file formats, with a config.
void WriteTensors(Corpus& corpus) {
  const std::vector<float> square = {1, 2, 3, 4};
  const std::vector<float> pair = {1, 2};
  const std::string npy = NpyBytes(square, 2);
  const auto add = [&](bool valid, const FileMap& files) {
    const std::string packed = "t" + Pack(files);
    if (valid) {
      corpus.AddValid(packed);
    } else {
      corpus.AddSeed(packed);
    }
  };
  const auto tensors = [&](const std::vector<NamedTensor>& of_file,
                           const std::string& config) {
    return FileMap{{"m.safetensors", SafetensorsBytes(of_file)},
                   {"config", config}};
  };
  add(true, {{"W.npy", npy}});
  add(true, {{"W.npy", npy}, {"U.npy", npy}, {"v.txt", "1 2\n"}});
  add(true, {{"W.npy", npy}, {"U.npy", npy}, {"v.npy", NpyBytes(pair, 2)}});
  add(false, {{"W.npy", npy}, {"W.txt", "1 2\n"}});
  add(false, {{"W.npy", npy}, {"U.npy", npy}, {"v.txt", "1 2 3\n"}});
  add(false, {{"W.npy", npy.substr(0, npy.size() - 1)}});
  add(false, {{"W.npy", npy}, {"W.bin", ""}});
  add(false, {{"W.npy", npy}, {"prefix", "layer."}});
  add(false, {{"W.npy", npy}, {"config", "{\"num_heads\": 2}"}});
  add(false, {{"other.npy", npy}});
  add(false, {});
  const std::string two_heads = "{\"num_heads\": 2}";
  std::vector<NamedTensor> linear = LinearLayers();
  add(true, tensors(linear,
                    "{\"num_heads\": 2, \"embed_dim\": 2, \"kdim\": "
                    "2, \"vdim\": 2, \"add_bias_kv\": false}"));
  for (const char* config :
       {"{\"num_heads\": 2, \"embed_dim\": 3}",
        "{\"num_heads\": 2, \"kdim\": 3}", "{\"num_heads\": 2, \"vdim\": 3}",
        "{\"num_attention_heads\": 3}", "{\"num_heads\": 0}",
        "{\"num_heads\": 70000}", "{\"num_heads\": \"2\"}",
        "{\"add_bias_kv\": true}", "{\"add_zero_attn\": 1}",
        "{\"dropout\": \"none\"}", "{}"}) {
    add(false, tensors(linear, config));
  }
  linear.push_back(F32Tensor("bias_k", {2}, pair));
  add(false, tensors(linear, two_heads));
  linear.back() = F32Tensor("in_proj_weight", {2, 2}, square);
  add(false, tensors(linear, two_heads));  // in two layouts
  linear = LinearLayers();
  linear[1] = F32Tensor("q_proj.bias", {2, 2}, square);
  add(false, tensors(linear, two_heads));
  linear = LinearLayers();
  linear[2] = F32Tensor("k_proj.weight", {1, 4}, square);
  add(false, tensors(linear, two_heads));
  linear[2] = F32Tensor("k_proj.weight", {4}, square);
  add(false, tensors(linear, two_heads));
  linear.erase(linear.begin() + 2);
  add(false, tensors(linear, two_heads));
  const std::vector<float> packed(12, 0.5F);
  add(false, tensors({F32Tensor("in_proj_weight", {2, 6}, packed)}, two_heads));
  add(false, tensors({F32Tensor("W_Q_1", {2, 2}, square),
                      F32Tensor("W_K_1", {2, 2}, square),
                      F32Tensor("W_K_2", {2, 2}, square)},
                     "{}"));
  add(true, tensors({F32Tensor("W_Q_1", {2, 2}, square),
                     F32Tensor("b_Q_1", {2}, pair),
                     F32Tensor("W_K_1", {2, 2}, square)},
                    "{\"num_heads\": 1}"));
  add(false, tensors({F32Tensor("W_Q_1", {2, 2}, square),
                      F32Tensor("W_K_1", {1, 4}, square)},
                     "{}"));
  // Very wide, but not transposed; more than a request holds.
  add(false, tensors({{"W", "F32", {0, std::int64_t{1} << 40}, ""}}, "{}"));
  std::vector<NamedTensor> others;
  for (int i = 0; i < 10; ++i) {
    others.push_back(F32Tensor(absl::StrCat("other", i), {1}, {1}));
  }
  add(false, tensors(others, "{}"));
  corpus.AddSeed(
      "p{\"projection\": \"mean\", \"input\": [1], \"output\": [1]}");
  corpus.AddSeed(
      "p{\"projection\": \"key\", \"input\": [1e300], \"output\": [1]}");
  corpus.AddSeed(
      "p{\"projection\": \"key\", \"input\": [1], \"output\": [\"a\"]}");
  corpus.AddSeed("p{\"projection\": \"value\", \"input\": 1}");
}

void WriteImports(const std::string& root) {
  Corpus corpus(root, "import");
  corpus.AddValid(
      "etime,customer_id,item_id,rating\n2011-01-02T00:00:00Z,c1,b,1\n"
      "2011-01-01,c2,a,-2.5\n2011-01-01 "
      "23:59:59,c1,a,0\n1293926400.5,c2,c,1\n");
  corpus.AddValid(
      "a{\"id\":\"a\",\"bool\":true,\"int64\":-5,\"double\":1.5,\"string\":"
      "\"x\","
      "\"string_list\":[\"a\",\"\"],\"timestamp\":\"2026-01-31T12:00:00.5Z\","
      "\"opaque_value\":\"AP8=\"}\n{\"id\":\"new\",\"string\":null}\n");
  corpus.AddValid(
      "m{\"version\":1,\"key_field\":{\"name\":\"events\",\"dimension\":64,"
      "\"score_kind\":\"cosine\",\"combine_kind\":\"sum\",\"temperature\":0.05}"
      ","
      "\"attributes\":[{\"name\":\"name\",\"type\":\"string\"}],"
      "\"text_encoder\":true,\"fit\":{\"events\":12}}");
  corpus.AddValid("s" + SafetensorsBytes(LinearLayers()));
  const std::vector<float> square = {1, 2, 3, 4};
  const std::vector<float> packed(12, 0.5F);
  corpus.AddValid("s" + SafetensorsBytes(
                            {F32Tensor("in_proj_weight", {6, 2}, packed),
                             F32Tensor("in_proj_bias", {6}, {1, 2, 3, 4, 5, 6}),
                             F32Tensor("out_proj.weight", {2, 2}, square),
                             F32Tensor("out_proj.bias", {2}, {0, 1})}));
  corpus.AddValid(
      "s" + SafetensorsBytes({F32Tensor("q_proj_weight", {2, 2}, square),
                              F32Tensor("k_proj_weight", {2, 2}, square),
                              F32Tensor("v_proj_weight", {2, 2}, square),
                              F32Tensor("out_proj.weight", {2, 2}, square)}));
  corpus.AddValid("s" + SafetensorsBytes({F32Tensor("W_Q_0", {2, 2}, square),
                                          F32Tensor("W_K_0", {2, 2}, square),
                                          F32Tensor("W_V_0", {2, 2}, square),
                                          F32Tensor("W_O", {2, 2}, square)}));
  corpus.AddValid("s" + SafetensorsBytes({F32Tensor("W", {2, 2}, square)}));
  corpus.AddValid("s" + SafetensorsBytes({F32Tensor("W", {2, 2}, square),
                                          F32Tensor("U", {2, 2}, square),
                                          F32Tensor("v", {2}, {1, 2})}));
  corpus.AddValid(
      "c{\"embed_dim\": 4, \"num_heads\": 2, \"dropout\": 0.1, \"kdim\": "
      "null}");
  corpus.AddValid(
      "p{\"projection\": \"query\", \"input\": [1, 0], \"output\": [0.5, -1]}");
  for (const char* flag :
       {"events:64:cosine", "price:double", "name=ALARM CLOCK", "tt01=0.5",
        "0.1,-2,3e-5", "-9223372036854775808", "0.25", "events:2",
        "2011-01-01T00:00:00.5+01:00", "1e18"}) {
    corpus.AddValid(absl::StrCat("f", flag));
  }
  corpus.AddValid(
      "i{\"id\":\"a\",\"keys\":{\"k\":[0.1,-2e1]},\"value\":[1],"
      "\"attributes\":{\"bool\":true,\"int64\":-5,\"double\":1.5,\"string\":"
      "\"x\",\"string_list\":[\"a\",\"\"],\"timestamp\":"
      "\"2026-01-31T12:00:00.5Z\"},\"opaque_value\":\"AP8=\"}\n\n"
      "{\"id\":\"b\"}\n");
  WriteImportedFiles(corpus);
  WriteTensors(corpus);
  corpus.AddValid("ocustomer_id,item_id,rating\nc1,b,1\nc2,a,-2.5\n");
  corpus.AddSeed("ecustomer_id,item_id,rating\nc1,b,1\n");
  corpus.AddSeed("etime,customer_id,item_id,rating\n2011-01-02,,b,1\n");
  corpus.AddSeed("etime,customer_id,item_id,rating\n2011-01-02,c,b,many\n");
  // Its shortest decimal text would be rounded twice by a parser that reads
  // doubles.
  corpus.AddValid(
      "i{\"id\":\"a\",\"keys\":{\"k\":[7.038530691851209e-26,-0.0]}}\n");
  for (const char* member :
       {"\"keys\":[1]", "\"keys\":{\"k\":1}", "\"keys\":{\"k\":[\"a\"]}",
        "\"value\":[1e300]", "\"attributes\":{\"bool\":1}",
        "\"attributes\":{\"none\":1}", "\"other\":1", "\"opaque_value\":7"}) {
    corpus.AddSeed(absl::StrCat("i{\"id\":\"a\",", member, "}\n"));
  }
  corpus.AddSeed("i{\"id\":7}\n{}\nnone\n");
}

void WriteConfigs(const std::string& root) {
  Corpus corpus(root, "config");
  corpus.AddValid(
      "data-dir = \"/var/lib/attendant\"\nlisten = \"0.0.0.0:7600\"\n"
      "workers = 3\nmax-message-bytes = 65536\ngrace-seconds = 0\n"
      "log-level = \"debug\"\nauto-ivf-min-count = 20000\n"
      "plaintext-on-network = true\nidle-seconds = 5\n");
  corpus.AddValid("# a comment\nmemory-limit=12GiB\n\nworkers=0\n");
  corpus.AddValid(
      "# tokens\nci write films,shop-* "
      "hkdf-sha256:AAAAAAAAAAAAAAAAAAAAAA:"
      "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n"
      "web read * hkdf-sha256:AQAAAAAAAAAAAAAAAAAAAA:"
      "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n");
  corpus.AddValid("films,shop-*,a_1");
  corpus.AddValid("*");
  corpus.AddValid("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
  corpus.AddSeed("[serving]\nlisten = 'x'\nunknown = [1, 2]\n");
  corpus.AddSeed("help = true\n");
  const std::string token = "ci.d9cbocwO4Dol2MLyiMnvQ5AMSd611obthTEe8ZA6YPQ";
  corpus.AddValid("Bearer " + token);
  corpus.AddValid("bEARER \t" + token + " ");
  corpus.AddSeed("Digest " + token);
  corpus.AddSeed("Bearer ci.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
  for (const char* text :
       {"ci_1", "/attendant.v1.AttentionService/Attend",
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
        "/attendant.v1.ItemService/ImportItems", "0.0.0.0:7600", "[::1]:0"}) {
    corpus.AddValid(text);
  }
  for (const char* text :
       {"/grpc.health.v1.Health/Check", "/attendant.v1.ItemService/None",
        "/attendant.v1.CatalogService/DeleteCatalog", "host:70000", ":7600",
        "00.4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "ci read films", "c! read films x", "ci own films x",
        "ci read films,* x", "ci read films x"}) {
    corpus.AddSeed(text);
  }
  const std::string line =
      "ci read * hkdf-sha256:AAAAAAAAAAAAAAAAAAAAAA:"
      "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n";
  corpus.AddSeed(line + line);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(7600);
  corpus.AddSeed({reinterpret_cast<const char*>(&address), sizeof(address)});
  sockaddr_in6 address6 = {};
  address6.sin6_family = AF_INET6;
  address6.sin6_port = htons(7600);
  corpus.AddSeed({reinterpret_cast<const char*>(&address6), sizeof(address6)});
}

void WriteSnapshots(const std::string& root) {
  Corpus corpus(root, "snapshot");
  const auto set = Ok(CatalogSet::Open(Scratch() / "snapshot-data", {}));
  CatalogSchema schema = TestRecord().schema;
  schema.key_fields[0].model = {"model", 1};
  schema.key_fields[0].score_kind = ScoreKind::kBilinear;
  Ok(set->models().Create("model", {BilinearForm{{1, 4, {1, 2, 3, 4}}}}, {}));
  const auto created = Ok(set->Create("shop", schema, {}));
  std::vector<Item> items;
  for (int i = 0; i < 5; ++i) items.push_back(TestItem(i));
  Ok(created.catalog->Upsert(items, ""));
  LongWork work;
  Ok(set->CreateSnapshot("shop", "s", work));
  SnapshotExport stream(&set->snapshots(),
                        Ok(set->snapshots().Open({"shop", "s"})));
  std::string bytes;
  while (true) {
    const std::string part = Ok(stream.Next(1 << 16));
    if (part.empty()) break;
    bytes += part;
  }
  corpus.AddValid("r\x02" + bytes);
  corpus.AddValid("c\xff" + bytes);
  corpus.AddValid("n\x20other\nnamed\n" + bytes);
  corpus.AddSeed("n\x20Other\n\n" + bytes);
  for (const char how : {'\x00', '\x07', '\x0d'}) {
    corpus.AddValid(absl::StrCat("d", std::string(1, how), bytes));
  }
  // Truncated in the header, in the manifest, in the parts, and before the
  // checksum.
  for (const std::size_t size :
       {std::size_t{10}, std::size_t{100}, bytes.size() - 100,
        bytes.size() - kHashTextBytes, bytes.size() - 1}) {
    corpus.AddSeed("r\x20" + bytes.substr(0, size));
  }
  corpus.AddSeed("r\x20" + bytes + "x");
  corpus.AddSeed("r\x20" + WithOther(bytes, "ATTN", "OTHR").substr(0, 100));
  corpus.AddSeed("r\x20" + bytes.substr(0, 8) + std::string(8, '\x7f'));
  // A manifest shorter than its checksum.
  corpus.AddSeed("r\x20" + bytes.substr(0, 8) +
                 std::string("\x05\0\0\0\0\0\0\0", 8) + std::string(80, 'x'));
  std::string changed = bytes;
  changed[changed.size() - 60] ^= 1;
  corpus.AddSeed("r\x20" + changed);
}

// Segments of 40 items, of which `deleted_count` are deleted.
FileMap SegmentFileMap(int deleted_count) {
  const CatalogRecord record = SegmentRecord();
  BackgroundWorker background;
  const auto store =
      Ok(Store::Open(Scratch() / absl::StrCat("segment-data", deleted_count)));
  Ok(store->Put(record));
  const auto catalog = Ok(LiveCatalog::Open(
      record, std::vector<NamedModel>(record.schema.key_fields.size()),
      Ok(store->OpenCatalog(record)), &background, {}));
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  const auto floats = [&](int count) {
    std::vector<float> numbers;
    for (int i = 0; i < count; ++i) numbers.push_back(normal(random));
    return numbers;
  };
  std::vector<Item> items;
  for (int i = 0; i < 40; ++i) {
    Item item;
    item.id = absl::StrCat("item", i);
    item.keys = {floats(3), floats(i % 5 == 0 ? 0 : 2)};
    item.value = floats(2);
    item.attributes = {{0, absl::StrCat("name ", i)},
                       {2, std::vector<std::string>{"a", item.id}}};
    if (i % 7 == 0) item.opaque_value = item.id;
    items.push_back(std::move(item));
  }
  Ok(catalog->Upsert(items, "").status());
  catalog->AwaitIndexes();
  std::vector<std::string> deleted;
  for (const Item& item : items) {
    if (static_cast<int>(deleted.size()) == deleted_count) break;
    deleted.push_back(item.id);
  }
  if (!deleted.empty()) Ok(catalog->Delete(deleted, "").status());
  catalog->AwaitIndexes();
  const SegmentDirectory directory(Scratch() / "segment-files", Files());
  UnlinkedFiles unlinked(Scratch() / "nameless");
  SegmentFiles segments(&directory, &unlinked);
  const auto snapshot = catalog->snapshot();
  const auto covered = SegmentFiles::Covered(*snapshot);
  Require(covered.has_value(), "segments were trained");
  Ok(segments.Save(*snapshot, *covered, false));
  FileMap files;
  for (const auto& entry :
       fs::directory_iterator(Scratch() / "segment-files")) {
    const std::string name = entry.path().filename();
    files[name == "MANIFEST" ? "" : name] = ReadAll(entry.path());
  }
  Ok(segments.Clear());
  std::string& manifest = files[""];
  manifest.resize(manifest.size() - kHashTextBytes);
  return files;
}

void WriteSegments(const std::string& root) {
  Corpus corpus(root, "segment");
  FileMap files = SegmentFileMap(0);
  corpus.AddValid(Pack(files));
  corpus.AddValid(Pack(SegmentFileMap(3)));
  // With its original checksum, and with another.
  const std::string manifest = files[""];
  files.erase("");
  files["MANIFEST"] = manifest + HashText(manifest);
  corpus.AddValid(Pack(files));
  corpus.AddSeed(Pack({{"MANIFEST", manifest + HashText("")}}));
  corpus.AddSeed(Pack({{"MANIFEST", "short"}}));
}

constexpr char kQuery[] =
    "catalog: 'shop' key_field: 'k' "
    "query { vector { floats { values: [ 1, 0.5 ] } } } ";

void WriteRpcs(const std::string& root) {
  Corpus corpus(root, "rpc");
  const auto add = [&](const std::string& method, const std::string& text) {
    return method + "\n" + RpcBytes(method, text);
  };
  const auto valid = [&](const std::string& method, const std::string& text) {
    corpus.AddValid(add(method, text));
  };
  const auto attend = [&](const std::string& text) {
    valid("Attend", kQuery + text);
  };
  attend("");
  attend(
      "result_count: 2 shortlist_count: 3 temperature: 0.1 "
      "weight_scope: WEIGHT_SCOPE_CATALOG scan_mode: SCAN_MODE_EXACT "
      "read_mask { paths: 'attributes' }");
  attend(
      "filter: 'price < 2 OR NOT EXISTS stock' deny_list { ids: 'b' } "
      "allow_list { ids: 'a' ids: 'c' }");
  attend(
      "filter_expression { all_of { filters { comparison { attribute: "
      "'price' kind: COMPARISON_KIND_LESS value { double_value: 2 } } } "
      "filters { negation { exists: 'tags' } } } }");
  attend(
      "select_kind: SELECT_KIND_SAMPLE result_count: 2 seed: 7 "
      "weight_scope: WEIGHT_SCOPE_CATALOG");
  attend("select_kind: SELECT_KIND_HARD");
  attend("min_mass: 0.5 mass_precision: 0.1 mass_method: MASS_METHOD_BOUND");
  attend(
      "biases { attribute: 'price' factor: 0.5 } biases { attribute: "
      "'listed' half_life { seconds: 60 } } time { seconds: 100 }");
  attend("activation_kind: ACTIVATION_KIND_SIGMOID recall: 0.9");
  attend("model { name: 'm' } score_kind: SCORE_KIND_BILINEAR");
  valid("Attend",
        "catalog: 'best' key_field: 'k' query { text: 'alarm clokc' }");
  valid("Attend",
        "catalog: 'shop' key_field: 'k' query { examples { examples { id: 'a' "
        "weight: -0.5 } examples { id: 'b' } exclude_examples: false "
        "combine_kind: COMBINE_KIND_UNIT } }");
  valid(
      "Attend",
      "catalog: 'shop' heads { key_field: 'k' query { examples { examples { "
      "id: 'a' } } } } heads { key_field: 'cos' temperature: 2 query { vector "
      "{ floats { values: [ 1, 0 ] } } } } include_head_weights: true");
  valid("BatchAttend",
        absl::StrCat("catalog: 'shop' requests { ",
                     std::string(kQuery).substr(16), "} requests { ",
                     std::string(kQuery).substr(16), "}"));
  for (const RpcRequest& request : kRpcWorld) {
    // The world already has these: the last three are sent again.
    corpus.AddSeed(add(std::string(request.method), request.text));
  }
  valid("CreateCatalog",
        "name: 'new' schema { key_fields { name: 'k' dimension: 3 index_kind: "
        "INDEX_KIND_IVF keys_on_disk: true temperature: 0.5 } }");
  valid("GetCatalog", "name: 'best'");
  valid("ListCatalogs", "page_size: 1");
  valid("UpdateCatalog",
        "name: 'shop' key_fields { name: 'k' temperature: 2 } update_mask { "
        "paths: 'temperature' } new_attributes { name: 'sold' type: "
        "ATTRIBUTE_TYPE_INT64 }");
  corpus.AddSeed(add("DeleteCatalog", "name: 'shop'"));
  valid("SetAlias", "alias: 'best' catalog: 'shop' expected_catalog: 'shop'");
  valid("GetAlias", "alias: 'best'");
  valid("ListAliases", "");
  valid("DeleteAlias", "alias: 'best'");
  valid("ImportItems",
        "catalog: 'shop' items { id: 'd' keys { key: 'k' value { float32_le: "
        "'\\000\\000\\200?\\000\\000\\200?' } } } items { id: '' }");
  valid("BatchUpdateItems",
        "catalog: 'shop' items { id: 'a' attributes { key: 'stock' value { "
        "int64_value: 3 } } } update_mask { paths: 'attributes' } request_id: "
        "'r'");
  valid("BatchGetItems",
        "catalog: 'shop' ids: 'a' ids: 'b' read_mask { paths: 'keys' }");
  valid("ListItems", "catalog: 'shop' page_size: 2 filter: 'price > 1'");
  valid("BatchDeleteItems", "catalog: 'shop' ids: 'a' ids: 'zz'");
  valid("DeleteMatchingItems",
        "catalog: 'shop' filter: 'price > 2' dry_run: true");
  valid("GetModel", "model { name: 'm' } include_weights: true");
  valid("ListModels", "page_size: 5");
  corpus.AddSeed(add("DeleteModel", "name: 'm' version: 1"));
  valid(
      "CreateModel",
      "model { name: 'n' multi_head { head_count: 1 query { weight { "
      "row_count: 1 column_count: 2 float32_le: "
      "'\\000\\000\\200?\\000\\000\\200?' } } key { weight { row_count: 1 "
      "column_count: 2 float32_le: '\\000\\000\\200?\\000\\000\\000@' } } } }");
  valid(
      "Contextualize",
      "sequence { vectors { vectors { floats { values: [ 1, 2 ] } } vectors { "
      "floats { values: [ 0, 1 ] } } } } causal: true include_weights: true "
      "padding_positions: 1 positions: POSITION_KIND_SINUSOIDAL");
  valid("Contextualize",
        "sequence { items { catalog: 'shop' key_field: 'k' ids: 'a' ids: 'b' } "
        "} memory { vectors { vectors { floats { values: [ 1, 2 ] } } } }");
  valid("RankCandidates",
        "catalog: 'shop' key_field: 'k' candidates { items { ids: 'a' ids: 'b' "
        "} } history { item_id: 'c' time { seconds: 5 } } history { vector { "
        "floats { values: [ 1, 2 ] } } time { seconds: 9 } } time { seconds: 7 "
        "} profile { item_id: 'b' }");
  valid("RankCandidates",
        "catalog: 'shop' key_field: 'k' candidates { query { vector { floats { "
        "values: [ 1, 0 ] } } candidate_count: 2 } } history { item_id: 'a' "
        "time { } }");
  valid("CreateSnapshot", "catalog: 'shop' name: 'other'");
  valid("GetSnapshot", "catalog: 'shop' name: 's'");
  valid("ListSnapshots", "catalog: 'shop'");
  valid("VerifySnapshot", "catalog: 'best' name: 's'");
  valid("RestoreSnapshot", "catalog: 'shop' name: 's' new_catalog: 'copy'");
  valid("DeleteSnapshot", "catalog: 'shop' name: 's'");
  valid("ExportSnapshot", "catalog: 'shop' name: 's'");
  corpus.AddSeed(add("ImportSnapshot", "chunk: 'ATTNSNP1' name: 'x'"));
}

}  // namespace
}  // namespace attendant

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string root = argv[1];
  attendant::WriteFilters(root);
  attendant::WriteCodecs(root);
  attendant::WriteStates(root);
  attendant::WriteFiles(root);
  attendant::WriteImports(root);
  attendant::WriteConfigs(root);
  attendant::WriteSnapshots(root);
  attendant::WriteSegments(root);
  attendant::WriteRpcs(root);
}
