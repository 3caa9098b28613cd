#include "core/catalog/live/catalog_set.h"

#include <malloc.h>

#include <algorithm>
#include <limits>
#include <new>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/fail_point.h"
#include "core/base/number_text.h"
#include "core/base/process_memory.h"
#include "core/base/status.h"
#include "core/base/status_details.h"
#include "core/storage/files/disk_space.h"
#include "core/storage/files/files.h"

namespace attendant {
namespace {

// The memory of a database without items, and of the first rows.
constexpr std::int64_t kNewCatalogBytes = std::int64_t{1} << 20;

absl::Status NoSuchCatalog(absl::string_view name) {
  return WithDetails(StatusWithReason(absl::StatusCode::kNotFound,
                                      absl::StrCat("no catalog '", name, "'"),
                                      "CATALOG_NOT_FOUND"),
                     {{"catalog", name}});
}

// OK if each encoder serves a field of the schema, at most one per field, and
// has the field's dimension.
absl::Status ValidateEncoders(
    const CatalogSchema& schema,
    const std::vector<CatalogSet::FieldEncoder>& encoders) {
  std::vector<bool> seen(schema.key_fields.size());
  for (std::size_t i = 0; i < encoders.size(); ++i) {
    const CatalogSet::FieldEncoder& encoder = encoders[i];
    const std::string path = absl::StrCat("text_encoders[", i, "].");
    const int field = schema.KeyFieldIndex(encoder.key_field);
    if (field < 0 || seen[field]) {
      return InvalidField(path + "key_field",
                          absl::StrCat("'", encoder.key_field, "'"),
                          "a key field of the schema, each at most once");
    }
    seen[field] = true;
    const std::int64_t dim = encoder.encoder.parts().dim;
    if (dim != schema.key_fields[field].dim) {
      return InvalidField(
          path + "projection_float32_le", absl::StrCat(dim, " dimensions"),
          absl::StrCat(schema.key_fields[field].dim, ", as key field '",
                       encoder.key_field, "' has"));
    }
  }
  return absl::OkStatus();
}

absl::Status SetEncoders(LiveCatalog& catalog, const CatalogSchema& schema,
                         std::vector<CatalogSet::FieldEncoder> encoders) {
  std::vector<LiveCatalog::FieldEncoder> of_fields;
  for (CatalogSet::FieldEncoder& encoder : encoders) {
    of_fields.push_back(
        {schema.KeyFieldIndex(encoder.key_field), std::move(encoder.encoder)});
  }
  return catalog.SetEncoders(std::move(of_fields));
}

// Checks the models of a schema's key fields before they are stored. Catalogs
// whose models are already stored are opened without this check.
absl::Status CheckIndexable(const std::vector<NamedModel>& models) {
  for (std::size_t f = 0; f < models.size(); ++f) {
    if (models[f].model == nullptr) continue;
    ATTENDANT_RETURN_IF_ERROR(CheckIndexable(
        *models[f].model, absl::StrCat("schema.key_fields[", f, "].model")));
  }
  return absl::OkStatus();
}

// Checks temperatures that differ from `before`, which has the previous key
// fields, if any. If the inverse of a temperature overflows a float, no query
// has a logit.
absl::Status CheckTemperatures(const std::vector<KeyFieldSchema>& key_fields,
                               const std::vector<KeyFieldSchema>& before) {
  constexpr double kGreatest = std::numeric_limits<float>::max();
  for (std::size_t f = 0; f < key_fields.size(); ++f) {
    const double temperature = key_fields[f].temperature;
    const bool is_new =
        f >= before.size() || temperature != before[f].temperature;
    if (is_new && !(1 / temperature <= kGreatest)) {
      return InvalidField(
          absl::StrCat("schema.key_fields[", f, "].temperature"),
          NumberText(temperature),
          absl::StrCat("at least ", NumberText(1 / kGreatest),
                       ", whose inverse is the greatest float"));
    }
  }
  return absl::OkStatus();
}

// Returns the name of the first field in `asked` that is missing in `there`;
// empty if there is none.
template <typename Field>
std::string NameOfMissing(const std::vector<Field>& asked,
                          const std::vector<Field>& there) {
  for (const Field& field : asked) {
    const bool has = std::ranges::any_of(
        there, [&](const Field& other) { return other.name == field.name; });
    if (!has) return absl::StrCat("'", field.name, "'");
  }
  return "";
}

// Describes how the requested schema differs from the existing one in parts
// that are fixed at creation, as in "it has no key field 'text'"; empty if it
// does not. The existing one may have further attributes, and lack some.
std::string FixedDifference(const CatalogSchema& there,
                            const CatalogSchema& asked) {
  if (const auto name = NameOfMissing(asked.key_fields, there.key_fields);
      !name.empty()) {
    return absl::StrCat("it has no key field ", name);
  }
  if (const auto name = NameOfMissing(there.key_fields, asked.key_fields);
      !name.empty()) {
    return absl::StrCat("it has a key field ", name, " too");
  }
  for (std::size_t f = 0; f < there.key_fields.size(); ++f) {
    KeyFieldSchema field = asked.key_fields[f];
    field.TakeDefaults(there.key_fields[f]);
    if (field == there.key_fields[f]) continue;
    return absl::StrCat("its key field '", there.key_fields[f].name,
                        "' has another place, dimension or score kind");
  }
  if (there.value_dim != asked.value_dim) {
    return absl::StrCat("its values have ", there.value_dim,
                        " dimensions, not ", asked.value_dim);
  }
  for (const AttributeSchema& attribute : asked.attributes) {
    const int position = there.AttributeIndex(attribute.name);
    if (position < 0 || there.attributes[position] == attribute) continue;
    return absl::StrCat("its attribute '", attribute.name, "' is ",
                        WithArticle(there.attributes[position].type), ", not ",
                        WithArticle(attribute.type));
  }
  return "";
}

// The error for a request to create a catalog that exists.
absl::Status CatalogExists(absl::string_view name, absl::string_view difference,
                           absl::string_view advice) {
  return WithDetails(
      StatusWithReason(
          absl::StatusCode::kAlreadyExists,
          absl::StrCat("catalog '", name, "' exists with another schema: ",
                       difference, "; ", advice),
          "CATALOG_EXISTS"),
      {{"catalog", name}});
}

}  // namespace

CatalogSet::CatalogSet(std::string directory, std::unique_ptr<Store> store,
                       const Options& options)
    : directory_(std::move(directory)),
      options_(options),
      store_(std::move(store)),
      memory_(std::make_unique<MemoryBudget>(MemoryBudget::Options{
          .limit_bytes = options.memory_limit_bytes,
          .shared_bytes =
              [this] {
                return store_->cache_bytes() + store_->write_buffer_bytes();
              },
          .resident_bytes = &ResidentBytes,
          .release = [] { malloc_trim(0); }})),
      catalogs_(std::make_shared<Catalogs>()) {}

absl::StatusOr<std::unique_ptr<CatalogSet>> CatalogSet::Open(
    const std::string& directory, const Options& options) {
  ATTENDANT_ASSIGN_OR_RETURN(std::unique_ptr<Store> store,
                             Store::Open(directory, options.store));
  std::unique_ptr<CatalogSet> set(
      new CatalogSet(directory, std::move(store), options));
  ATTENDANT_ASSIGN_OR_RETURN(
      set->models_,
      ModelSet::Open(set->store_.get(), options.clock, set->memory_.get()));
  ATTENDANT_ASSIGN_OR_RETURN(const CatalogList list, set->store_->List());
  auto catalogs = std::make_shared<Catalogs>();
  for (const auto& [damaged, why] : list.damages) {
    Entry& entry = (*catalogs)[damaged];
    entry.damage = why;
    entry.damaged_record.name = damaged;
  }
  for (const CatalogRecord& record : list.records) {
    Entry& entry = (*catalogs)[record.name];
    absl::StatusOr<std::shared_ptr<LiveCatalog>> opened =
        set->OpenCatalog(record);
    if (opened.ok()) {
      entry.catalog = *std::move(opened);
    } else {
      entry.damage = opened.status();
      entry.damaged_record = record;
    }
  }
  for (const auto& [alias, target] : list.aliases) {
    // A catalog takes precedence over an alias of the same name.
    const auto [at, inserted] = catalogs->try_emplace(alias);
    if (!inserted) continue;
    at->second.is_alias = true;
    at->second.damage = target.status();
    if (target.ok()) at->second.target = *target;
  }
  set->catalogs_.Store(std::move(catalogs));
  return set;
}

absl::StatusOr<std::vector<NamedModel>> CatalogSet::ResolveModels(
    CatalogSchema& schema) const {
  std::vector<NamedModel> models(schema.key_fields.size());
  for (std::size_t f = 0; f < models.size(); ++f) {
    KeyFieldSchema& field = schema.key_fields[f];
    if (field.model.empty()) continue;
    const std::string path = absl::StrCat("schema.key_fields[", f, "].model");
    std::optional<std::int64_t> version;
    if (field.model.version != 0) version = field.model.version;
    absl::StatusOr<std::shared_ptr<const ModelVersion>> found =
        models_->Get(field.model.name, version);
    if (!found.ok()) {
      return PrefixField(found.status(), absl::StrCat(path, ": "));
    }
    // Shares ownership with the version.
    models[f].model =
        std::shared_ptr<const AttentionModel>(*found, &(*found)->model);
    ATTENDANT_RETURN_IF_ERROR(ValidateModelFits(
        *models[f].model, field.score_kind, field.dim, schema.value_dim, path));
    models[f].name = field.model = (*found)->name;
    models[f].key_limit = KeyLimit(*models[f].model);
  }
  return models;
}

absl::StatusOr<std::shared_ptr<LiveCatalog>> CatalogSet::OpenCatalog(
    const CatalogRecord& record) {
  CatalogSchema schema = record.schema;
  ATTENDANT_ASSIGN_OR_RETURN(std::vector<NamedModel> models,
                             ResolveModels(schema));
  ATTENDANT_ASSIGN_OR_RETURN(std::unique_ptr<CatalogStore> store,
                             store_->OpenCatalog(record));
  // Opens the catalog with the models that answered last: memory had room for
  // their keys, and their index may be in files. Other models are swapped in
  // afterwards, as they would have been before the restart.
  CatalogRecord last = record;
  for (KeyFieldSchema& field : last.schema.key_fields) {
    absl::StatusOr<std::optional<ModelName>> active =
        store->GetActiveModel(field.name);
    // A damaged entry is ignored; it does not affect the items.
    if (absl::IsDataLoss(active.status())) continue;
    ATTENDANT_RETURN_IF_ERROR(active.status());
    if (active->has_value()) field.model = **std::move(active);
  }
  absl::StatusOr<std::vector<NamedModel>> last_models =
      ResolveModels(last.schema);
  // The model may be intact, and so may its keys in files.
  if (absl::IsUnavailable(last_models.status()) ||
      absl::IsResourceExhausted(last_models.status())) {
    return last_models.status();
  }
  if (!last_models.ok()) {
    // A model was deleted while it was not in use, or is damaged. Its entry is
    // replaced, so that it cannot return over the index of another model.
    last = record;
    last_models = models;
    for (const KeyFieldSchema& field : record.schema.key_fields) {
      // If this fails, the next start repeats it.
      store->PutActiveModel(field.name, field.model).IgnoreError();
    }
  }
  LiveCatalogOptions options = options_.catalog;
  options.memory = memory_.get();
  options.clock = options_.clock;
  try {
    ATTENDANT_ASSIGN_OR_RETURN(
        std::shared_ptr<LiveCatalog> catalog,
        LiveCatalog::Open(last, *std::move(last_models), std::move(store),
                          &background_, options));
    if (last != record) {
      ATTENDANT_RETURN_IF_ERROR(catalog->UpdateSchema(
          record.schema, std::move(models), [] { return absl::OkStatus(); }));
    }
    return catalog;
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "out of memory for the items of catalog '", record.name, "'"));
  }
}

