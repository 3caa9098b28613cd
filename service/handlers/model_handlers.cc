#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/status.h"
#include "service/calls/page.h"
#include "service/convert/model.h"
#include "service/convert/tokens.h"
#include "service/handlers/handlers.h"
#include "service/handlers/model_reference.h"

namespace attendant {
namespace {

// Converts a model version to the text of a page token and back.
std::string AfterText(const ModelName& name) {
  return absl::StrCat(name.version, " ", name.name);
}

absl::StatusOr<ModelName> AfterFromText(absl::string_view text) {
  if (text.empty()) return ModelName();
  ModelName name;
  const std::size_t space = text.find(' ');
  if (space == absl::string_view::npos ||
      !absl::SimpleAtoi(text.substr(0, space), &name.version)) {
    return InvalidField("page_token", "an unknown token",
                        "the next_page_token of a reply to the same request");
  }
  name.name = std::string(text.substr(space + 1));
  return name;
}

}  // namespace

absl::Status CreateModel(Backend& backend,
                         const v1::CreateModelRequest& request,
                         const Interrupt& interrupt,
                         v1::CreateModelResponse* response) {
  if (!request.has_model()) {
    return InvalidField("model", "nothing", "the model to store");
  }
  ATTENDANT_RETURN_IF_ERROR(
      PrefixField(ValidateCatalogName(request.model().name()), "model."));
  absl::StatusOr<AttentionModel> model = ModelFromProto(request.model());
  if (!model.ok()) return PrefixField(model.status(), "model.");
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<ProjectionProbe> probes,
                             ProbesFromProto(request.probes()));
  ATTENDANT_RETURN_IF_ERROR(interrupt.Check());
  ATTENDANT_ASSIGN_OR_RETURN(
      const auto created,
      backend.catalogs->models().Create(request.model().name(),
                                        *std::move(model), probes, interrupt));
  SummaryToProto(*created, response->mutable_model());
  return absl::OkStatus();
}

absl::Status GetModel(Backend& backend, const v1::GetModelRequest& request,
                      const Interrupt& /*interrupt*/,
                      v1::GetModelResponse* response) {
  ATTENDANT_ASSIGN_OR_RETURN(
      const auto found,
      FindModelVersion(backend.catalogs->models(), request.model(), "model"));
  SummaryToProto(*found, response->mutable_summary());
  if (request.include_weights()) {
    ModelToProto(*found, response->mutable_model());
  }
  return absl::OkStatus();
}

absl::Status ListModels(Backend& backend, const v1::ListModelsRequest& request,
                        const Interrupt& /*interrupt*/,
                        v1::ListModelsResponse* response) {
  constexpr absl::string_view kListing = "models";
  ATTENDANT_ASSIGN_OR_RETURN(const int page_size,
                             PageSize(request.page_size()));
  ATTENDANT_ASSIGN_OR_RETURN(const std::string text,
                             ParsePageToken(request.page_token(), kListing));
  ATTENDANT_ASSIGN_OR_RETURN(const ModelName after, AfterFromText(text));
  const ModelSet& models = backend.catalogs->models();
  if (request.page_token().empty()) {
    for (const auto& [id, status] : models.damages()) {
      v1::DamagedModel* damaged = response->add_damaged_models();
      damaged->set_name(id.first);
      damaged->set_version(id.second);
      damaged->set_message(std::string(status.message()));
    }
  }
  // Fetching one more than requested shows whether this is the last page.
  const auto found = models.List(after, page_size + 1);
  PageRoom room(page_size, backend.max_message_bytes, *response);
  ModelName last;
  for (const auto& version : found) {
    v1::ModelSummary* wire = response->add_models();
    SummaryToProto(*version, wire);
    if (!room.Takes(*wire)) {
      response->mutable_models()->RemoveLast();
      response->set_next_page_token(PageToken(kListing, AfterText(last)));
      break;
    }
    last = {wire->name(), wire->version()};
  }
  return absl::OkStatus();
}

absl::Status DeleteModel(Backend& backend,
                         const v1::DeleteModelRequest& request,
                         const Interrupt& /*interrupt*/,
                         v1::DeleteModelResponse* /*response*/) {
  ATTENDANT_RETURN_IF_ERROR(
      CheckGiven(request.name(), "name", "the name of a model"));
  if (request.version() < 1) {
    return InvalidField("version", absl::StrCat(request.version()),
                        "at least 1");
  }
  return backend.catalogs->DeleteModel({request.name(), request.version()});
}

}  // namespace attendant
