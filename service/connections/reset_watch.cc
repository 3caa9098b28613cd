#include "service/connections/reset_watch.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/support/server_interceptor.h>

#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "service/log/log.h"

namespace attendant {
namespace {

constexpr absl::Duration kPause = absl::Microseconds(200);

}  // namespace

class ResetWatch::Contexts final : public grpc::ContextAllocator {
 public:
  explicit Contexts(ResetWatch& watch) : watch_(watch) {}

  grpc::CallbackServerContext* NewCallbackServerContext() override {
    Begin();
    return new grpc::CallbackServerContext;
  }
  void Release(grpc::CallbackServerContext* context) override {
    delete context;
    End();
  }

  // Of methods that there are not.
  grpc::GenericCallbackServerContext* NewGenericCallbackServerContext()
      override {
    Begin();
    return new grpc::GenericCallbackServerContext;
  }
  void Release(grpc::GenericCallbackServerContext* context) override {
    delete context;
    End();
  }

 private:
  void Begin() {
    watch_.arrivals_.Arrive();
    // On the thread that reads the connection: the others are to keep up.
    if (watch_.call_count_.fetch_add(1) >= 2 * watch_.MostCalls()) {
      absl::SleepFor(kPause);
    }
  }
  void End() { watch_.call_count_.fetch_sub(1); }

  ResetWatch& watch_;
};

// Of one call that began while gRPC had too many.
class ResetWatch::Witness final : public grpc::experimental::Interceptor {
 public:
  Witness(ResetWatch& watch, grpc::ServerContextBase& context)
      : watch_(watch), context_(context), peer_(context.peer()) {
    watch_.CountOpen(peer_, 1, SteadyNow());
  }
  ~Witness() override { watch_.CountOpen(peer_, -1, SteadyNow()); }

  void Intercept(
      grpc::experimental::InterceptorBatchMethods* methods) override {
    using grpc::experimental::InterceptionHookPoints;
    // As soon as the reset was read: to end the call takes gRPC longer, for as
    // long as there is more to read.
    if (methods->QueryInterceptionHookPoint(
            InterceptionHookPoints::POST_RECV_CLOSE) &&
        context_.IsCancelled()) {
      watch_.CountCancelled(peer_, SteadyNow());
    }
    methods->Proceed();
  }

 private:
  ResetWatch& watch_;
  grpc::ServerContextBase& context_;
  const std::string peer_;
};

class ResetWatch::Witnesses final
    : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit Witnesses(ResetWatch& watch) : watch_(watch) {}

  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* info) override {
    if (watch_.arrivals_.is_counting()) {
      watch_.arrivals_.ArriveFrom(*info->server_context()->auth_context());
    }
    if (!watch_.HasTooMany()) return nullptr;
    return new Witness(watch_, *info->server_context());
  }

 private:
  ResetWatch& watch_;
};

void ResetWatch::Attach(grpc::ServerBuilder& builder) {
  builder.SetContextAllocator(std::make_unique<Contexts>(*this));
  std::vector<
      std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>>
      creators;
  creators.push_back(std::make_unique<Witnesses>(*this));
  builder.experimental().SetInterceptorCreators(std::move(creators));
}

void ResetWatch::CountCancelled(const std::string& peer, SteadyTime now) {
  {
    MutexLock lock(&mutex_);
    if (now >= second_end_) {
      second_end_ = now + std::chrono::seconds(1);
      cancelled_counts_.clear();
    }
    if (++cancelled_counts_[peer] != max_stream_count_ + 1) return;
  }
  DropPeer(peer, "calls reset faster than they can be ended", now);
}

void ResetWatch::CountOpen(const std::string& peer, int more, SteadyTime now) {
  {
    MutexLock lock(&mutex_);
    const auto open = open_counts_.try_emplace(peer, 0).first;
    open->second += more;
    // gRPC ends a call a little before we are told.
    const bool too_many = more > 0 && open->second == 2 * max_stream_count_ + 1;
    if (open->second == 0) open_counts_.erase(open);
    if (!too_many) return;
  }
  DropPeer(peer, "more calls than it may have at once", now);
}

void ResetWatch::DropPeer(const std::string& peer, absl::string_view reason,
                          SteadyTime now) {
  flood_end_.store(now + std::chrono::seconds(1));
  dropped_count_.fetch_add(1);
  if (drop_) drop_(peer);
  const std::optional<std::int64_t> dropped = logged_.Admit(now);
  if (!dropped.has_value()) return;
  LogEvent(LogLevel::kWarning, "connection_dropped",
           {{"reason", std::string(reason)},
            {"peer", peer},
            {"calls", LogValue::Json(absl::StrCat(call_count()))},
            {"not_logged_before", LogValue::Json(absl::StrCat(*dropped))}});
}

}  // namespace attendant
