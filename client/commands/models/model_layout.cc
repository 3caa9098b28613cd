#include "client/commands/models/model_layout.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <span>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/api/client.h"
#include "client/api/wire_vector.h"
#include "client/files/json.h"
#include "core/base/status.h"

namespace attendant {
namespace {

// A request also holds a name.
constexpr std::int64_t kMaxModelBytes =
    Client::kLargestMessageBytes - (64 << 10);
constexpr std::int64_t kMaxWeightCount =
    kMaxModelBytes / static_cast<std::int64_t>(sizeof(float));

// A matrix [row_count, column_count], row-major.
struct Weights {
  std::int64_t row_count = 0;
  std::int64_t column_count = 0;
  std::vector<float> data;
};

void SetMatrix(std::int64_t row_count, std::int64_t column_count,
               std::span<const float> data, v1::Matrix* wire) {
  wire->set_row_count(static_cast<std::int32_t>(row_count));
  wire->set_column_count(static_cast<std::int32_t>(column_count));
  wire->set_float32_le(data.data(), data.size_bytes());
}

void SetMatrix(const Weights& weights, v1::Matrix* wire) {
  SetMatrix(weights.row_count, weights.column_count, weights.data, wire);
}

void SetProjection(const Weights& weights, std::span<const float> bias,
                   v1::Projection* wire) {
  SetMatrix(weights, wire->mutable_weight());
  if (!bias.empty()) *wire->mutable_bias() = ToVector(bias);
}

// Returns rows [begin, end) of the weights.
Weights RowsOf(const Weights& weights, std::int64_t begin, std::int64_t end) {
  const auto at = [&](std::int64_t row) {
    return weights.data.begin() + row * weights.column_count;
  };
  return {end - begin, weights.column_count, {at(begin), at(end)}};
}

Weights Transposed(const Weights& weights) {
  Weights transposed = {weights.column_count, weights.row_count, {}};
  transposed.data.reserve(weights.data.size());
  for (std::int64_t c = 0; c < weights.column_count; ++c) {
    for (std::int64_t r = 0; r < weights.row_count; ++r) {
      transposed.data.push_back(weights.data[r * weights.column_count + c]);
    }
  }
  return transposed;
}

void Append(const std::vector<float>& more, std::vector<float>& data) {
  data.insert(data.end(), more.begin(), more.end());
}

// The arrays under a prefix, and which of them were read.
class Arrays {
 public:
  Arrays(const TensorFiles& files, const std::string& prefix)
      : files_(files), prefix_(prefix) {}

  bool Has(const std::string& name) const {
    return files_.FindShape(prefix_ + name) != nullptr;
  }

  // Reads a matrix. A count that is not given is not checked.
  absl::StatusOr<Weights> Matrix(
      const std::string& name, std::optional<std::int64_t> row_count = {},
      std::optional<std::int64_t> column_count = {}) {
    ATTENDANT_ASSIGN_OR_RETURN(Tensor tensor, Read(name));
    const std::vector<std::int64_t>& shape = tensor.shape;
    const auto fits = [&](std::int64_t rows, std::int64_t columns) {
      return row_count.value_or(rows) == rows &&
             column_count.value_or(columns) == columns;
    };
    if (shape.size() != 2 || !fits(shape[0], shape[1])) {
      const auto text = [](std::optional<std::int64_t> count) {
        return count ? absl::StrCat(*count) : "any";
      };
      const bool transposed = shape.size() == 2 && fits(shape[1], shape[0]);
      return Error(name,
                   absl::StrCat("got ", ShapeText(shape), ", want [",
                                text(row_count), ", ", text(column_count), "]",
                                transposed ? ": it is transposed" : ""));
    }
    return Weights{shape[0], shape[1], std::move(tensor.data)};
  }