CatalogSet::MemoryUse CatalogSet::memory_use() const {
  return {.budget = memory_->use(),
          .cache_bytes = store_->cache_bytes(),
          .write_buffer_bytes = store_->write_buffer_bytes()};
}

absl::Status CatalogSet::CheckDiskRoom(std::uint64_t write_bytes) const {
  const auto buffer_bytes =
      static_cast<std::uint64_t>(store_->write_buffer_bytes());
  return CheckDiskSpace(directory_, RoomOfWrite(write_bytes, buffer_bytes));
}

absl::StatusOr<std::uint64_t> CatalogSet::free_disk_bytes() const {
  return FreeDiskBytes(directory_);
}

std::string CatalogSet::NewUid() {
  std::random_device random;
  return absl::StrFormat("%08x%08x", random(), random());
}

absl::StatusOr<CatalogSet::Created> CatalogSet::Create(
    absl::string_view name, const CatalogSchema& schema,
    absl::FunctionRef<Encoders()> ask_for_encoders) {
  ATTENDANT_RETURN_IF_ERROR(ValidateCatalogName(name));
  ATTENDANT_RETURN_IF_ERROR(ValidateSchema(schema));
  MutexLock lock(&mutex_);
  const std::shared_ptr<const Catalogs> now = catalogs_.Load();
  if (const auto found = now->find(name); found != now->end()) {
    if (found->second.is_alias) {
      return WithDetails(
          StatusWithReason(
              absl::StatusCode::kAlreadyExists,
              absl::StrCat("'", name,
                           "' is an alias; choose another name, or delete the "
                           "alias first"),
              "ALIAS_EXISTS"),
          {{"alias", name}});
    }
    ATTENDANT_RETURN_IF_ERROR(found->second.damage);
    const CatalogSchema there = found->second.catalog->record().schema;
    if (const auto difference = FixedDifference(there, schema);
        !difference.empty()) {
      return CatalogExists(name, difference,
                           "delete it first, or choose another name");
    }
    if (const auto missing = NameOfMissing(schema.attributes, there.attributes);
        !missing.empty()) {
      return CatalogExists(name, absl::StrCat("it has no attribute ", missing),
                           "UpdateCatalog adds attributes");
    }
    return Created{found->second.catalog, false};
  }
  ATTENDANT_ASSIGN_OR_RETURN(std::vector<FieldEncoder> encoders,
                             ask_for_encoders());
  ATTENDANT_RETURN_IF_ERROR(ValidateEncoders(schema, encoders));
  ATTENDANT_RETURN_IF_ERROR(CheckTemperatures(schema.key_fields, {}));
  ATTENDANT_RETURN_IF_ERROR(CheckCount(*now));
  ATTENDANT_RETURN_IF_ERROR(memory_->Check("a new catalog", kNewCatalogBytes));
  ATTENDANT_RETURN_IF_ERROR(CheckOpenFiles("a new catalog", kCatalogFiles));
  CatalogRecord record;
  record.name = std::string(name);
  record.uid = NewUid();
  record.schema = schema;
  // Resolves which version "the newest" is.
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<NamedModel> models,
                             ResolveModels(record.schema));
  ATTENDANT_RETURN_IF_ERROR(CheckIndexable(models));
  record.create_time = options_.clock->Now();
  // The record is stored last: without it a crash leaves no catalog, and the
  // next start removes the files.
  absl::StatusOr<std::shared_ptr<LiveCatalog>> opened = OpenCatalog(record);
  if (!opened.ok()) {
    store_->RemoveFiles(record).IgnoreError();
    return opened.status();
  }
  std::shared_ptr<LiveCatalog> catalog = *std::move(opened);
  auto next = std::make_shared<Catalogs>(*now);
  (*next)[record.name].catalog = catalog;
  bool begun = false;
  const absl::Status status = [&]() -> absl::Status {
    ATTENDANT_RETURN_IF_ERROR(
        SetEncoders(*catalog, schema, std::move(encoders)));
    ATTENDANT_FAIL_POINT_OR_RETURN("create.before_record");
    return store_->Put(record, &begun);
  }();
  if (!status.ok()) {
    catalog->Discard();
    // If the next start may find the record, its files must stay.
    if (!begun) store_->RemoveFiles(record).IgnoreError();
    return status;
  }
  ATTENDANT_FAIL_POINT("create.after_record");
  catalogs_.Store(std::move(next));
  return Created{std::move(catalog), true};
}

