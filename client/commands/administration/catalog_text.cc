#include "client/commands/administration/catalog_text.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/commands/shared/command.h"
#include "client/commands/shared/flags.h"

namespace attendant {
namespace {

// Returns how much of the index a query visits.
std::string DescribeProbes(const v1::IndexStatus& index) {
  const std::string count = FormatCount(index.probe_count());
  switch (index.active_kind()) {
    case v1::INDEX_KIND_IVF:
      return absl::StrCat(FormatCount(index.list_count()), " lists, ", count,
                          " visited");
    case v1::INDEX_KIND_LSH:
      return absl::StrCat(count, " buckets");
    default:
      return absl::StrCat(count, " candidates");
  }
}

// Returns the index kind of the schema and, if another kind answers now, that:
// "auto (flat)".
std::string DescribeKind(const v1::KeyField& field,
                         const v1::IndexStatus* index) {
  std::string text = FlagOf(field.index_kind());
  if (index != nullptr && index->active_kind() != field.index_kind()) {
    absl::StrAppend(&text, " (", FlagOf(index->active_kind()), ")");
  }
  return text;
}

// Returns "Index of events: ivf (1,265 lists, 24 visited, recall@100 0.981),
// building another", or "" if there is nothing to say but the kind.
std::string DescribeIndex(const v1::IndexStatus& index) {
  std::string text;
  if (index.probe_count() > 0) {
    absl::StrAppend(&text, " (", DescribeProbes(index));
    if (index.has_measured_recall()) {
      absl::StrAppend(&text, ", recall@100 ",
                      FormatNumber(index.measured_recall()));
    }
    absl::StrAppend(&text, ")");
  }
  if (index.has_active_model()) {
    absl::StrAppend(&text, ", model ", Printable(index.active_model().name()),
                    ":", index.active_model().version());
  }
  if (index.training()) {
    absl::StrAppend(&text, index.active_kind() == v1::INDEX_KIND_FLAT
                               ? ", building an index; until it is ready "
                                 "answers are exact"
                               : ", building another");
  }
  if (text.empty()) return "";
  return absl::StrCat("Index of ", Printable(index.key_field()), ": ",
                      FlagOf(index.active_kind()), text, "\n");
}

const v1::IndexStatus* FindIndex(const v1::KeyField& field,
                                 const v1::Catalog& catalog) {
  for (const v1::IndexStatus& index : catalog.indexes()) {
    if (index.key_field() == field.name()) return &index;
  }
  return nullptr;
}

// Returns a table of memory by part, the largest first; "" if all are 0.
std::string DescribeMemory(const v1::MemoryUse& memory, const Style& style) {
  std::vector<std::pair<std::int64_t, std::string>> parts = {
      {memory.key_bytes(), "keys"},
      {memory.code_bytes(), "codes"},
      {memory.index_bytes(), "index"},
      {memory.attribute_bytes(), "attributes"},
      {memory.value_bytes(), "values"},
      {memory.id_bytes(), "ids"},
      {memory.tombstone_bytes(), "tombstones"},
      {memory.encoder_bytes(), "text encoders"},
      {memory.database_bytes(), "database"}};
  std::erase_if(parts, [](const auto& part) { return part.first == 0; });
  if (parts.empty()) return "";
  std::ranges::stable_sort(
      parts, [](const auto& a, const auto& b) { return a.first > b.first; });
  std::int64_t sum = 0;
  for (const auto& [bytes, name] : parts) sum += bytes;
  using Align = Table::Align;
  Table table({{.title = "memory"},
               {.title = "size", .align = Align::kRight},
               {.title = "share", .align = Align::kRight}});
  for (const auto& [bytes, name] : parts) {
    table.AddRow(
        {name, FormatBytes(bytes),
         FormatShare(static_cast<double>(bytes) / static_cast<double>(sum))});
  }
  return absl::StrCat("\n", table.Format(style));
}

}  // namespace

std::string DescribeCatalog(const v1::Catalog& catalog, const Style& style) {
  std::int64_t disk_bytes = 0;
  for (const v1::IndexStatus& index : catalog.indexes()) {
    disk_bytes += index.disk_bytes();
  }
  std::string text = absl::StrCat(
      style.Bold(Printable(catalog.name())), "  ",
      CountOf(catalog.item_count(), "item"), ", ",
      FormatBytes(catalog.memory_bytes()), " in memory",
      disk_bytes > 0
          ? absl::StrCat(", ", FormatBytes(disk_bytes), " of keys on disk")
          : "",
      "\n",
      style.Dim(absl::StrCat("created ", FormatTimestamp(catalog.create_time()),
                             ", ", CountOf(catalog.sequence(), "write"),
                             ", uid ", Printable(catalog.uid()))),
      "\n\n");
  using Align = Table::Align;
  Table fields({{.title = "key field"},
                {.title = "dim", .align = Align::kRight},
                {.title = "keys", .align = Align::kRight},
                {.title = "score"},
                {.title = "temperature", .align = Align::kRight},
                {.title = "combine"},
                {.title = "index"},
                {.title = "text"}});
  for (const v1::KeyField& field : catalog.schema().key_fields()) {
    const v1::IndexStatus* index = FindIndex(field, catalog);
    const int terms = index == nullptr ? 0 : index->text_encoder_term_count();
    fields.AddRow({field.name(), FormatCount(field.dimension()),
                   index == nullptr ? "" : FormatCount(index->key_count()),
                   FlagOf(field.score_kind()),
                   FormatNumber(field.temperature()),
                   FlagOf(field.combine_kind()), DescribeKind(field, index),
                   terms == 0 ? "-" : CountOf(terms, "term")});
  }
  absl::StrAppend(&text, fields.Format(style));
  for (const v1::IndexStatus& index : catalog.indexes()) {
    absl::StrAppend(&text, DescribeIndex(index));
  }
  if (!catalog.schema().attributes().empty()) {
    Table attributes({{.title = "attribute"}, {.title = "type"}});
    for (const v1::AttributeField& field : catalog.schema().attributes()) {
      attributes.AddRow({field.name(), FlagOf(field.type())});
    }
    absl::StrAppend(&text, "\n", attributes.Format(style));
  }
  // Before the first write only the database takes memory, a few KiB.
  if (catalog.sequence() > 0) {
    absl::StrAppend(&text, DescribeMemory(catalog.memory(), style));
  }
  absl::StrAppend(
      &text, "\n",
      catalog.schema().value_dimension() > 0
          ? absl::StrCat("Values of ", catalog.schema().value_dimension(),
                         " components are pooled.\n")
          : "Keys are pooled as values.\n");
  for (const std::string& warning : catalog.warnings()) {
    absl::StrAppend(&text, "Warning: ", Printable(warning), "\n");
  }
  return text;
}

std::string DescribeServer(const v1::ServerMemory& memory) {
  return absl::StrCat(
      "The server uses ", FormatBytes(memory.used_bytes()),
      memory.limit_bytes() > 0
          ? absl::StrCat(" of ", FormatBytes(memory.limit_bytes()))
          : "",
      " of memory, with ", FormatBytes(memory.cache_bytes()),
      " of cached blocks and ", FormatBytes(memory.write_buffer_bytes()),
      " of write buffers.\n");
}

}  // namespace attendant