  // Reads `count` components from a vector, a row or a column.
  absl::StatusOr<std::vector<float>> Vector(const std::string& name,
                                            std::int64_t count) {
    ATTENDANT_ASSIGN_OR_RETURN(Tensor tensor, Read(name));
    const auto longer = std::ranges::count_if(
        tensor.shape, [](std::int64_t n) { return n != 1; });
    if (longer > 1 || static_cast<std::int64_t>(tensor.data.size()) != count) {
      return Error(name, absl::StrCat("got ", ShapeText(tensor.shape),
                                      ", want [", count, "]"));
    }
    return std::move(tensor.data);
  }
  // Reads the same, or returns an empty vector if there is no such array.
  absl::StatusOr<std::vector<float>> OptionalVector(const std::string& name,
                                                    std::int64_t count) {
    if (!Has(name)) return std::vector<float>();
    return Vector(name, count);
  }

  absl::Status Error(const std::string& name, absl::string_view message) const {
    return files_.Error(prefix_ + name, message);
  }

  // Returns the names of arrays that were not read, without the prefix.
  std::vector<std::string> unused() const {
    std::vector<std::string> names;
    for (const std::string& name : files_.names()) {
      if (absl::StartsWith(name, prefix_) && used_.count(name) == 0) {
        names.push_back(name.substr(prefix_.size()));
      }
    }
    return names;
  }

 private:
  absl::StatusOr<Tensor> Read(const std::string& name) {
    const std::string full = prefix_ + name;
    if (files_.FindShape(full) == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("no tensor ", full, ", which the layout has"));
    }
    used_.insert(full);
    return files_.Read(full, kMaxWeightCount);
  }

  const TensorFiles& files_;
  const std::string prefix_;
  std::set<std::string> used_;
};

// Returns --heads for a layout whose names don't tell the head count. It must
// divide the rows of `name`.
absl::StatusOr<std::int64_t> HeadCount(const Arrays& arrays,
                                       const LayoutOptions& options,
                                       const std::string& name,
                                       std::int64_t row_count) {
  if (!options.head_count) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--heads: got none, want how many heads share the rows of ",
        options.prefix, name));
  }
  if (row_count % *options.head_count == 0) return *options.head_count;
  return arrays.Error(name, absl::StrCat("got ", row_count,
                                         " rows a projection, want a multiple "
                                         "of the ",
                                         *options.head_count, " heads"));
}

// Reads out_proj.weight [any, value_rows] and its bias.
absl::Status ReadOutput(Arrays& arrays, std::int64_t value_rows,
                        v1::MultiHeadProjections* heads) {
  ATTENDANT_ASSIGN_OR_RETURN(
      const Weights weight,
      arrays.Matrix("out_proj.weight", std::nullopt, value_rows));
  ATTENDANT_ASSIGN_OR_RETURN(
      const std::vector<float> bias,
      arrays.OptionalVector("out_proj.bias", weight.row_count));
  SetProjection(weight, bias, heads->mutable_output());
  return absl::OkStatus();
}

// Three projections and their common bias, which may be empty.
void SetInputs(const Weights& query, const Weights& key, const Weights& value,
               std::span<const float> bias, v1::MultiHeadProjections* heads) {
  const auto rows = static_cast<std::size_t>(query.row_count);
  const auto part = [&](std::size_t i) {
    return bias.empty() ? bias : bias.subspan(i * rows, rows);
  };
  SetProjection(query, part(0), heads->mutable_query());
  SetProjection(key, part(1), heads->mutable_key());
  SetProjection(value, part(2), heads->mutable_value());
}

absl::Status ReadPacked(Arrays& arrays, const LayoutOptions& options,
                        v1::AttentionModel* model) {
  constexpr char kName[] = "in_proj_weight";
  ATTENDANT_ASSIGN_OR_RETURN(const Weights packed, arrays.Matrix(kName));
  const std::int64_t dim = packed.column_count;
  if (packed.row_count != 3 * dim) {
    return arrays.Error(
        kName,
        absl::StrCat("got [", packed.row_count, ", ", dim, "], want [3 E, E]",
                     dim == 3 * packed.row_count ? ": it is transposed" : ""));
  }
  v1::MultiHeadProjections* heads = model->mutable_multi_head();
  ATTENDANT_ASSIGN_OR_RETURN(const std::int64_t head_count,
                             HeadCount(arrays, options, kName, dim));
  heads->set_head_count(static_cast<std::int32_t>(head_count));
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<float> bias,
                             arrays.OptionalVector("in_proj_bias", 3 * dim));
  SetInputs(RowsOf(packed, 0, dim), RowsOf(packed, dim, 2 * dim),
            RowsOf(packed, 2 * dim, 3 * dim), bias, heads);
  return ReadOutput(arrays, dim, heads);
}

