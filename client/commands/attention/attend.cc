// attendant attend
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/api/wire_vector.h"
#include "client/commands/attention/attend_choices.h"
#include "client/commands/attention/attend_report.h"
#include "client/commands/attention/attention_maps.h"
#include "client/commands/attention/commands.h"
#include "client/commands/attention/mask_flags.h"
#include "client/commands/attention/reply_shapes.h"
#include "client/commands/attention/shown_attributes.h"
#include "client/commands/shared/convert.h"
#include "client/commands/shared/flags.h"
#include "client/files/input.h"
#include "client/files/vector_file.h"
#include "client/picture/blocks.h"
#include "client/picture/svg.h"
#include "core/base/status.h"

namespace attendant {
namespace {

struct AttendFlags {
  std::string catalog;
  std::string vector;
  std::string vector_file;
  std::vector<std::string> like;
  std::string like_file;
  std::string text;
  std::string field;
  AttendChoices choices;
  std::int32_t result_count = 0;
  std::int32_t shortlist_count = 0;
  double temperature = 0;
  std::string combine;
  std::string weights;
  std::string pool;
  bool exact = false;
  std::vector<std::string> allow;
  std::string allow_file;
  MaskFlags masks;
  std::string token;
  bool include_examples = false;
  bool require_all = false;
  bool explain = false;
  std::vector<std::string> show;
  bool opaque = false;
  bool by_head = false;
  PictureFlags picture;
  int image_width = 0;

