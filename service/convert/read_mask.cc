#include "service/convert/read_mask.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "core/base/status.h"

namespace attendant {

namespace {

void ReadAllKeys(const CatalogSchema& schema, ReadMask& mask) {
  for (std::size_t f = 0; f < schema.key_fields.size(); ++f) mask.keys.set(f);
}

void ReadAllAttributes(const CatalogSchema& schema, ReadMask& mask) {
  mask.attributes.assign(schema.attributes.size(), true);
  mask.all_attributes = true;
  mask.any_attributes = true;
}

// InvalidArgument about the path, without its position.
absl::Status AddPath(absl::string_view path, const CatalogSchema& schema,
                     ReadMask& mask) {
  absl::string_view name = path;
  if (path == "*") {
    mask = ReadMask::All(schema);
  } else if (path == "keys") {
    ReadAllKeys(schema, mask);
  } else if (path == "value") {
    mask.value = true;
  } else if (path == "opaque_value") {
    mask.opaque_value = true;
  } else if (path == "attributes") {
    ReadAllAttributes(schema, mask);
  } else if (absl::ConsumePrefix(&name, "keys.")) {
    const int field = schema.KeyFieldIndex(name);
    if (field < 0) {
      return InvalidField("", absl::StrCat("\"", path, "\""),
                          "a key field that the schema declares");
    }
    mask.keys.set(static_cast<std::size_t>(field));
  } else if (absl::ConsumePrefix(&name, "attributes.")) {
    const int position = schema.AttributeIndex(name);
    if (position < 0) {
      return InvalidField("", absl::StrCat("\"", path, "\""),
                          "an attribute that the schema declares");
    }
    mask.attributes[position] = true;
    mask.any_attributes = true;
  } else {
    return InvalidField("", absl::StrCat("\"", path, "\""),
                        "keys, keys.FIELD, value, opaque_value, attributes, "
                        "attributes.NAME or *");
  }
  return absl::OkStatus();
}

}  // namespace

ReadMask ReadMask::All(const CatalogSchema& schema) {
  ReadMask mask;
  ReadAllKeys(schema, mask);
  mask.value = true;
  mask.opaque_value = true;
  ReadAllAttributes(schema, mask);
  return mask;
}

absl::StatusOr<ReadMask> ReadMaskFromProto(
    const google::protobuf::FieldMask& wire, const CatalogSchema& schema) {
  ReadMask mask;
  mask.attributes.assign(schema.attributes.size(), false);
  for (int i = 0; i < wire.paths_size(); ++i) {
    const absl::Status added = AddPath(wire.paths(i), schema, mask);
    if (!added.ok()) {
      return PrefixField(added, absl::StrCat("read_mask.paths[", i, "]"));
    }
  }
  return mask;
}

std::string CanonicalText(const ReadMask& mask) {
  std::string text =
      absl::StrCat(mask.value ? "v" : "", mask.opaque_value ? "o" : "");
  if (mask.keys.any()) absl::StrAppend(&text, "k", mask.keys.to_string());
  if (mask.all_attributes) return absl::StrCat(text, "a*");
  for (std::size_t i = 0; i < mask.attributes.size(); ++i) {
    if (mask.attributes[i]) absl::StrAppend(&text, "a", i);
  }
  return text;
}

}  // namespace attendant