absl::StatusOr<CatalogSet::Catalogs::const_iterator> CatalogSet::Find(
    const Catalogs& catalogs, absl::string_view name) {
  const auto found = catalogs.find(name);
  if (found == catalogs.end()) return NoSuchCatalog(name);
  if (!found->second.is_alias) return found;
  ATTENDANT_RETURN_IF_ERROR(found->second.damage);
  const auto target = catalogs.find(found->second.target);
  if (target == catalogs.end()) return NoSuchCatalog(found->second.target);
  return target;
}

absl::Status CatalogSet::CheckCount(const Catalogs& catalogs) const {
  if (Count(catalogs, /*aliases=*/false) < options_.most_catalogs) {
    return absl::OkStatus();
  }
  return MostThereMayBe(options_.most_catalogs, "catalogs");
}

std::int64_t CatalogSet::Count(const Catalogs& catalogs, bool aliases) {
  return std::ranges::count_if(catalogs, [&](const auto& entry) {
    return entry.second.is_alias == aliases;
  });
}

absl::StatusOr<std::shared_ptr<LiveCatalog>> CatalogSet::Get(
    absl::string_view name) const {
  const std::shared_ptr<const Catalogs> now = catalogs_.Load();
  ATTENDANT_ASSIGN_OR_RETURN(const auto found, Find(*now, name));
  ATTENDANT_RETURN_IF_ERROR(found->second.damage);
  return found->second.catalog;
}