absl::Status ReadSplit(Arrays& arrays, const LayoutOptions& options,
                       v1::AttentionModel* model) {
  constexpr char kName[] = "q_proj_weight";
  ATTENDANT_ASSIGN_OR_RETURN(const Weights query, arrays.Matrix(kName));
  const std::int64_t dim = query.row_count;
  ATTENDANT_ASSIGN_OR_RETURN(const Weights key,
                             arrays.Matrix("k_proj_weight", dim));
  ATTENDANT_ASSIGN_OR_RETURN(const Weights value,
                             arrays.Matrix("v_proj_weight", dim));
  v1::MultiHeadProjections* heads = model->mutable_multi_head();
  ATTENDANT_ASSIGN_OR_RETURN(const std::int64_t head_count,
                             HeadCount(arrays, options, kName, dim));
  heads->set_head_count(static_cast<std::int32_t>(head_count));
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<float> bias,
                             arrays.OptionalVector("in_proj_bias", 3 * dim));
  SetInputs(query, key, value, bias, heads);
  return ReadOutput(arrays, dim, heads);
}

// Reads NAME.weight and NAME.bias, and returns the number of rows.
absl::StatusOr<std::int64_t> ReadLinear(Arrays& arrays, const std::string& name,
                                        std::optional<std::int64_t> row_count,
                                        v1::Projection* wire) {
  ATTENDANT_ASSIGN_OR_RETURN(const Weights weight,
                             arrays.Matrix(name + ".weight", row_count));
  ATTENDANT_ASSIGN_OR_RETURN(
      const std::vector<float> bias,
      arrays.OptionalVector(name + ".bias", weight.row_count));
  SetProjection(weight, bias, wire);
  return weight.row_count;
}

absl::Status ReadLinears(Arrays& arrays, const LayoutOptions& options,
                         v1::AttentionModel* model) {
  v1::MultiHeadProjections* heads = model->mutable_multi_head();
  ATTENDANT_ASSIGN_OR_RETURN(
      const std::int64_t query_rows,
      ReadLinear(arrays, "q_proj", std::nullopt, heads->mutable_query()));
  ATTENDANT_RETURN_IF_ERROR(
      ReadLinear(arrays, "k_proj", query_rows, heads->mutable_key()).status());
  ATTENDANT_ASSIGN_OR_RETURN(
      const std::int64_t value_rows,
      ReadLinear(arrays, "v_proj", std::nullopt, heads->mutable_value()));
  ATTENDANT_ASSIGN_OR_RETURN(
      const std::int64_t head_count,
      HeadCount(arrays, options, "q_proj.weight", query_rows));
  ATTENDANT_RETURN_IF_ERROR(
      HeadCount(arrays, options, "v_proj.weight", value_rows).status());
  heads->set_head_count(static_cast<std::int32_t>(head_count));
  return ReadOutput(arrays, value_rows, heads);
}

// Joins the matrices LETTER_i [input, head dimension] to one [heads x head
// dimension, input], and their biases b_....
absl::Status ReadHeads(Arrays& arrays, const std::string& letter, int first,
                       std::int64_t head_count,
                       std::optional<std::int64_t> head_dim,
                       v1::Projection* wire) {
  Weights joined;
  std::vector<float> joined_bias;
  bool has_bias = false;
  for (std::int64_t head = 0; head < head_count; ++head) {
    const std::string end = absl::StrCat("_", letter, "_", first + head);
    std::optional<std::int64_t> input_dim;
    if (head > 0) input_dim = joined.column_count;
    ATTENDANT_ASSIGN_OR_RETURN(const Weights weight,
                               arrays.Matrix("W" + end, input_dim, head_dim));
    head_dim = weight.column_count;
    const Weights rows = Transposed(weight);
    joined.column_count = rows.column_count;
    joined.row_count += rows.row_count;
    Append(rows.data, joined.data);
    ATTENDANT_ASSIGN_OR_RETURN(std::vector<float> bias,
                               arrays.OptionalVector("b" + end, *head_dim));
    has_bias = has_bias || !bias.empty();
    // A missing bias is 0.
    bias.resize(static_cast<std::size_t>(*head_dim));
    Append(bias, joined_bias);
  }
  if (!has_bias) joined_bias.clear();
  SetProjection(joined, joined_bias, wire);
  return absl::OkStatus();
}

