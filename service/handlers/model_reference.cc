#include "service/handlers/model_reference.h"

#include <limits>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace attendant {

absl::StatusOr<std::shared_ptr<const ModelVersion>> FindModelVersion(
    const ModelSet& models, const v1::ModelReference& wire,
    absl::string_view field) {
  if (wire.name().empty()) {
    return InvalidField(absl::StrCat(field, ".name"), "nothing",
                        "the name of a model");
  }
  std::optional<std::int64_t> version;
  if (wire.has_version()) {
    version = wire.version();
    ATTENDANT_RETURN_IF_ERROR(
        CheckCount(*version, 1, std::numeric_limits<std::int64_t>::max(),
                   absl::StrCat(field, ".version")));
  }
  absl::StatusOr<std::shared_ptr<const ModelVersion>> found =
      models.Get(wire.name(), version);
  if (!found.ok()) {
    return PrefixField(found.status(), absl::StrCat(field, ": "));
  }
  return found;
}

absl::StatusOr<NamedModel> FindModel(const ModelSet& models,
                                     const v1::ModelReference& wire,
                                     absl::string_view field) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::shared_ptr<const ModelVersion> found,
                             FindModelVersion(models, wire, field));
  // Shares ownership with the version.
  return NamedModel{
      found->name, std::shared_ptr<const AttentionModel>(found, &found->model)};
}

}  // namespace attendant