std::vector<std::shared_ptr<LiveCatalog>> CatalogSet::List(
    absl::string_view after, std::int64_t limit) const {
  const std::shared_ptr<const Catalogs> now = catalogs_.Load();
  std::vector<std::shared_ptr<LiveCatalog>> found;
  for (auto at = now->upper_bound(after);
       at != now->end() && static_cast<std::int64_t>(found.size()) < limit;
       ++at) {
    if (at->second.catalog != nullptr) found.push_back(at->second.catalog);
  }
  return found;
}

absl::Status CatalogSet::Update(absl::string_view name,
                                const CatalogSchema& wanted,
                                std::vector<FieldEncoder> encoders,
                                absl::string_view uid) {
  MutexLock lock(&mutex_);
  ATTENDANT_ASSIGN_OR_RETURN(const std::shared_ptr<LiveCatalog> catalog,
                             Get(name));
  CatalogRecord record = catalog->record();
  if (!uid.empty() && record.uid != uid) return NoSuchCatalog(name);
  CatalogSchema schema = wanted;
  ATTENDANT_RETURN_IF_ERROR(ValidateSchema(schema));
  const std::vector<AttributeSchema>& there = record.schema.attributes;
  if (!FixedDifference(record.schema, schema).empty() ||
      std::ranges::mismatch(there, schema.attributes).in1 != there.end()) {
    return InvalidField(
        "schema", "another in what is fixed at creation",
        "that of the catalog, with other defaults or further attributes");
  }
  ATTENDANT_RETURN_IF_ERROR(
      CheckTemperatures(schema.key_fields, record.schema.key_fields));
  ATTENDANT_ASSIGN_OR_RETURN(std::vector<NamedModel> models,
                             ResolveModels(schema));
  ATTENDANT_RETURN_IF_ERROR(CheckIndexable(models));
  ATTENDANT_RETURN_IF_ERROR(ValidateEncoders(schema, encoders));
  record.schema = std::move(schema);
  return catalog->UpdateSchema(
      record.schema, std::move(models), [&]() -> absl::Status {
        ATTENDANT_RETURN_IF_ERROR(
            SetEncoders(*catalog, record.schema, std::move(encoders)));
        return store_->Put(record);
      });
}

