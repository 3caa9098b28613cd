// Writes the seeds of the fuzz targets: make_corpus tests/fuzz/corpus. Again
// when a format changes; seeds of bugs that were found have other names
// (bug-*), and stay.
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "client/files/npy.h"
#include "core/base/fail_point.h"
#include "core/catalog/catalog_set.h"
#include "core/encode/text_encoder.h"
#include "core/storage/alias_codec.h"
#include "core/storage/catalog_record_codec.h"
#include "core/storage/item_codec.h"
#include "core/storage/model_codec.h"
#include "core/storage/snapshot_stream.h"
#include "core/storage/stream_hash.h"
#include "service/flags.h"
#include "tests/client/safetensors_bytes.h"
#include "tests/core/catalog/random_filter.h"
#include "tests/core/storage/test_store.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/rpc_requests.h"
#include "tests/fuzz/scratch.h"
#include "tests/fuzz/segment_files.h"

namespace attendant {
namespace {

namespace fs = std::filesystem;

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

  // What the parser takes.
  void AddValid(absl::string_view bytes) { Add("valid", bytes); }
  // What it may refuse.
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

// A write in one record of RocksDB's log. The checksum is a masked CRC-32C, of
// the type and the payload.
std::string LogRecord(const std::string& payload) {
  const std::string checked = '\x01' + payload;
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
  record[6] = '\x01';
  return record + payload;
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
  // A sector of the last write never came.
  corpus.AddValid("l" + log.substr(0, 512) + std::string(100, '\0'));
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
}

void WriteSegments(const std::string& root) {
  Corpus corpus(root, "segment");
  const CatalogRecord record = SegmentRecord();
  const std::string directory = Scratch() / "segment-data";
  BackgroundWorker background;
  const auto store = Ok(Store::Open(directory));
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
  Ok(catalog->save_status());
  SegmentFileMap files;
  for (const auto& entry :
       fs::directory_iterator(directory + "/segments/" + record.uid)) {
    const std::string name = entry.path().filename();
    files[name == "MANIFEST" ? "" : name] = ReadAll(entry.path());
  }
  Require(files.size() > 2, "segments were trained and kept");
  std::string& manifest = files[""];
  manifest.resize(manifest.size() - kHashTextBytes);
  corpus.AddValid(Pack(files));
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
    // Of a world that has it already: the last three are taken once more.
    corpus.AddSeed(add(std::string(request.method), request.text));
  }
  valid("CreateCatalog",
        "name: 'new' schema { key_fields { name: 'k' dimension: 3 index_kind: "
        "INDEX_KIND_IVF keys_on_disk: true temperature: 0.5 } }");
  valid("GetCatalog", "name: 'best'");
  valid("ListCatalogs", "page_size: 1");
  valid("UpdateCatalog",
        "name: 'shop' key_fields { name: 'k' temperature: 2 } update_mask { "
        "paths: 'temperature' }");
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
  valid("ListItems", "catalog: 'shop' page_size: 2");
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
  corpus.AddSeed(add("ImportSnapshot", "bytes: 'ATTNSNP1' name: 'x'"));
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
