#include "client/load/requests/requests.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "client/api/batches.h"
#include "client/api/wire_vector.h"
#include "client/files/input.h"
#include "client/files/jsonl.h"
#include "client/files/vector_file.h"
#include "client/load/requests/queries.h"
#include "core/base/status.h"

namespace attendant {
namespace {

constexpr char kAttendMethod[] = "/attendant.v1.AttentionService/Attend";
constexpr char kUpsertMethod[] = "/attendant.v1.ItemService/BatchUpsertItems";

// The number of different requests of a kind, after which they repeat.
constexpr std::int64_t kPoolSize = 4096;
// The most examples of a query.
constexpr std::int64_t kMaxExamples = 5;
// The longest text in a condition, in bytes: a filter may have 16,384.
constexpr std::size_t kMaxConditionBytes = 1024;

grpc::ByteBuffer ToBytes(const google::protobuf::MessageLite& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

// Serialized requests, which are made once and sent in turns.
RequestMix::Make Pool(const std::vector<v1::AttendRequest>& requests) {
  auto pool = std::make_shared<std::vector<grpc::ByteBuffer>>();
  for (const v1::AttendRequest& request : requests) {
    pool->push_back(ToBytes(request));
  }
  return [pool](std::int64_t index) {
    return (*pool)[static_cast<std::size_t>(index) % pool->size()];
  };
}

std::string Quoted(absl::string_view text) {
  return absl::StrCat(
      "\"", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}}), "\"");
}

bool IsPlainName(absl::string_view name) {
  return !name.empty() && !absl::ascii_isdigit(name[0]) &&
         std::ranges::all_of(
             name, [](char c) { return absl::ascii_isalnum(c) || c == '_'; });
}

// Returns "" for a long text, which may exceed a filter's limit.
std::string TextConditionOf(absl::string_view name, absl::string_view relation,
                            absl::string_view text) {
  if (text.size() > kMaxConditionBytes) return "";
  return absl::StrCat(name, relation, Quoted(text));
}

// Returns a condition that the value fulfils; "" if there is none.
std::string ConditionOf(absl::string_view name,
                        const v1::AttributeValue& value) {
  switch (value.kind_case()) {
    case v1::AttributeValue::kBoolValue:
      return absl::StrCat(name, " = ", value.bool_value() ? "true" : "false");
    case v1::AttributeValue::kInt64Value:
      return absl::StrCat(name, " <= ", value.int64_value());
    case v1::AttributeValue::kDoubleValue:
      return absl::StrFormat("%s <= %.17g", name, value.double_value());
    case v1::AttributeValue::kStringValue:
      return TextConditionOf(name, " = ", value.string_value());
    case v1::AttributeValue::kStringListValue:
      if (value.string_list_value().values().empty()) return "";
      return TextConditionOf(name, ":", value.string_list_value().values(0));
    case v1::AttributeValue::kTimestampValue: {
      // Filters compare times in microseconds.
      const absl::Time time =
          absl::FromUnixMicros(value.timestamp_value().seconds() * 1'000'000 +
                               value.timestamp_value().nanos() / 1000);
      return absl::StrCat(name, " >= ",
                          Quoted(absl::FormatTime("%E4Y-%m-%dT%H:%M:%E6SZ",
                                                  time, absl::UTCTimeZone())));
    }
    case v1::AttributeValue::KIND_NOT_SET:
      break;
  }
  return "";
}

// Makes requests from the catalog's items, which are read on first use.
class Maker {
 public:
  Maker(Client& client, const RequestOptions& options)
      : client_(client), options_(options) {}

  absl::StatusOr<std::vector<v1::AttendRequest>> Queries() {
    std::vector<v1::AttendRequest> requests = options_.queries;
    if (requests.empty()) {
      ATTENDANT_ASSIGN_OR_RETURN(const auto vectors, Vectors(options_.noise));
      for (const std::vector<float>& vector : vectors) {
        *requests.emplace_back().mutable_query()->mutable_vector() =
            ToVector(vector);
      }
    }
    for (v1::AttendRequest& request : requests) Complete(request);
    return requests;
  }