absl::Status CatalogSet::Delete(absl::string_view name) {
  ATTENDANT_ASSIGN_OR_RETURN(const Entry entry, Remove(name));
  // Without the lock, since Discard waits for store reads and for an index
  // build, which runs only in spare processor time. Everything is identified by
  // uid: a catalog that gets the name meanwhile is another one.
  if (entry.catalog != nullptr) entry.catalog->Discard();
  // The catalog is gone; the next start removes files that remain.
  store_
      ->RemoveFiles(entry.catalog != nullptr ? entry.catalog->record()
                                             : entry.damaged_record)
      .IgnoreError();
  ATTENDANT_FAIL_POINT("drop.after_files");
  return absl::OkStatus();
}

absl::StatusOr<CatalogSet::Entry> CatalogSet::Remove(absl::string_view name) {
  MutexLock lock(&mutex_);
  const std::shared_ptr<const Catalogs> now = catalogs_.Load();
  ATTENDANT_ASSIGN_OR_RETURN(const auto found, Find(*now, name));
  for (const auto& [alias, entry] : *now) {
    if (!entry.is_alias || entry.target != found->first) continue;
    return WithDetails(
        StatusWithReason(
            absl::StatusCode::kFailedPrecondition,
            absl::StrCat("catalog '", found->first, "' has the alias '", alias,
                         "'; move the alias to another catalog, or delete it, "
                         "first"),
            kCatalogHasAlias),
        {{"catalog", found->first}, {"alias", alias}});
  }
  // Allocates first: the catalog is served until its removal is durable, and
  // after that nothing may fail.
  auto next = std::make_shared<Catalogs>(*now);
  next->erase(found->first);
  ATTENDANT_FAIL_POINT_OR_RETURN("drop.before_record");
  ATTENDANT_RETURN_IF_ERROR(store_->RemoveRecord(found->first));
  ATTENDANT_FAIL_POINT("drop.after_record");
  catalogs_.Store(std::move(next));
  return found->second;
}

