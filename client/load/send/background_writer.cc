#include "client/load/send/background_writer.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <utility>

#include "client/api/grpc_status.h"
#include "client/api/importer.h"
#include "client/api/wire_vector.h"
#include "client/load/requests/requests.h"

namespace attendant {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kTick(10);

}  // namespace

double WriterResult::stored_per_second() const {
  return static_cast<double>(stored_count) / absl::ToDoubleSeconds(duration);
}

v1::Item ItemToWrite(const WriterOptions& options, std::int64_t i) {
  v1::Item item;
  const auto turn = static_cast<std::size_t>(i);
  const auto& existing = options.existing_ids;
  const bool is_new = existing.empty() || i % 2 == 1;
  item.set_id(is_new ? WrittenItemId(options.seed, i)
                     : existing[turn / 2 % existing.size()]);
  std::vector<float> key = options.keys[turn % options.keys.size()];
  const std::vector<float>& noise =
      options.noises[turn % options.noises.size()];
  std::transform(key.begin(), key.end(), noise.begin(), key.begin(),
                 std::plus<>());
  (*item.mutable_keys())[options.key_field] = ToVector(key);
  return item;
}

BackgroundWriter::BackgroundWriter(Client* client, WriterOptions options)
    : client_(client),
      options_(std::move(options)),
      thread_([this] { Run(); }) {}

BackgroundWriter::~BackgroundWriter() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

WriterResult BackgroundWriter::Stop() {
  stopping_ = true;
  thread_.join();
  return std::move(result_);
}

void BackgroundWriter::Run() {
  ImportOptions import;
  import.stall_timeout = options_.timeout;
  // Items due at a tick are sent together.
  import.batch_item_count = std::max<std::int64_t>(
      1,
      std::min<std::int64_t>(
          import.batch_item_count,
          static_cast<std::int64_t>(
              options_.rate * std::chrono::duration<double>(kTick).count())));
  const std::unique_ptr<Importer> importer =
      client_->StartImport(options_.catalog, import);
  const SteadyClock::time_point start = SteadyClock::now();
  SteadyClock::time_point tick = start;
  const auto due = [&] {
    const std::chrono::duration<double> passed = SteadyClock::now() - start;
    return static_cast<std::int64_t>(options_.rate * passed.count());
  };
  // Otherwise they would be held back until the end.
  const auto take_failures = [&] {
    for (const v1::ImportFailure& failure : importer->TakeFailures()) {
      if (!result_.first_refusal.ok()) continue;
      result_.first_refusal = FromRpcStatus(failure.status());
    }
  };
  while (!stopping_ && result_.status.ok()) {
    for (const std::int64_t until = due();
         result_.sent_count < until && result_.status.ok() && !stopping_;) {
      result_.status = importer->Add(ItemToWrite(options_, result_.sent_count));
      ++result_.sent_count;
      take_failures();
    }
    tick += kTick;
    std::this_thread::sleep_until(tick);
  }
  result_.due_count = due();
  const absl::Status finished = importer->Finish();
  take_failures();
  if (result_.status.ok()) result_.status = finished;
  result_.duration = absl::FromChrono(SteadyClock::now() - start);
  result_.stored_count = importer->progress().stored_count;
  result_.refused_count = importer->progress().refused_count;
}

}  // namespace attendant
