#include "core/catalog/live/model_set.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/attention/models/asymmetry.h"
#include "core/base/status.h"
#include "core/base/status_details.h"

namespace attendant {
namespace {

absl::Status NoSuchModel(absl::string_view name,
                         std::optional<std::int64_t> version) {
  const std::string what =
      version ? absl::StrCat("no version ", *version, " of model '", name, "'")
              : absl::StrCat("no model '", name, "'");
  absl::Status status =
      StatusWithReason(absl::StatusCode::kNotFound, what, "MODEL_NOT_FOUND");
  if (!version) return WithDetails(status, {{"model", name}});
  return WithDetails(status,
                     {{"model", name}, {"version", absl::StrCat(*version)}});
}

}  // namespace

std::int64_t WeightBytes(const AttentionModel& model) {
  std::size_t count = 0;
  const auto add = [&](const Projection& projection) {
    count += projection.weight.data.size() + projection.bias.size();
  };
  if (const MultiHeadProjections* heads = model.multi_head()) {
    add(heads->query);
    add(heads->key);
    if (heads->value) add(*heads->value);
    if (heads->output) add(*heads->output);
  } else if (const BilinearForm* form = model.bilinear()) {
    count += form->weight.data.size();
  } else if (const AdditiveNetwork* network = model.additive()) {
    count += network->query_weight.data.size() +
             network->key_weight.data.size() + network->output_weight.size();
  }
  return static_cast<std::int64_t>(count * sizeof(float));
}

ModelSet::ModelSet(Store* store, const Clock* clock, MemoryBudget* memory,
                   ModelList list)
    : store_(store),
      clock_(clock),
      memory_(memory),
      versions_(std::make_shared<const Versions>()) {
  MutexLock lock(&mutex_);
  if (memory_ != nullptr) account_ = memory_->OpenAccount();
  auto versions = std::make_shared<Versions>();
  for (const auto& [name, version] : list.last_versions) {
    last_versions_.emplace(name, version);
  }
  for (ModelRecord& record : list.records) {
    Id id(record.name.name, record.name.version);
    // Existing versions are never assigned again, whatever was recorded.
    const auto last = last_versions_.try_emplace(id.first, id.second).first;
    last->second = std::max(*last->second, id.second);
    (*versions)[std::move(id)].version =
        std::make_shared<const ModelVersion>(std::move(record));
  }
  for (const auto& [id, damage] : list.damages) {
    if (id.second == 0) {
      last_versions_.insert_or_assign(id.first, damage);
    } else {
      (*versions)[id].damage = damage;
    }
  }
  Publish(std::move(versions));
}

absl::StatusOr<std::unique_ptr<ModelSet>> ModelSet::Open(Store* store,
                                                         const Clock* clock,
                                                         MemoryBudget* memory) {
  ATTENDANT_ASSIGN_OR_RETURN(ModelList list, store->ListModels());
  return std::unique_ptr<ModelSet>(
      new ModelSet(store, clock, memory, std::move(list)));
}

void ModelSet::Publish(std::shared_ptr<const Versions> versions) {
  std::int64_t bytes = 0;
  for (const auto& [id, entry] : *versions) {
    if (entry.version != nullptr) bytes += WeightBytes(entry.version->model);
  }
  account_.Set(bytes);
  versions_.Store(std::move(versions));
}

absl::StatusOr<std::shared_ptr<const ModelVersion>> ModelSet::Create(
    absl::string_view name, AttentionModel model,
    std::span<const ProjectionProbe> probes, const Interrupt& interrupt) {
  ATTENDANT_RETURN_IF_ERROR(PrefixField(ValidateCatalogName(name), "model."));
  ATTENDANT_RETURN_IF_ERROR(PrefixField(ValidateModel(model), "model."));
  ATTENDANT_RETURN_IF_ERROR(CheckCount(static_cast<std::int64_t>(probes.size()),
                                       0, kMaxProbes, "probes"));
  for (std::size_t i = 0; i < probes.size(); ++i) {
    ATTENDANT_RETURN_IF_ERROR(
        CheckProbe(model, probes[i], absl::StrCat("probes[", i, "]")));
  }
  // Until the model itself is counted.
  ATTENDANT_ASSIGN_OR_RETURN(
      const MemoryBudget::Account room,
      MemoryBudget::ReserveIn(memory_, "the model", WeightBytes(model)));
  // Before locking, as it may take long.
  ModelRecord record;
  ATTENDANT_ASSIGN_OR_RETURN(record.asymmetry, Asymmetry(model, interrupt));
  record.model = std::move(model);

  MutexLock lock(&mutex_);
  const std::shared_ptr<const Versions> now = versions_.Load();
  if (now->size() >= kMaxModelVersions) {
    return MostThereMayBe(static_cast<std::int64_t>(now->size()),
                          "versions of models");
  }
  record.name.name = std::string(name);
  const auto last =
      last_versions_.try_emplace(record.name.name, std::int64_t{0}).first;
  ATTENDANT_ASSIGN_OR_RETURN(const std::int64_t last_version, last->second);
  record.name.version = last_version + 1;
  record.create_time = clock_->Now();
  // Recorded first: even after an error the version may be on the disk.
  last->second = record.name.version;
  // Allocated first: once the version is durable there must be memory to serve
  // it.
  auto version = std::make_shared<const ModelVersion>(std::move(record));
  auto next = std::make_shared<Versions>(*now);
  (*next)[Id(version->name.name, version->name.version)].version = version;
  ATTENDANT_RETURN_IF_ERROR(store_->PutModel(*version));
  Publish(std::move(next));
  return version;
}

absl::StatusOr<std::shared_ptr<const ModelVersion>> ModelSet::Get(
    absl::string_view name, std::optional<std::int64_t> version) const {
  const std::shared_ptr<const Versions> now = versions_.Load();
  Versions::const_iterator found;
  if (version.has_value()) {
    found = now->find(Id(std::string(name), *version));
    if (found == now->end()) return NoSuchModel(name, version);
  } else {
    found = now->upper_bound(
        Id(std::string(name), std::numeric_limits<std::int64_t>::max()));
    if (found == now->begin() || (--found)->first.first != name) {
      return NoSuchModel(name, version);
    }
  }
  ATTENDANT_RETURN_IF_ERROR(found->second.damage);
  return found->second.version;
}

std::vector<std::shared_ptr<const ModelVersion>> ModelSet::List(
    const ModelName& after, std::int64_t limit) const {
  const std::shared_ptr<const Versions> now = versions_.Load();
  std::vector<std::shared_ptr<const ModelVersion>> found;
  for (auto at = now->upper_bound(Id(after.name, after.version));
       at != now->end() && static_cast<std::int64_t>(found.size()) < limit;
       ++at) {
    if (at->second.version != nullptr) found.push_back(at->second.version);
  }
  return found;
}

absl::Status ModelSet::Delete(const ModelName& name) {
  MutexLock lock(&mutex_);
  const std::shared_ptr<const Versions> now = versions_.Load();
  const Id id(name.name, name.version);
  if (!now->contains(id)) return NoSuchModel(name.name, name.version);
  auto next = std::make_shared<Versions>(*now);
  next->erase(id);
  ATTENDANT_RETURN_IF_ERROR(store_->RemoveModel(name));
  Publish(std::move(next));
  return absl::OkStatus();
}

std::map<std::pair<std::string, std::int64_t>, absl::Status> ModelSet::damages()
    const {
  std::map<Id, absl::Status> damages;
  const std::shared_ptr<const Versions> now = versions_.Load();
  for (const auto& [id, entry] : *now) {
    if (!entry.damage.ok()) damages[id] = entry.damage;
  }
  MutexLock lock(&mutex_);
  for (const auto& [name, version] : last_versions_) {
    if (!version.ok()) damages[Id(name, 0)] = version.status();
  }
  return damages;
}

}  // namespace attendant