bool CatalogSet::Uses(const Entry& entry, const ModelName& model) {
  const auto names_it = [&](const KeyFieldSchema& field) {
    return field.model == model;
  };
  const CatalogRecord record =
      entry.catalog != nullptr ? entry.catalog->record() : entry.damaged_record;
  if (std::ranges::any_of(record.schema.key_fields, names_it)) {
    return true;
  }
  return entry.catalog != nullptr && entry.catalog->MayUse(model);
}

absl::Status CatalogSet::DeleteModel(const ModelName& name) {
  // Under the lock, so that no catalog starts to use the model.
  MutexLock lock(&mutex_);
  const std::shared_ptr<const Catalogs> now = catalogs_.Load();
  for (const auto& [catalog_name, entry] : *now) {
    if (!Uses(entry, name)) continue;
    return WithDetails(
        StatusWithReason(
            absl::StatusCode::kFailedPrecondition,
            absl::StrCat("catalog '", catalog_name, "' uses version ",
                         name.version, " of model '", name.name,
                         "'; give it another, or delete it first"),
            "MODEL_IN_USE"),
        {{"catalog", catalog_name},
         {"model", name.name},
         {"version", absl::StrCat(name.version)}});
  }
  return models_->Delete(name);
}

std::map<std::string, absl::Status> CatalogSet::damages() const {
  const std::shared_ptr<const Catalogs> now = catalogs_.Load();
  std::map<std::string, absl::Status> damages;
  for (const auto& [name, entry] : *now) {
    if (!entry.damage.ok()) damages[name] = entry.damage;
  }
  return damages;
}

}  // namespace attendant