  absl::StatusOr<std::vector<v1::AttendRequest>> Examples() {
    ATTENDANT_ASSIGN_OR_RETURN(const std::vector<v1::Item>* items, Items());
    std::vector<v1::AttendRequest> requests;
    const auto count = static_cast<std::int64_t>(items->size());
    for (std::int64_t i = 0; i < count; ++i) {
      v1::AttendRequest& request = requests.emplace_back();
      v1::Examples* examples = request.mutable_query()->mutable_examples();
      const std::int64_t example_count = std::min(count, 1 + i % kMaxExamples);
      for (std::int64_t e = 0; e < example_count; ++e) {
        examples->add_examples()->set_id((*items)[(i + e) % count].id());
      }
      Complete(request);
    }
    return requests;
  }

  absl::StatusOr<std::vector<v1::AttendRequest>> Filtered() {
    std::vector<std::string> filters = options_.filters;
    if (filters.empty()) {
      ATTENDANT_ASSIGN_OR_RETURN(const std::vector<v1::Item>* items, Items());
      for (std::size_t i = 0; i < items->size(); ++i) {
        std::string filter = FilterOf((*items)[i], i);
        if (!filter.empty()) filters.push_back(std::move(filter));
      }
    }
    if (filters.empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat("catalog ", options_.catalog, " has no item with an ",
                       "attribute to make filters of: give some"));
    }
    ATTENDANT_ASSIGN_OR_RETURN(std::vector<v1::AttendRequest> requests,
                               Queries());
    for (std::size_t i = 0; i < requests.size(); ++i) {
      requests[i].clear_filter_expression();
      requests[i].set_filter(filters[i % filters.size()]);
    }
    return requests;
  }

  absl::StatusOr<RequestMix::Make> Writes() {
    ATTENDANT_ASSIGN_OR_RETURN(std::vector<std::vector<float>> keys,
                               Vectors(/*noise=*/0.2));
    return [options = options_, keys = std::move(keys)](std::int64_t index) {
      return ToBytes(WriteRequest(options, keys, index));
    };
  }

 private:
  absl::StatusOr<const std::vector<v1::Item>*> Items() {
    if (items_.empty()) {
      ATTENDANT_ASSIGN_OR_RETURN(items_, SampleItems(client_, options_.catalog,
                                                     kPoolSize, options_.seed));
    }
    if (items_.empty()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "catalog ", options_.catalog, " has no items to make queries of"));
    }
    return &items_;
  }

  absl::StatusOr<std::vector<std::vector<float>>> Vectors(double noise) {
    return SampleQueries(client_, {.catalog = options_.catalog,
                                   .key_field = options_.key_field,
                                   .max_count = kPoolSize,
                                   .noise = noise,
                                   .seed = options_.seed});
  }

  // Sets the fields that the request leaves unset.
  void Complete(v1::AttendRequest& request) const {
    if (request.catalog().empty()) request.set_catalog(options_.catalog);
    if (request.key_field().empty() && request.heads().empty()) {
      request.set_key_field(options_.key_field);
    }
    if (!request.has_result_count()) {
      request.set_result_count(options_.result_count);
    }
  }

  Client& client_;
  const RequestOptions& options_;
  std::vector<v1::Item> items_;
};

}  // namespace

absl::StatusOr<std::vector<v1::AttendRequest>> ReadQueries(
    const std::string& path) {
  std::vector<v1::AttendRequest> requests;
  if (absl::EndsWith(path, ".jsonl")) {
    ATTENDANT_RETURN_IF_ERROR(
        ReadJsonLines(path, [&](std::int64_t, const nlohmann::json& object) {
          const auto status = google::protobuf::util::JsonStringToMessage(
              object.dump(), &requests.emplace_back());
          return status.ok() ? absl::OkStatus()
                             : absl::InvalidArgumentError(
                                   absl::StrCat("not an AttendRequest: ",
                                                std::string(status.message())));
        }));
  } else if (!IsVectorFile(path)) {
    return FileError(path,
                     "the name ends neither in .npy, .fvecs, .txt, .csv nor "
                     ".jsonl");
  } else {
    ATTENDANT_ASSIGN_OR_RETURN(const std::unique_ptr<VectorFile> file,
                               OpenVectorFile(path));
    std::vector<float> query(static_cast<std::size_t>(file->dim()));
    for (std::int64_t row = 0; row < file->row_count(); ++row) {
      ATTENDANT_RETURN_IF_ERROR(file->ReadRow(row, query));
      *requests.emplace_back().mutable_query()->mutable_vector() =
          ToVector(query);
    }
  }
  if (requests.empty()) return FileError(path, "holds no row");
  return requests;
}

