// attendant model import
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/commands/models/commands.h"
#include "client/commands/models/model.h"
#include "client/commands/models/model_layout.h"
#include "client/commands/shared/flags.h"
#include "client/files/input.h"
#include "core/base/status.h"

namespace attendant {
namespace {

constexpr std::int64_t kMaxConfigBytes = 1 << 20;
// Room for 65,536 components of input and of output, written in full.
constexpr std::int64_t kMaxProbeBytes = 4 << 20;

struct ImportFlags {
  std::string name;
  std::vector<std::string> files;
  std::int64_t head_count = 0;  // 0: not given
  std::string prefix;
  std::string config;
  std::vector<std::string> probes;
};

absl::StatusOr<ModelConfig> ReadConfig(const std::string& path) {
  if (path.empty()) return ModelConfig();
  ATTENDANT_ASSIGN_OR_RETURN(const std::string text,
                             ReadFile(path, kMaxConfigBytes));
  absl::StatusOr<ModelConfig> config = ParseModelConfig(text);
  if (!config.ok()) return FileError(path, config.status().message());
  return config;
}

absl::StatusOr<std::vector<v1::ProjectionProbe>> ReadProbes(
    const std::vector<std::string>& paths) {
  std::vector<v1::ProjectionProbe> probes;
  for (const std::string& path : paths) {
    ATTENDANT_ASSIGN_OR_RETURN(const std::string text,
                               ReadFile(path, kMaxProbeBytes));
    absl::StatusOr<v1::ProjectionProbe> probe = ParseProbe(text);
    if (!probe.ok()) return FileError(path, probe.status().message());
    probes.push_back(*std::move(probe));
  }
  return probes;
}

absl::Status Import(const ImportFlags& flags, const Context& context) {
  ATTENDANT_ASSIGN_OR_RETURN(const ModelConfig config,
                             ReadConfig(flags.config));
  ATTENDANT_ASSIGN_OR_RETURN(const auto probes, ReadProbes(flags.probes));
  ATTENDANT_ASSIGN_OR_RETURN(const TensorFiles tensors,
                             TensorFiles::Open(flags.files));
  LayoutOptions options;
  options.prefix = flags.prefix;
  options.head_count = config.head_count;
  if (flags.head_count > 0) options.head_count = flags.head_count;
  ATTENDANT_ASSIGN_OR_RETURN(ImportedModel imported,
                             ModelFromTensors(tensors, options));
  const absl::Status fits = CheckConfig(config, imported.model);
  if (!fits.ok()) return FileError(flags.config, fits.message());
  Note(absl::StrCat("Layout of the tensors: ", imported.layout, "."));
  if (config.dropout != 0) {
    Note(absl::StrCat("Dropout of ", FormatNumber(config.dropout),
                      " is for training only, and ignored."));
  }
  if (!imported.unused.empty()) {
    Note(Printable(absl::StrCat("Not part of the layout, and ignored: ",
                                absl::StrJoin(imported.unused, ", "), ".")));
  }
  return StoreModel(std::move(imported.model), flags.name, probes, context);
}

}  // namespace

void AddModelImportCommand(CLI::App& model, Context& context) {
  auto flags = std::make_shared<ImportFlags>();
  CLI::App* verb = model.add_subcommand(
      "import", "Store weights from files as a model's next version");
  verb->add_option("NAME", flags->name, "The model's name")->required();
  verb->add_option("FILES", flags->files,
                   ".safetensors files, .npy or .txt files named as their "
                   "tensor, or directories of .npy files")
      ->required();
  verb->add_option(
          "--heads", flags->head_count,
          "The number of heads that share the rows of a projection, if "
          "the names of the tensors don't tell")
      ->check(CLI::Range(1, 256));
  verb->add_option("--prefix", flags->prefix,
                   "The prefix of the names of the tensors, as in "
                   "encoder.layers.0.self_attn.");
  verb->add_option("--config", flags->config,
                   "A JSON file with num_heads, embed_dim, kdim or vdim, "
                   "which must agree; dropout is ignored")
      ->type_name("FILE");
  AddRepeated(*verb, "--probe", flags->probes,
              "A JSON file with an input and the output that a projection must "
              "have for it, at most 16 of them")
      ->type_name("FILE");
  verb->footer(
      "Layouts, told by the names of the tensors; y = W x unless it says x W:\n"
      "  in_proj_weight [3 E, E], in_proj_bias, out_proj.weight, .bias\n"
      "                              PyTorch's nn.MultiheadAttention\n"
      "  q_proj_weight [E, E], k_proj_weight [E, kdim],\n"
      "  v_proj_weight [E, vdim], in_proj_bias, out_proj.weight, .bias\n"
      "                              the same with kdim or vdim\n"
      "  q_proj.weight, .bias; likewise k_proj, v_proj, out_proj\n"
      "                              a linear layer each, any head size\n"
      "  W_Q_i [d_model, d_k], W_K_i, W_V_i [d_model, d_v],\n"
      "  W_O [heads x d_v, d_model]  x W, head by head, i from 0 or 1\n"
      "                              (Vaswani et al. 2017); b_Q_i, ... too\n"
      "  W [query, key]              bilinear: q W k\n"
      "  W, U, v                     additive: v . tanh(W q + U k)\n\n"
      "A square matrix that was transposed has the right shape and the wrong\n"
      "answers. A probe tells them apart:\n"
      "  {\"projection\": \"query\", \"input\": [1, 0], \"output\": [0.3, "
      "0.4]}\n"
      "The projection is query, key, value or output. The output includes the\n"
      "bias and must match within 1e-4 of its norm.\n\n"
      "Examples:\n"
      "  attendant model import text model.safetensors --heads 8 \\\n"
      "      --prefix encoder.layers.0.self_attn. --probe row.json\n"
      "  attendant model import toy W_Q_1.npy W_K_1.npy W_V_1.npy W_O.npy");
  SetVerb(*verb, context, flags, &Import);
}

}  // namespace attendant
