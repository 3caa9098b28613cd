// attendant contextualize
#include "core/attention/sequences/contextualize.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/api/error_json.h"
#include "client/commands/attention/approximation_flags.h"
#include "client/commands/attention/attention_maps.h"
#include "client/commands/attention/commands.h"
#include "client/commands/attention/sequence_flags.h"
#include "client/commands/attention/sequence_report.h"
#include "client/commands/shared/flags.h"
#include "client/picture/blocks.h"
#include "core/base/status.h"

namespace attendant {
namespace {

struct ContextualizeFlags {
  std::string vectors;
  std::vector<std::string> items;
  std::string memory;
  std::vector<std::string> memory_items;
  std::string catalog;
  std::string field;
  std::vector<std::string> layers;
  std::string score;
  double temperature = 0;
  bool causal = false;
  std::vector<std::int32_t> padding;
  bool positions = false;
  bool weights = false;
  std::string words;
  std::string memory_words;
  ApproximationFlags approximation;
  PictureFlags picture;
};

absl::Status SetTokens(const ContextualizeFlags& flags,
                       const std::string& vectors,
                       const std::vector<std::string>& items,
                       v1::TokenSequence& sequence) {
  if (items.empty()) return ReadTokens(vectors, sequence);
  v1::TokenItems& tokens = *sequence.mutable_items();
  tokens.set_catalog(flags.catalog);
  tokens.set_key_field(flags.field);
  tokens.mutable_ids()->Add(items.begin(), items.end());
  return absl::OkStatus();
}

absl::StatusOr<v1::ContextualizeRequest> ToRequest(
    const ContextualizeFlags& flags) {
  v1::ContextualizeRequest request;
  ATTENDANT_RETURN_IF_ERROR(SetTokens(flags, flags.vectors, flags.items,
                                      *request.mutable_sequence()));
  if (!flags.memory.empty() || !flags.memory_items.empty()) {
    ATTENDANT_RETURN_IF_ERROR(SetTokens(flags, flags.memory, flags.memory_items,
                                        *request.mutable_memory()));
  }
  for (const std::string& layer : flags.layers) {
    ATTENDANT_ASSIGN_OR_RETURN(*request.add_layers(),
                               ParseModelReference(layer));
  }
  request.set_score_kind(FromFlag<v1::ScoreKind>(flags.score));
  if (flags.temperature != 0) request.set_temperature(flags.temperature);
  request.set_causal(flags.causal);
  request.mutable_padding_positions()->Add(flags.padding.begin(),
                                           flags.padding.end());
  if (flags.positions) request.set_positions(v1::POSITION_KIND_SINUSOIDAL);
  request.set_include_weights(flags.weights || flags.picture.draws_weights());
  if (flags.approximation.any()) {
    ATTENDANT_ASSIGN_OR_RETURN(*request.mutable_approximation(),
                               ToApproximation(flags.approximation));
  }
  return request;
}

// Returns the error that the server would report for include_weights, in terms
// of the flag that asked for weights.
absl::Status CheckWeights(const ContextualizeFlags& flags,
                          const TokenNames& names) {
  const auto count = static_cast<std::int64_t>(
      std::max(names.sequence.size(), names.attended.size()));
  if (count <= kMaxWeightTokens) return absl::OkStatus();
  const std::string flag = flags.picture.blocks        ? "--blocks"
                           : flags.picture.svg.empty() ? "--weights"
                                                       : "--svg";
  return UsageError(absl::StrCat(
      flag, ": got ", count, " tokens, want at most ", kMaxWeightTokens,
      "; weights of longer sequences can't be shown"));
}

absl::Status RunContextualize(const ContextualizeFlags& flags,
                              const Context& context) {
  ATTENDANT_ASSIGN_OR_RETURN(const auto request, ToRequest(flags));
  ATTENDANT_ASSIGN_OR_RETURN(const TokenNames names,
                             NamesOf(request, flags.words, flags.memory_words));
  if (request.include_weights()) {
    ATTENDANT_RETURN_IF_ERROR(CheckWeights(flags, names));
  }
  ATTENDANT_ASSIGN_OR_RETURN(const auto client, context.Connect());
  ATTENDANT_ASSIGN_OR_RETURN(const auto response,
                             client->Contextualize(request));
  if (context.json) {
    Print(ToJson(response));
    return absl::OkStatus();
  }
  ATTENDANT_ASSIGN_OR_RETURN(const AttentionMap map,
                             MapOf(request, response, names));
  if (!flags.picture.svg.empty()) {
    Print(WeightsSvg(map, flags.picture.svg));
    return absl::OkStatus();
  }
  Print(ContextReport(response, names, context.style));
  if (flags.picture.blocks) Print("\n" + MatrixBlocks(map, context.style));
  return absl::OkStatus();
}

void AddTokenFlags(CLI::App& verb, ContextualizeFlags& flags) {
  constexpr char kTokens[] = "Tokens";
  CLI::Option* vectors =
      verb.add_option("--vectors", flags.vectors,
                      "The sequence: the rows of FILE.npy, FILE.fvecs, or "
                      "FILE.txt (one a line)")
          ->type_name("FILE")
          ->group(kTokens);
  AddRepeated(verb, "--item", flags.items,
              "A token of the sequence: an item's key, in the order given")
      ->type_name("ID")
      ->excludes(vectors)
      ->group(kTokens);
  CLI::Option* memory =
      verb.add_option("--memory", flags.memory,
                      "What the sequence attends to: the rows of a file. "
                      "Default: the sequence itself")
          ->type_name("FILE")
          ->group(kTokens);
  AddRepeated(verb, "--memory-item", flags.memory_items,
              "What the sequence attends to: an item's key")
      ->type_name("ID")
      ->excludes(memory)
      ->group(kTokens);
  verb.add_option("--catalog", flags.catalog, "The catalog of the items")
      ->type_name("CATALOG")
      ->group(kTokens);
  verb.add_option("--field", flags.field,
                  "The items' key field. Default: the catalog's first")
      ->type_name("FIELD")
      ->group(kTokens);
  verb.add_option(
          "--words", flags.words,
          "Names of the sequence's tokens, separated by spaces. Default: "
          "ids, or positions from 0")
      ->group(kTokens);
  verb.add_option("--memory-words", flags.memory_words,
                  "Names of the memory's tokens")
      ->group(kTokens);
}

void AddAttentionFlags(CLI::App& verb, ContextualizeFlags& flags) {
  AddRepeated(verb, "--layer", flags.layers,
              "A multi-head model, NAME or NAME:VERSION; each layer's outputs "
              "are the next one's sequence. Default: the vectors as they are")
      ->type_name("NAME")
      ->check(Accepts(&ParseModelReference));
  verb.add_option("--score", flags.score, "Default scaled_dot")
      ->check(CLI::IsMember({"dot", "scaled_dot", "cosine"}));
  verb.add_option("--temperature", flags.temperature,
                  "Sharpness: small picks the best, large averages. Default 1")
      ->check(Accepts(&ParsePositive));
  verb.add_flag("--causal", flags.causal,
                "Let a token attend only to itself and to tokens before it");
  verb.add_option("--pad", flags.padding,
                  "The position, from 0, of a token that none attends to")
      ->take_all()
      ->allow_extra_args(false);
  verb.add_flag("--positions", flags.positions,
                "Add sinusoidal encodings of the positions to the tokens");
  verb.add_flag("--weights", flags.weights,
                absl::StrCat("Show what each token attends to, for at most ",
                             kMaxWeightTokens, " tokens"));
}

}  // namespace

void AddContextualizeCommand(CLI::App& app, Context& context) {
  auto flags = std::make_shared<ContextualizeFlags>();
  CLI::App* verb = app.add_subcommand(
      "contextualize",
      "Attend within a sequence, or from it to a memory: each token becomes "
      "the weighted mean of what it attends to");
  AddTokenFlags(*verb, *flags);
  AddAttentionFlags(*verb, *flags);
  AddApproximationFlags(*verb, flags->approximation);
  AddPictureFlags(*verb, {"matrix", "lines"}, flags->picture);
  verb->footer(
      "Examples:\n"
      "  attendant contextualize --vectors tokens.npy --causal --weights\n"
      "  attendant contextualize --catalog shop --item 85123A --item 22423 "
      "--weights\n"
      "  attendant contextualize --vectors tokens.txt --words 'he saw Hans' "
      "--svg=matrix > map.svg\n"
      "  attendant contextualize --vectors target.npy --memory source.npy "
      "--layer cross\n"
      "  attendant contextualize --vectors tokens.npy --positions --layer "
      "block1 --layer block2:3 --json");
  verb->final_callback([flags, &context] {
    if (flags->vectors.empty() && flags->items.empty()) {
      throw CLI::RequiredError("--vectors or --item");
    }
    const bool has_items =
        !flags->items.empty() || !flags->memory_items.empty();
    if (has_items && flags->catalog.empty()) {
      throw CLI::RequiresError("--item", "--catalog");
    }
    if (!has_items && !flags->catalog.empty()) {
      throw CLI::RequiresError("--catalog", "--item or --memory-item");
    }
    if (!has_items && !flags->field.empty()) {
      throw CLI::RequiresError("--field", "--item or --memory-item");
    }
    if (!flags->memory_words.empty() && flags->memory.empty() &&
        flags->memory_items.empty()) {
      throw CLI::RequiresError("--memory-words", "--memory or --memory-item");
    }
    if (flags->approximation.linformer_rows != 0 &&
        (flags->weights || flags->picture.draws_weights())) {
      throw CLI::ExcludesError("--linformer", "--weights, --svg and --blocks");
    }
    if (flags->approximation.linformer_rows != 0 && flags->causal) {
      throw CLI::ExcludesError("--linformer", "--causal");
    }
    CheckPictureFlags(flags->picture, context);
    context.Run([&](const Context& c) { return RunContextualize(*flags, c); });
  });
}

}  // namespace attendant
