// attendant model list|show|delete
#include "client/commands/models/model.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/api/pages.h"
#include "client/commands/models/commands.h"
#include "client/commands/shared/flags.h"
#include "core/base/status.h"

namespace attendant {
namespace {

std::string OrAny(std::int32_t dimension, absl::string_view any) {
  return dimension == 0 ? std::string(any) : absl::StrCat(dimension);
}

// Returns "0, symmetric", "1.41" or "-".
std::string DescribeAsymmetry(const v1::ModelSummary& model) {
  if (!model.has_asymmetry()) return "-";
  if (model.asymmetry() == 0) return "0, symmetric";
  return FormatNumber(model.asymmetry());
}

// Describes the output. Without value projections it has the components of the
// value for each head.
std::string DescribeOutput(const v1::ModelSummary& model) {
  if (model.model_kind() != v1::MODEL_KIND_MULTI_HEAD) return "the value's";
  return OrAny(model.output_dimension(),
               absl::StrCat(model.head_count(), " x the value's"));
}

absl::Status ListModels(const Context& context) {
  ATTENDANT_ASSIGN_OR_RETURN(const auto client, context.Connect());
  ATTENDANT_ASSIGN_OR_RETURN(
      const auto all,
      AllPages(*client, &Client::ListModels, v1::ListModelsRequest()));
  using Align = Table::Align;
  Listing listing = {
      .table = Table({{.title = "model"},
                      {.title = "version", .align = Align::kRight},
                      {.title = "kind"},
                      {.title = "heads", .align = Align::kRight},
                      {.title = "query", .align = Align::kRight},
                      {.title = "key", .align = Align::kRight},
                      {.title = "value", .align = Align::kRight},
                      {.title = "output", .align = Align::kRight},
                      {.title = "asymmetry"},
                      {.title = "weights", .align = Align::kRight}}),
      .none =
          "There are no models. `attendant model import --help` tells how "
          "to make one.\n"};
  for (const v1::ModelSummary& model : all.models()) {
    listing.table.AddRow(
        {model.name(), absl::StrCat(model.version()),
         FlagOf(model.model_kind()), absl::StrCat(model.head_count()),
         absl::StrCat(model.query_dimension()),
         absl::StrCat(model.key_dimension()),
         OrAny(model.value_dimension(), "any"), DescribeOutput(model),
         DescribeAsymmetry(model), FormatBytes(model.memory_bytes())});
  }
  for (const v1::DamagedModel& damaged : all.damaged_models()) {
    listing.damaged.push_back(damaged.message());
  }
  PrintList(all, listing, context);
  return absl::OkStatus();
}

struct ShowFlags {
  std::string name;
  std::int64_t version = 0;  // 0: the newest
};

absl::Status ShowModel(const ShowFlags& flags, const Context& context) {
  ATTENDANT_ASSIGN_OR_RETURN(const auto client, context.Connect());
  v1::GetModelRequest request;
  request.mutable_model()->set_name(flags.name);
  if (flags.version != 0) request.mutable_model()->set_version(flags.version);
  ATTENDANT_ASSIGN_OR_RETURN(const auto response, client->GetModel(request));
  return Show(response, DescribeModel(response.summary(), context.style),
              context);
}

void AddReference(CLI::App& command, ShowFlags& flags,
                  const std::string& version) {
  command.add_option("NAME", flags.name, "The model, as NAME or NAME:VERSION")
      ->required()
      ->check(Accepts(&ParseModelReference));
  command.add_option("--version", flags.version, version)
      ->check(CLI::PositiveNumber);
}

// Splits NAME:VERSION and keeps the version.
void SetReference(ShowFlags& flags) {
  const v1::ModelReference reference = *ParseModelReference(flags.name);
  if (reference.version() == 0) return;
  if (flags.version != 0) {
    throw CLI::ExcludesError("NAME:VERSION", "--version");
  }
  flags.name = reference.name();
  flags.version = reference.version();
}

absl::Status DeleteModel(const ShowFlags& flags, const Context& context) {
  ATTENDANT_ASSIGN_OR_RETURN(const auto client, context.Connect());
  v1::DeleteModelRequest request;
  request.set_name(flags.name);
  request.set_version(flags.version);
  ATTENDANT_ASSIGN_OR_RETURN(const auto response, client->DeleteModel(request));
  return Show(response,
              absl::StrCat("Deleted version ", flags.version, " of ",
                           flags.name, ".\n"),
              context);
}

}  // namespace

std::string DescribeModel(const v1::ModelSummary& model, const Style& style) {
  std::string text = absl::StrCat(
      style.Bold(Printable(model.name())), "  version ", model.version(), ", ",
      FlagOf(model.model_kind()), ", ", FormatBytes(model.memory_bytes()),
      " of weights\n",
      style.Dim(absl::StrCat("created ", FormatTimestamp(model.create_time()))),
      "\n\n");
  Table table({{.title = "part"},
               {.title = "components", .align = Table::Align::kRight},
               {.title = "of a head", .align = Table::Align::kRight}});
  const bool heads = model.model_kind() == v1::MODEL_KIND_MULTI_HEAD;
  const std::string head_key =
      heads ? absl::StrCat(model.head_key_dimension()) : "-";
  const std::string head_value =
      heads ? OrAny(model.head_value_dimension(), "the value's") : "-";
  table.AddRow({"query", absl::StrCat(model.query_dimension()), head_key});
  table.AddRow({"key", absl::StrCat(model.key_dimension()), head_key});
  table.AddRow({"value", OrAny(model.value_dimension(), "any"), head_value});
  table.AddRow({"output", DescribeOutput(model), "-"});
  absl::StrAppend(&text, table.Format(style), "\n");
  if (heads) {
    absl::StrAppend(&text, CountOf(model.head_count(), "head"), ".\n");
  }
  if (model.has_asymmetry()) {
    absl::StrAppend(&text, "Asymmetry ", DescribeAsymmetry(model),
                    model.asymmetry() == 0
                        ? ": a attends to b as b does to a.\n"
                        : ": a may attend to b without b attending to a.\n");
  }
  return text;
}

absl::Status StoreModel(v1::AttentionModel model, const std::string& name,
                        const std::vector<v1::ProjectionProbe>& probes,
                        const Context& context) {
  v1::CreateModelRequest request;
  *request.mutable_model() = std::move(model);
  request.mutable_model()->set_name(name);
  request.mutable_probes()->Add(probes.begin(), probes.end());
  ATTENDANT_ASSIGN_OR_RETURN(const auto client, context.Connect());
  ATTENDANT_ASSIGN_OR_RETURN(const auto response, client->CreateModel(request));
  return Show(response,
              absl::StrCat("Stored.\n\n",
                           DescribeModel(response.model(), context.style)),
              context);
}

void AddModelCommands(CLI::App& app, Context& context) {
  CLI::App* model = app.add_subcommand(
      "model", "Import, list, show and delete attention models");
  model->require_subcommand(1);
  model->footer(
      "Examples:\n"
      "  attendant model import encoder layer.safetensors --heads 8\n"
      "  attendant model show encoder");
  AddModelImportCommand(*model, context);
  AddModelFromLsiCommand(*model, context);

  CLI::App* list =
      model->add_subcommand("list", "List all versions of all models");
  list->footer("Example:\n  attendant model list");
  list->final_callback([&context] { context.Run(&ListModels); });

  auto shown = std::make_shared<ShowFlags>();
  CLI::App* show =
      model->add_subcommand("show", "Show a model's shapes and symmetry");
  AddReference(*show, *shown, "Default: the newest");
  show->footer("Example:\n  attendant model show text:2");
  show->final_callback([shown, &context] {
    SetReference(*shown);
    context.Run([&](const Context& c) { return ShowModel(*shown, c); });
  });

  auto deleted = std::make_shared<ShowFlags>();
  CLI::App* remove = model->add_subcommand(
      "delete", "Delete a version of a model that no catalog uses");
  AddReference(*remove, *deleted, "Which");
  remove->footer(
      "Example:\n"
      "  attendant model delete text:1\n\n"
      "The version number is never used again.");
  remove->final_callback([deleted, &context] {
    SetReference(*deleted);
    if (deleted->version == 0) throw CLI::RequiredError("NAME:VERSION");
    context.Run([&](const Context& c) { return DeleteModel(*deleted, c); });
  });
}

}  // namespace attendant