// Refuses matrices of further heads, as after a gap in the numbers.
absl::Status CheckAllHeadsUsed(const Arrays& arrays) {
  for (const std::string& name : arrays.unused()) {
    for (const char* start : {"W_Q_", "W_K_", "W_V_", "b_Q_", "b_K_", "b_V_"}) {
      if (absl::StartsWith(name, start)) {
        return arrays.Error(name, "belongs to none of the heads");
      }
    }
  }
  return absl::OkStatus();
}

absl::Status ReadPerHead(Arrays& arrays, const LayoutOptions& options,
                         v1::AttentionModel* model) {
  const int first = arrays.Has("W_Q_0") ? 0 : 1;
  std::int64_t head_count = 0;
  while (arrays.Has(absl::StrCat("W_Q_", first + head_count))) ++head_count;
  if (options.head_count.value_or(head_count) != head_count) {
    return absl::InvalidArgumentError(
        absl::StrCat("--heads: got ", *options.head_count, ", want ",
                     head_count, ", as there are W_Q_i"));
  }
  v1::MultiHeadProjections* heads = model->mutable_multi_head();
  heads->set_head_count(static_cast<std::int32_t>(head_count));
  ATTENDANT_RETURN_IF_ERROR(ReadHeads(arrays, "Q", first, head_count,
                                      std::nullopt, heads->mutable_query()));
  ATTENDANT_RETURN_IF_ERROR(ReadHeads(
      arrays, "K", first, head_count,
      heads->query().weight().row_count() / head_count, heads->mutable_key()));
  std::optional<std::int64_t> value_rows;
  if (arrays.Has(absl::StrCat("W_V_", first))) {
    ATTENDANT_RETURN_IF_ERROR(ReadHeads(arrays, "V", first, head_count,
                                        std::nullopt, heads->mutable_value()));
    value_rows = heads->value().weight().row_count();
  }
  ATTENDANT_RETURN_IF_ERROR(CheckAllHeadsUsed(arrays));
  if (!arrays.Has("W_O")) return absl::OkStatus();
  ATTENDANT_ASSIGN_OR_RETURN(const Weights output,
                             arrays.Matrix("W_O", value_rows));
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<float> bias,
                             arrays.OptionalVector("b_O", output.column_count));
  SetProjection(Transposed(output), bias, heads->mutable_output());
  return absl::OkStatus();
}

absl::Status CheckNoHeads(const LayoutOptions& options,
                          absl::string_view layout) {
  if (!options.head_count) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--heads: got ", *options.head_count,
                   ", want none: ", layout, " model has no heads"));
}

absl::Status ReadAdditive(Arrays& arrays, const LayoutOptions& options,
                          v1::AttentionModel* model) {
  ATTENDANT_RETURN_IF_ERROR(CheckNoHeads(options, "an additive"));
  v1::AdditiveNetwork* network = model->mutable_additive();
  ATTENDANT_ASSIGN_OR_RETURN(const Weights query, arrays.Matrix("W"));
  ATTENDANT_ASSIGN_OR_RETURN(const Weights key,
                             arrays.Matrix("U", query.row_count));
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<float> output,
                             arrays.Vector("v", query.row_count));
  SetMatrix(query, network->mutable_query_weight());
  SetMatrix(key, network->mutable_key_weight());
  *network->mutable_output_weight() = ToVector(output);
  return absl::OkStatus();
}

