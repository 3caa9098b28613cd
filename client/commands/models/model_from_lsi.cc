// attendant model from-lsi
#include <memory>
#include <string>
#include <utility>

#include "client/commands/models/commands.h"
#include "client/commands/models/lsi_model.h"
#include "client/commands/models/model.h"
#include "core/base/status.h"

namespace attendant {
namespace {

struct FromLsiFlags {
  std::string directory;
  std::string name;
  bool scaled = false;
};

absl::Status FromLsi(const FromLsiFlags& flags, const Context& context) {
  ATTENDANT_ASSIGN_OR_RETURN(v1::AttentionModel model,
                             LsiAttentionModel(flags.directory, flags.scaled));
  return StoreModel(std::move(model), flags.name, {}, context);
}

}  // namespace

void AddModelFromLsiCommand(CLI::App& model, Context& context) {
  auto flags = std::make_shared<FromLsiFlags>();
  CLI::App* from_lsi = model.add_subcommand(
      "from-lsi", "Store the projection of a latent semantic index as a model");
  from_lsi
      ->add_option("MODEL_DIRECTORY", flags->directory,
                   "The directory that `attendant fit lsi --out` wrote")
      ->required();
  from_lsi->add_option("--name", flags->name, "The model's name")->required();
  from_lsi->add_flag(
      "--scaled", flags->scaled,
      "Use V_k diag(1/s) in place of V_k, so that all dimensions "
      "count the same");
  from_lsi->footer(
      "Makes one head with W_Q = W_K = V_k. A history is a row with a number "
      "for\n"
      "each item, in the order of ids.txt. Histories attend over histories by\n"
      "what they have in common, even if they share no item.\n\n"
      "Example:\n"
      "  attendant fit lsi ratings.csv --rating-column rating \\\n"
      "      --time-column '' --dim 2 --temperature 1 --out fit/films\n"
      "  attendant model from-lsi fit/films --name films");
  SetVerb(*from_lsi, context, flags, &FromLsi);
}

}  // namespace attendant
