#include "service/watches/reset_watch.h"

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

// A call's context, with its links in the list of known calls.
struct KnownContext final : grpc::CallbackServerContext, KnownCalls::Call {};

// Reports whose call has arrived, if calls are counted by connection.
void ArriveFrom(const grpc::ServerContextBase& context,
                ArrivalWatch& arrivals) {
  if (!arrivals.is_counting()) return;
  const auto connection = context.auth_context();
  if (connection != nullptr) arrivals.ArriveFrom(*connection);
}

}  // namespace

class ResetWatch::Contexts final : public grpc::ContextAllocator {
 public:
  explicit Contexts(ResetWatch& watch) : watch_(watch) {}

  grpc::CallbackServerContext* NewCallbackServerContext() override {
    Begin();
    return new KnownContext;
  }
  void Release(grpc::CallbackServerContext* context) override {
    // Also called for calls of unknown methods.
    auto* const call = dynamic_cast<KnownContext*>(context);
    if (call != nullptr) watch_.known_calls_.Remove(*call);
    delete context;
    End();
  }

  // For unknown methods, which gRPC answers itself.
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
    watch_.call_count_.fetch_add(1);
    // Sleep on the thread that reads the connection, so that other threads can
    // catch up.
    if (watch_.cancelled_count_.load() < watch_.MostCalls()) return;
    watch_.pause_count_.fetch_add(1);
    absl::SleepFor(kPause);
  }
  void End() { watch_.call_count_.fetch_sub(1); }

  ResetWatch& watch_;
};

// Observes one call that began while gRPC had too many.
class ResetWatch::Witness final : public grpc::experimental::Interceptor {
 public:
  Witness(ResetWatch& watch, grpc::ServerContextBase& context)
      : watch_(watch), context_(context), peer_(context.peer()) {
    watch_.CountOpen(peer_, 1, SteadyNow());
  }
  ~Witness() override {
    watch_.CountOpen(peer_, -1, SteadyNow());
    if (is_cancelled_) watch_.cancelled_count_.fetch_sub(1);
  }

  void Intercept(
      grpc::experimental::InterceptorBatchMethods* methods) override {
    using grpc::experimental::InterceptionHookPoints;
    // Counted as soon as the reset was read: gRPC ends the call later, as long
    // as there is more to read.
    if (methods->QueryInterceptionHookPoint(
            InterceptionHookPoints::POST_RECV_CLOSE) &&
        context_.IsCancelled()) {
      is_cancelled_ = true;
      watch_.cancelled_count_.fetch_add(1);
      watch_.CountCancelled(peer_, SteadyNow());
    }
    methods->Proceed();
  }

 private:
  ResetWatch& watch_;
  grpc::ServerContextBase& context_;
  const std::string peer_;
  bool is_cancelled_ = false;
};

// Observes one call of gRPC's synchronous reflection, which Contexts does not
// see. It counts as arrived once a reply is sent: a call that was reset has no
// reply, and gRPC may still hold its memory; nor has a call that was refused.
// Whether it is cancelled can't be queried when it ends: gRPC would end it
// again.
class ResetWatch::Reflection final : public grpc::experimental::Interceptor {
 public:
  Reflection(ArrivalWatch& arrivals, const grpc::ServerContext& context)
      : arrivals_(arrivals), context_(context) {}

  void Intercept(
      grpc::experimental::InterceptorBatchMethods* methods) override {
    using grpc::experimental::InterceptionHookPoints;
    if (!has_come_ &&
        methods->QueryInterceptionHookPoint(
            InterceptionHookPoints::POST_SEND_MESSAGE) &&
        methods->GetSendMessageStatus()) {
      has_come_ = true;
      arrivals_.Arrive();
      ArriveFrom(context_, arrivals_);
    }
    methods->Proceed();
  }

 private:
  ArrivalWatch& arrivals_;
  const grpc::ServerContext& context_;
  bool has_come_ = false;
};

class ResetWatch::Witnesses final
    : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit Witnesses(ResetWatch& watch) : watch_(watch) {}

  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* info) override {
    grpc::ServerContextBase& context = *info->server_context();
    // The context of a synchronous call does not know its connection yet.
    auto* const synchronous = dynamic_cast<grpc::ServerContext*>(&context);
    if (synchronous != nullptr) {
      return new Reflection(watch_.arrivals_, *synchronous);
    }
    ArriveFrom(context, watch_.arrivals_);
    auto* const call = dynamic_cast<KnownContext*>(&context);
    if (call != nullptr) watch_.known_calls_.Add(*call, context);
    return watch_.HasTooMany() ? new Witness(watch_, context) : nullptr;
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
    // gRPC ends a call slightly before the server is notified.
    const bool too_many = more > 0 && open->second == 2 * max_stream_count_ + 1;
    if (open->second == 0) open_counts_.erase(open);
    if (!too_many) return;
  }
  DropPeer(peer, "more calls than allowed at once", now);
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
