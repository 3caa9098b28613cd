// Cost of a request without gRPC, on one thread: from the bytes of an
// AttendRequest to those of its reply, the ten best items of small catalogs.
// Items are a normalised mixture of 20 Gaussians, and queries come from the
// same distribution. Arguments: items, dimensions, requests that share their
// passes.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/api/wire_vector.h"
#include "core/catalog/live/catalog_set.h"
#include "service/calls/backend.h"
#include "service/convert/wire.h"
#include "service/handlers/attend_jobs.h"

namespace attendant {
namespace {

constexpr int kClusterCount = 20;
constexpr int kQueryCount = 1024;

// Unit vectors near one of a few centres.
class Mixture {
 public:
  explicit Mixture(std::int64_t dim) {
    for (std::vector<float>& centre : centres_) {
      centre.resize(static_cast<std::size_t>(dim));
      for (float& component : centre) component = normal_(random_);
    }
  }
  std::vector<float> Next() {
    std::vector<float> key = centres_[random_() % kClusterCount];
    double squares = 0;
    for (float& component : key) {
      component += normal_(random_);
      squares += component * component;
    }
    for (float& component : key) {
      component /= static_cast<float>(std::sqrt(squares));
    }
    return key;
  }

 private:
  std::mt19937_64 random_{7};
  std::normal_distribution<float> normal_;
  std::vector<float> centres_[kClusterCount];
};

template <typename T>
T OrAbort(absl::StatusOr<T> value) {
  if (!value.ok()) std::abort();
  return *std::move(value);
}

// The requirements that a request states.
struct Wanted {
  std::optional<double> recall = {};
  std::optional<double> mass_precision = {};
};

// A catalog for each kind of index, in a directory that is removed with the
// object.
class Served {
 public:
  Served(std::int64_t item_count, std::int64_t dim)
      : item_count_(item_count), dim_(dim) {
    std::filesystem::create_directory(directory_);
    catalogs_ = OrAbort(CatalogSet::Open(directory_, {}));
    Mixture mixture(dim);
    std::vector<Item> items;
    for (std::int64_t i = 0; i < item_count; ++i) {
      Item& item = items.emplace_back();
      item.id = absl::StrCat("item-", i);
      item.keys.emplace_back(mixture.Next());
    }
    for (const IndexKind kind : {IndexKind::kFlat, IndexKind::kIvf}) {
      CatalogSchema schema;
      schema.key_fields.push_back({.name = "key", .dim = dim});
      schema.key_fields[0].index_kind = kind;
      const auto created = OrAbort(catalogs_->Create(NameOf(kind), schema, {}));
      OrAbort(created.catalog->Upsert(items, ""));
      created.catalog->AwaitIndexes();
    }
    for (int q = 0; q < kQueryCount; ++q) queries_.push_back(mixture.Next());
    backend_.emplace(catalogs_.get(), std::int64_t{4} << 20);
  }
  ~Served() {
    backend_.reset();
    catalogs_.reset();
    std::filesystem::remove_all(directory_);
  }

  std::int64_t item_count() const { return item_count_; }
  std::int64_t dim() const { return dim_; }
  Backend& backend() { return *backend_; }

  std::vector<grpc::ByteBuffer> Requests(IndexKind kind,
                                         const Wanted& wanted) const {
    std::vector<grpc::ByteBuffer> requests;
    for (const std::vector<float>& query : queries_) {
      v1::AttendRequest request;
      request.set_catalog(NameOf(kind));
      request.set_result_count(10);
      if (wanted.recall) request.set_recall(*wanted.recall);
      if (wanted.mass_precision) {
        request.set_mass_precision(*wanted.mass_precision);
      }
      *request.mutable_query()->mutable_vector() = ToVector(query);
      const grpc::Slice slice(request.SerializeAsString());
      requests.emplace_back(&slice, 1);
    }
    return requests;
  }

 private:
  static std::string NameOf(IndexKind kind) {
    return kind == IndexKind::kFlat ? "flat" : "ivf";
  }

  const std::int64_t item_count_;
  const std::int64_t dim_;
  const std::string directory_ = (std::filesystem::temp_directory_path() /
                                  absl::StrCat("request_benchmark_", getpid()))
                                     .string();
  std::unique_ptr<CatalogSet> catalogs_;
  std::vector<std::vector<float>> queries_;
  std::optional<Backend> backend_;
};

// Holds one at a time. It must be destroyed before RocksDB's process-wide
// state.
std::unique_ptr<Served>& ServedNow() {
  static std::unique_ptr<Served> served;
  return served;
}

void BM_Request(benchmark::State& state, IndexKind kind, const Wanted& wanted) {
  std::unique_ptr<Served>& served = ServedNow();
  if (served == nullptr || served->item_count() != state.range(0) ||
      served->dim() != state.range(1)) {
    served.reset();
    served = std::make_unique<Served>(state.range(0), state.range(1));
  }
  Backend& backend = served->backend();
  const std::vector<grpc::ByteBuffer> requests = served->Requests(kind, wanted);
  const std::size_t together = static_cast<std::size_t>(state.range(2));
  std::size_t next = 0;
  for (auto _ : state) {
    google::protobuf::Arena arena;
    std::vector<AttendJob> jobs;
    std::vector<CallTrace> traces(together);
    const Interrupt interrupt;
    for (std::size_t j = 0; j < together; ++j) {
      auto* message =
          google::protobuf::Arena::CreateMessage<v1::AttendRequest>(&arena);
      if (!ParseMessage(requests[next++ % requests.size()], message).ok()) {
        std::abort();
      }
      jobs.push_back(
          {message, &interrupt, &backend.max_message_bytes,
           google::protobuf::Arena::CreateMessage<v1::AttendResponse>(&arena),
           &traces[j]});
    }
    const auto catalog =
        OrAbort(FindCatalog(backend, jobs[0].request->catalog(), "catalog"));
    AnswerJobs(backend, *catalog->snapshot(), jobs,
               [&](std::size_t job, const absl::Status& status) {
                 grpc::ByteBuffer reply;
                 if (!status.ok() ||
                     !SerialiseMessage(*jobs[job].response,
                                       backend.max_message_bytes, &reply)
                          .ok()) {
                   std::abort();
                 }
               });
  }
  state.SetItemsProcessed(state.iterations() * state.range(2));
}

void Shapes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"items", "dim", "together"});
  for (const std::int64_t dim : {16, 64, 256, 768}) {
    for (const std::int64_t items : {2000, 5000, 10000, 20000, 50000}) {
      for (const std::int64_t together : {1, 16}) {
        benchmark->Args({items, dim, together});
      }
    }
  }
}

BENCHMARK_CAPTURE(BM_Request, flat, IndexKind::kFlat, Wanted{})->Apply(Shapes);
BENCHMARK_CAPTURE(BM_Request, ivf, IndexKind::kIvf, Wanted{})->Apply(Shapes);
BENCHMARK_CAPTURE(BM_Request, ivf_recall_99, IndexKind::kIvf,
                  Wanted{.recall = .99})
    ->Apply(Shapes);
BENCHMARK_CAPTURE(BM_Request, ivf_recall_1, IndexKind::kIvf,
                  Wanted{.recall = 1})
    ->Apply(Shapes);
BENCHMARK_CAPTURE(BM_Request, ivf_precision_02, IndexKind::kIvf,
                  Wanted{.mass_precision = .02})
    ->Apply(Shapes);

}  // namespace

void EndServed() { ServedNow().reset(); }

}  // namespace attendant

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  attendant::EndServed();
  return 0;
}