  bool has_examples() const { return !like.empty() || !like_file.empty(); }
};

absl::StatusOr<v1::Vector> ReadQueryVector(const std::string& path) {
  ATTENDANT_ASSIGN_OR_RETURN(const auto file, OpenVectorFile(path));
  if (file->row_count() != 1) {
    return FileError(
        path, absl::StrCat("got ", file->row_count(), " rows, want one query"));
  }
  std::vector<float> components(static_cast<std::size_t>(file->dim()));
  ATTENDANT_RETURN_IF_ERROR(file->ReadRow(0, components));
  return ToVector(components);
}

// Adds the examples in a file with lines "ID" or "ID<tab>WEIGHT".
absl::Status ReadExamples(const std::string& path, v1::Examples& examples) {
  ATTENDANT_ASSIGN_OR_RETURN(LineReader lines, LineReader::Open(path));
  std::string line;
  while (true) {
    ATTENDANT_ASSIGN_OR_RETURN(const bool more, lines.Next(line));
    if (!more) return absl::OkStatus();
    if (line.empty()) continue;
    const std::size_t tab = line.find('\t');
    if (tab == std::string::npos) {
      examples.add_examples()->set_id(line);
      continue;
    }
    const auto example = ParseExample(
        absl::StrCat(line.substr(0, tab), "=", line.substr(tab + 1)));
    if (!example.ok()) {
      return FileError(path, absl::StrCat("line ", lines.line_number(), ": ",
                                          example.status().message()));
    }
    *examples.add_examples() = *example;
  }
}

absl::Status SetQuery(const AttendFlags& flags, v1::Query& query) {
  if (!flags.vector.empty()) {
    ATTENDANT_ASSIGN_OR_RETURN(const auto components,
                               ParseVector(flags.vector));
    *query.mutable_vector() = ToVector(components);
    return absl::OkStatus();
  }
  if (!flags.vector_file.empty()) {
    ATTENDANT_ASSIGN_OR_RETURN(*query.mutable_vector(),
                               ReadQueryVector(flags.vector_file));
    return absl::OkStatus();
  }
  if (!flags.has_examples()) {
    query.set_text(flags.text);
    return absl::OkStatus();
  }
  v1::Examples& examples = *query.mutable_examples();
  for (const std::string& like : flags.like) {
    ATTENDANT_ASSIGN_OR_RETURN(*examples.add_examples(), ParseExample(like));
  }
  if (!flags.like_file.empty()) {
    ATTENDANT_RETURN_IF_ERROR(ReadExamples(flags.like_file, examples));
  }
  examples.set_combine_kind(FromFlag<v1::CombineKind>(flags.combine));
  examples.set_require_all(flags.require_all);
  examples.set_exclude_examples(!flags.include_examples);
  return absl::OkStatus();
}

// Returns the request, which does not depend on how the answer is printed.
absl::StatusOr<v1::AttendRequest> ToRequest(const AttendFlags& flags) {
  v1::AttendRequest request;
  request.set_catalog(flags.catalog);
  ATTENDANT_RETURN_IF_ERROR(SetQuery(flags, *request.mutable_query()));
  request.set_key_field(flags.field);
  ATTENDANT_RETURN_IF_ERROR(SetChoices(flags.choices, request));
  if (flags.result_count != 0) request.set_result_count(flags.result_count);
  if (flags.shortlist_count != 0) {
    request.set_shortlist_count(flags.shortlist_count);
  }
  if (flags.temperature != 0) request.set_temperature(flags.temperature);
  request.set_weight_scope(FromFlag<v1::WeightScope>(flags.weights));
  request.set_pool_scope(FromFlag<v1::WeightScope>(flags.pool));
  request.set_omit_pooled_value(flags.pool == "none" ||
                                (flags.pool.empty() && flags.image_width == 0));
  request.set_include_head_weights(flags.by_head ||
                                   flags.picture.draws_weights());
  if (flags.exact) request.set_scan_mode(v1::SCAN_MODE_EXACT);
  if (!flags.allow.empty() || !flags.allow_file.empty()) {
    ATTENDANT_RETURN_IF_ERROR(
        AddIds(flags.allow, flags.allow_file, *request.mutable_allow_list()));
  }
  ATTENDANT_RETURN_IF_ERROR(SetMasks(flags.masks, request));
  request.set_state_token(flags.token);
  request.set_explain(flags.explain);
  for (const std::string& name : flags.show) {
    request.mutable_read_mask()->add_paths(absl::StrCat("attributes.", name));
  }
  if (flags.opaque) request.mutable_read_mask()->add_paths("opaque_value");
  return request;
}

// Returns the error of a query in terms of flags, with what to do if a key
// field has no text encoder.
absl::Status ErrorOfQuery(const absl::Status& error, const AttendFlags& flags) {
  if (!absl::StrContains(error.message(), " text encoder")) {
    return ErrorOfChoices(error, flags.choices);
  }
  return WithHint(error, flags.choices.heads.empty()
                             ? "`attendant fit text` makes one"
                             : "leave out that --head, or use --like in place "
                               "of --text: only gRPC takes a query for each "
                               "head");
}

PixelImage PooledImage(const v1::AttendResponse& response, int width) {
  const auto& values = response.pooled_value().values();
  return ImageOf({values.begin(), values.end()}, width);
}

absl::Status Attend(const AttendFlags& flags, const Context& context) {
  ATTENDANT_ASSIGN_OR_RETURN(const auto request, ToRequest(flags));
  ATTENDANT_ASSIGN_OR_RETURN(const auto client, context.Connect());
  auto answer = client->Attend(request);
  if (!answer.ok()) {
    return ErrorOfShown(ErrorOfQuery(answer.status(), flags), flags.show,
                        flags.catalog, *client);
  }
  v1::AttendResponse& response = *answer;
  if (context.json) {
    SpellOutVectors(response);
    std::vector<std::string> not_asked_for = {"keys"};
    if (flags.show.empty()) not_asked_for.push_back("attributes");
    if (!flags.opaque) not_asked_for.push_back("opaqueValue");
    Print(ToJsonWithout(response, not_asked_for));
    return absl::OkStatus();
  }
  ATTENDANT_RETURN_IF_ERROR(CheckShape(response, request));
  const std::string& svg = flags.picture.svg;
  if (svg == "image") {
    Print(ImageSvg(PooledImage(response, flags.image_width)));
    return absl::OkStatus();
  }
  AttentionMap map;
  if (flags.picture.draws_weights()) {
    ATTENDANT_ASSIGN_OR_RETURN(
        map, MapOf(request, response, flags.show.empty() ? "" : flags.show[0]));
  }
  if (!svg.empty()) {
    Print(WeightsSvg(map, svg));
    return absl::OkStatus();
  }
  Print(AttendReport(response, {.shown_attributes = flags.show,
                                .hard = flags.choices.hard,
                                .pooled_value = !request.omit_pooled_value(),
                                .opaque_value = flags.opaque,
                                .head_weights = flags.by_head,
                                .masks = MasksOf(request),
                                .style = context.style}));
  if (flags.picture.blocks) Print("\n" + MatrixBlocks(map, context.style));
  if (flags.image_width != 0) {
    Print("\n" +
          ImageBlocks(PooledImage(response, flags.image_width), context.style));
  }
  return absl::OkStatus();
}

CLI::RequiresError NeedsExamples(const std::string& flag) {
  return CLI::RequiresError(flag, "--like or --like-file");
}

void AddQueryFlags(CLI::App& attend, AttendFlags& flags) {
  CLI::Option* vector =
      attend
          .add_option("--vector", flags.vector, "A query vector: 0.1,0.2,...")
          ->type_name("VECTOR")
          ->check(CLI::Validator(Accepts(&ParseVector), ""))
          ->group("Query");
  CLI::Option* vector_file =
      attend
          .add_option("--vector-file", flags.vector_file,
                      "A query vector as FILE.npy, FILE.fvecs, FILE.txt or "
                      "FILE.csv")
          ->type_name("FILE")
          ->group("Query");
  CLI::Option* like =
      AddRepeated(attend, "--like", flags.like,
                  "An item like those wanted, as ID or ID=WEIGHT; a negative "
                  "weight asks for items unlike it")
          ->type_name("ID")
          ->check(CLI::Validator(Accepts(&ParseExample), ""))
          ->group("Query");
  CLI::Option* like_file =
      attend
          .add_option("--like-file", flags.like_file,
                      "Such items, one a line: ID, or ID, a tab and WEIGHT")
          ->type_name("FILE")
          ->group("Query");
  CLI::Option* text = attend
                          .add_option("--text", flags.text,
                                      "Text, for a field with a text encoder")
                          ->group("Query");
  for (CLI::Option* option : {like, like_file}) {
    option->excludes(vector)->excludes(vector_file)->excludes(text);
  }
  vector->excludes(vector_file)->excludes(text);
  vector_file->excludes(text);
}

// Adds the flags and returns --results, which flags of choice exclude.
CLI::Option* AddAnswerFlags(CLI::App& attend, AttendFlags& flags) {
  attend
      .add_option("--field", flags.field,
                  "The key field. Default: the catalog's first; for a text, "
                  "the first with an encoder")
      ->type_name("FIELD");
  CLI::Option* results = attend
                             .add_option("-k,--results", flags.result_count,
                                         "Items wanted. Default 10")
                             ->check(CLI::Range(1, 10000));
  attend
      .add_option("--shortlist", flags.shortlist_count,
                  "Items that the weights are shared among, the best of the "
                  "catalog. Default: 10 x results, or as many as results with "
                  "--min-mass; at least 100")
      ->check(CLI::Range(1, 100000));
  attend
      .add_option("--temperature", flags.temperature,
                  "Sharpness: small picks the best, large averages. Default: "
                  "the field's")
      ->check(CLI::Validator(Accepts(&ParsePositive), ""));
  attend
      .add_option("--combine", flags.combine,
                  "How examples combine. Default: the field's")
      ->check(CLI::IsMember({"sum", "sum_over_sqrt_count", "unit"}));
  attend
      .add_option("--weights", flags.weights,
                  "The set over which weights sum to 1. Default: shortlist, "
                  "with --sample catalog. With --hard only returned")
      ->check(CLI::IsMember({"shortlist", "returned", "catalog"}));
  attend
      .add_option("--pool", flags.pool,
                  "Report the value pooled over this set. Default: none; with "
                  "--image, that of --weights")
      ->check(CLI::IsMember({"shortlist", "returned", "catalog", "none"}));
  attend.add_flag("--exact", flags.exact, "Score every key");
  AddRepeated(attend, "--show", flags.show, "Show an attribute of the items")
      ->type_name("NAME");
  attend.add_flag("--opaque", flags.opaque,
                  "Show the items' opaque values as text, with --json as "
                  "base64");
  attend.add_flag("--by-head", flags.by_head,
                  "Show the weights of items by each head");
  attend.add_flag("--explain", flags.explain,
                  "Say how the answer was computed and where its time went");
  return results;
}

void AddAnswerMaskFlags(CLI::App& attend, AttendFlags& flags) {
  AddRepeated(attend, "--allow", flags.allow, "Only these items, by id")
      ->type_name("ID")
      ->group("Masks");
  attend.add_option("--allow-file", flags.allow_file, "Ids, one a line")
      ->type_name("FILE")
      ->group("Masks");
  for (CLI::Option* option : AddMaskFlags(attend, flags.masks)) {
    option->group("Masks");
  }
  attend
      .add_flag("--include-examples", flags.include_examples,
                "Let the items given by --like be in the answer")
      ->group("Masks");
  attend
      .add_flag("--require-all", flags.require_all,
                "Refuse --like ids that are not in the catalog")
      ->group("Masks");
}

// Throws CLI::ExcludesError for values of flags that exclude other flags,
// whatever the catalog holds.
void CheckValues(const CLI::App& attend, const AttendFlags& flags) {
  const AttendChoices& choices = flags.choices;
  const bool pools = !flags.pool.empty() && flags.pool != "none";
  if (choices.activation == "sigmoid" || choices.activation == "none") {
    const std::string activation = "--activation=" + choices.activation;
    for (const char* flag : {"--hard", "--sample", "--min-mass", "--weights",
                             "--mass-precision", "--mass-method"}) {
      if (attend.count(flag) > 0) throw CLI::ExcludesError(activation, flag);
    }
    if (flags.picture.draws_weights()) {
      throw CLI::ExcludesError(activation, "--svg and --blocks");
    }
    if (pools) throw CLI::ExcludesError(activation, "--pool=" + flags.pool);
  }
  if (choices.hard) {
    if (!flags.weights.empty() && flags.weights != "returned") {
      throw CLI::ExcludesError("--hard", "--weights=" + flags.weights);
    }
    if (pools && flags.pool != "returned") {
      throw CLI::ExcludesError("--hard", "--pool=" + flags.pool);
    }
  }
  if (choices.sample && flags.weights == "returned") {
    throw CLI::ExcludesError("--sample", "--weights=returned");
  }
  if (flags.image_width != 0 && flags.pool == "none") {
    throw CLI::ExcludesError("--image", "--pool=none");
  }
}

}  // namespace

void AddAttendCommand(CLI::App& app, Context& context) {
  auto flags = std::make_shared<AttendFlags>();
  CLI::App* attend = app.add_subcommand(
      "attend", "Ask a catalog: weighted items for a vector, examples or text");
  attend->add_option("CATALOG", flags->catalog, "The catalog")->required();
  AddQueryFlags(*attend, *flags);
  CLI::Option* results = AddAnswerFlags(*attend, *flags);
  AddAnswerMaskFlags(*attend, *flags);
  AddChoiceFlags(*attend, results, flags->choices);
  AddTokenFlag(*attend, flags->token);
  AddPictureFlags(*attend, {"matrix", "lines", "image"}, flags->picture);
  attend
      ->add_option("--image", flags->image_width,
                   "Show the pooled value as an image of this width")
      ->check(CLI::Range(1, 8192))
      ->group("Pictures");
  attend->footer(
      "Examples:\n"
      "  attendant attend shop --like 85123A --like 71053 --show name\n"
      "  attendant attend shop --like 85123A --like 22423=-0.5 -k 20\n"
      "  attendant attend shop --text 'alarm clock' --show name\n"
      "  attendant attend shop --text 'alarm clock' --hard --show name\n"
      "  attendant attend shop --like 85123A --min-mass 0.5\n"
      "  attendant attend shop --like 85123A --recall 0.99 "
      "--mass-precision 0.02\n"
      "  attendant attend shop --like 85123A --sample -k 5 --seed 7\n"
      "  attendant attend shop --like 85123A --bias popularity=0.1 \\\n"
      "      --decay added=30d\n"
      "  attendant attend shop --like 85123A --head events --head text\n"
      "  attendant attend shop --like 85123A --filter 'price < 5' --show price"
      "\n"
      "  attendant attend shop --text 'alarm clock' --explain\n"
      "  attendant attend photos --vector-file query.npy --exact --json");
  attend->final_callback([attend, flags, &context] {
    if (flags->vector.empty() && flags->vector_file.empty() &&
        !flags->has_examples() && flags->text.empty()) {
      throw CLI::RequiredError(
          "--vector, --vector-file, --like, --like-file or --text");
    }
    if (!flags->has_examples()) {
      if (!flags->combine.empty()) throw NeedsExamples("--combine");
      if (flags->include_examples) throw NeedsExamples("--include-examples");
      if (flags->require_all) throw NeedsExamples("--require-all");
    }
    if (flags->picture.svg == "image" && flags->image_width == 0) {
      throw CLI::RequiresError("--svg=image", "--image");
    }
    CheckValues(*attend, *flags);
    CheckPictureFlags(flags->picture, context);
    context.Run([&](const Context& c) { return Attend(*flags, c); });
  });
}

}  // namespace attendant