absl::Status ReadBilinear(Arrays& arrays, const LayoutOptions& options,
                          v1::AttentionModel* model) {
  ATTENDANT_RETURN_IF_ERROR(CheckNoHeads(options, "a bilinear"));
  ATTENDANT_ASSIGN_OR_RETURN(const Weights weight, arrays.Matrix("W"));
  SetMatrix(weight, model->mutable_bilinear()->mutable_weight());
  return absl::OkStatus();
}

struct Layout {
  absl::string_view name;
  bool present = false;
  absl::Status (*read)(Arrays&, const LayoutOptions&, v1::AttentionModel*);
};

// Finds the one layout whose names are present.
absl::StatusOr<Layout> FindLayout(const Arrays& arrays,
                                  const LayoutOptions& options) {
  // U or v means the additive layout; W alone is the bilinear one.
  const bool additive = arrays.Has("W") && (arrays.Has("U") || arrays.Has("v"));
  const Layout layouts[] = {
      {"PyTorch's packed in_proj", arrays.Has("in_proj_weight"), &ReadPacked},
      {"PyTorch's split projections", arrays.Has("q_proj_weight"), &ReadSplit},
      {"one linear layer a projection", arrays.Has("q_proj.weight"),
       &ReadLinears},
      {"one matrix a head", arrays.Has("W_Q_0") || arrays.Has("W_Q_1"),
       &ReadPerHead},
      {"additive", additive, &ReadAdditive},
      {"bilinear", arrays.Has("W") && !additive, &ReadBilinear},
  };
  std::vector<Layout> present;
  for (const Layout& layout : layouts) {
    if (layout.present) present.push_back(layout);
  }
  if (present.size() == 1) return present[0];
  if (present.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("got the tensors of two layouts, ", present[0].name,
                     " and ", present[1].name, ", want one"));
  }
  std::vector<std::string> names = arrays.unused();
  if (names.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--prefix: got '", options.prefix, "', want the start of some name"));
  }
  constexpr std::size_t kShown = 8;
  const bool more = names.size() > kShown;
  if (more) names.resize(kShown);
  return absl::InvalidArgumentError(absl::StrCat(
      "got tensors of no layout known (", absl::StrJoin(names, ", "),
      more ? ", ..." : "",
      "); want those that `attendant model import --help` lists, after the "
      "--prefix"));
}

// Returns a count > 0 of a JSON object, or nothing if there is no such member.
absl::Status ReadCount(const nlohmann::json& json, const char* name,
                       std::optional<std::int64_t>& count) {
  const auto found = json.find(name);
  if (found == json.end() || found->is_null()) return absl::OkStatus();
  if (!found->is_number_unsigned() || found->get<std::uint64_t>() < 1 ||
      found->get<std::uint64_t>() > 65536) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, ": got ", found->dump(), ", want a number from 1 to 65536"));
  }
  count = found->get<std::int64_t>();
  return absl::OkStatus();
}

absl::Status CheckSame(const char* name, std::optional<std::int64_t> config,
                       std::int64_t has) {
  if (config.value_or(has) == has) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      name, ": got ", *config, ", want ", has, ", as the weights have"));
}

absl::StatusOr<v1::Vector> FloatsIn(const nlohmann::json& json,
                                    const char* name) {
  const auto malformed = [&] {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": want an array of finite 32-bit floats"));
  };
  const auto found = json.find(name);
  if (found == json.end() || !found->is_array()) return malformed();
  std::vector<float> floats;
  for (const nlohmann::json& element : *found) {
    if (!element.is_number()) return malformed();
    const auto number = element.get<double>();
    if (!(std::abs(number) <= std::numeric_limits<float>::max())) {
      return malformed();
    }
    floats.push_back(static_cast<float>(number));
  }
  return ToVector(floats);
}

}  // namespace