std::string FilterOf(const v1::Item& item, std::uint64_t draw) {
  std::map<std::string, std::string> conditions;
  for (const auto& [name, value] : item.attributes()) {
    if (!IsPlainName(name)) continue;
    std::string condition = ConditionOf(name, value);
    if (!condition.empty()) conditions[name] = std::move(condition);
  }
  if (conditions.empty()) return "";
  return std::next(conditions.begin(),
                   static_cast<std::ptrdiff_t>(draw % conditions.size()))
      ->second;
}

std::string WrittenItemId(std::uint64_t seed, std::int64_t number) {
  return absl::StrCat("load-", seed, "-", number);
}

v1::BatchUpsertItemsRequest WriteRequest(
    const RequestOptions& options, const std::vector<std::vector<float>>& keys,
    std::int64_t index) {
  v1::BatchUpsertItemsRequest request;
  request.set_catalog(options.catalog);
  for (int i = 0; i < options.write_item_count; ++i) {
    const std::int64_t number = index * options.write_item_count + i;
    v1::Item* item = request.add_items();
    item->set_id(WrittenItemId(options.seed, number % kWrittenItemCount));
    (*item->mutable_keys())[options.key_field] =
        ToVector(keys[static_cast<std::size_t>(number) % keys.size()]);
  }
  return request;
}

absl::StatusOr<std::int64_t> DeleteWrittenItems(Client& client,
                                                const RequestOptions& options,
                                                std::int64_t count) {
  std::int64_t deleted_count = 0;
  const auto erase = [&](std::int64_t begin, std::int64_t end) -> absl::Status {
    v1::BatchDeleteItemsRequest request;
    request.set_catalog(options.catalog);
    for (std::int64_t i = begin; i < end; ++i) {
      request.add_ids(WrittenItemId(options.seed, i));
    }
    ATTENDANT_ASSIGN_OR_RETURN(const v1::BatchDeleteItemsResponse response,
                               client.BatchDeleteItems(std::move(request)));
    deleted_count += response.deleted_count();
    return absl::OkStatus();
  };
  std::int64_t before = -1;
  for (std::int64_t begin = count; deleted_count > before;
       begin += kMaxBatchSize) {
    before = deleted_count;
    ATTENDANT_RETURN_IF_ERROR(SendInBatches(
        kMaxBatchSize, [&](std::int64_t from, std::int64_t to) -> absl::Status {
          return erase(begin + from, begin + to);
        }));
  }
  // Deletes from the end: if this load is killed here, the items left have no
  // gap at which the next load would stop looking for more.
  ATTENDANT_RETURN_IF_ERROR(SendInBatches(
      count, [&](std::int64_t begin, std::int64_t end) -> absl::Status {
        return erase(count - end, count - begin);
      }));
  return deleted_count;
}

absl::StatusOr<RequestMix> MakeRequests(Client& client,
                                        const RequestOptions& options) {
  Maker maker(client, options);
  RequestMix mix(options.seed);
  for (const MixShare& part : options.mix) {
    RequestMix::Make make;
    if (part.kind == kWriteKind) {
      ATTENDANT_ASSIGN_OR_RETURN(make, maker.Writes());
    } else {
      ATTENDANT_ASSIGN_OR_RETURN(const auto requests,
                                 part.kind == kExamplesKind ? maker.Examples()
                                 : part.kind == kFilterKind ? maker.Filtered()
                                                            : maker.Queries());
      make = Pool(requests);
    }
    mix.Add(part.kind, part.share,
            part.kind == kWriteKind ? kUpsertMethod : kAttendMethod,
            std::move(make));
  }
  return mix;
}

}  // namespace attendant
