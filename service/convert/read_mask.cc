#include "service/convert/read_mask.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "core/base/status.h"

namespace attendant {

ReadMask ReadMask::All(const CatalogSchema& schema) {
  ReadMask mask;
  mask.keys = true;
  mask.value = true;
  mask.opaque_value = true;
  mask.attributes.assign(schema.attributes.size(), true);
  mask.any_attributes = !mask.attributes.empty();
  return mask;
}

absl::StatusOr<ReadMask> ReadMaskFromProto(
    const google::protobuf::FieldMask& wire, const CatalogSchema& schema) {
  ReadMask mask;
  mask.attributes.assign(schema.attributes.size(), false);
  for (int i = 0; i < wire.paths_size(); ++i) {
    const std::string& path = wire.paths(i);
    absl::string_view name = path;
    if (path == "keys") {
      mask.keys = true;
    } else if (path == "value") {
      mask.value = true;
    } else if (path == "opaque_value") {
      mask.opaque_value = true;
    } else if (path == "attributes") {
      mask.attributes.assign(schema.attributes.size(), true);
      mask.any_attributes = !mask.attributes.empty();
    } else if (absl::ConsumePrefix(&name, "attributes.")) {
      const int position = schema.AttributeIndex(name);
      if (position < 0) {
        return InvalidField(absl::StrCat("read_mask.paths[", i, "]"),
                            absl::StrCat("\"", path, "\""),
                            "an attribute that the schema declares");
      }
      mask.attributes[static_cast<std::size_t>(position)] = true;
      mask.any_attributes = true;
    } else {
      return InvalidField(
          absl::StrCat("read_mask.paths[", i, "]"),
          absl::StrCat("\"", path, "\""),
          "keys, value, opaque_value, attributes or attributes.NAME");
    }
  }
  return mask;
}

std::string CanonicalText(const ReadMask& mask) {
  std::string text = absl::StrCat(mask.keys ? "k" : "", mask.value ? "v" : "",
                                  mask.opaque_value ? "o" : "");
  for (std::size_t i = 0; i < mask.attributes.size(); ++i) {
    if (mask.attributes[i]) absl::StrAppend(&text, "a", i);
  }
  return text;
}

}  // namespace attendant