absl::StatusOr<ImportedModel> ModelFromTensors(const TensorFiles& tensors,
                                               const LayoutOptions& options) {
  Arrays arrays(tensors, options.prefix);
  ATTENDANT_ASSIGN_OR_RETURN(const Layout layout, FindLayout(arrays, options));
  for (const char* name : {"bias_k", "bias_v"}) {
    if (!arrays.Has(name)) continue;
    return arrays.Error(name,
                        "a module made with add_bias_kv attends over a key "
                        "that no item has, which is not supported");
  }
  ImportedModel imported;
  imported.layout = std::string(layout.name);
  ATTENDANT_RETURN_IF_ERROR(layout.read(arrays, options, &imported.model));
  const auto bytes = static_cast<std::int64_t>(imported.model.ByteSizeLong());
  if (bytes > kMaxModelBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the weights take ", bytes, " bytes, want at most ",
                     kMaxModelBytes, ", what a request can hold"));
  }
  imported.unused = arrays.unused();
  return imported;
}

absl::StatusOr<ModelConfig> ParseModelConfig(const std::string& text) {
  ATTENDANT_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJsonObject(text));
  ModelConfig config;
  ATTENDANT_RETURN_IF_ERROR(
      ReadCount(json, "num_attention_heads", config.head_count));
  ATTENDANT_RETURN_IF_ERROR(ReadCount(json, "num_heads", config.head_count));
  ATTENDANT_RETURN_IF_ERROR(ReadCount(json, "embed_dim", config.embed_dim));
  ATTENDANT_RETURN_IF_ERROR(ReadCount(json, "kdim", config.key_dim));
  ATTENDANT_RETURN_IF_ERROR(ReadCount(json, "vdim", config.value_dim));
  for (const char* name : {"add_bias_kv", "add_zero_attn"}) {
    const nlohmann::json flag = json.value(name, nlohmann::json(false));
    if (flag != false) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": got ", flag.dump(),
                       ", want false: it attends over a key that no item has"));
    }
  }
  const nlohmann::json dropout = json.value("dropout", nlohmann::json(0.0));
  if (!dropout.is_number()) {
    return absl::InvalidArgumentError(
        absl::StrCat("dropout: got ", dropout.dump(), ", want a number"));
  }
  config.dropout = dropout.get<double>();
  return config;
}

absl::Status CheckConfig(const ModelConfig& config,
                         const v1::AttentionModel& model) {
  const v1::MultiHeadProjections& heads = model.multi_head();
  if (!model.has_multi_head()) return absl::OkStatus();
  ATTENDANT_RETURN_IF_ERROR(
      CheckSame("num_heads", config.head_count, heads.head_count()));
  ATTENDANT_RETURN_IF_ERROR(CheckSame("embed_dim", config.embed_dim,
                                      heads.query().weight().column_count()));
  ATTENDANT_RETURN_IF_ERROR(
      CheckSame("kdim", config.key_dim, heads.key().weight().column_count()));
  if (!heads.has_value()) return absl::OkStatus();
  return CheckSame("vdim", config.value_dim,
                   heads.value().weight().column_count());
}

absl::StatusOr<v1::ProjectionProbe> ParseProbe(const std::string& text) {
  ATTENDANT_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJsonObject(text));
  const nlohmann::json projection = json.value("projection", nlohmann::json());
  v1::ProjectionProbe probe;
  for (const auto& [name, kind] :
       {std::pair{"query", v1::PROJECTION_KIND_QUERY},
        std::pair{"key", v1::PROJECTION_KIND_KEY},
        std::pair{"value", v1::PROJECTION_KIND_VALUE},
        std::pair{"output", v1::PROJECTION_KIND_OUTPUT}}) {
    if (projection == name) probe.set_projection(kind);
  }
  if (probe.projection() == v1::PROJECTION_KIND_UNSPECIFIED) {
    return absl::InvalidArgumentError(
        absl::StrCat("projection: got ", projection.dump(),
                     ", want \"query\", \"key\", \"value\" or \"output\""));
  }
  ATTENDANT_ASSIGN_OR_RETURN(*probe.mutable_input(), FloatsIn(json, "input"));
  ATTENDANT_ASSIGN_OR_RETURN(*probe.mutable_output(), FloatsIn(json, "output"));
  return probe;
}

}  // namespace attendant
