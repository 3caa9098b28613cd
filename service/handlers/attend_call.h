// An Attend call, which may be answered together with others that wait.
#ifndef ATTENDANT_SERVICE_HANDLERS_ATTEND_CALL_H_
#define ATTENDANT_SERVICE_HANDLERS_ATTEND_CALL_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <cstdint>

#include "attendant/v1/attention_service.pb.h"
#include "service/calls/backend.h"
#include "service/queue/light_queries.h"
#include "service/queue/worker_pool.h"

namespace attendant {

// Returns a hash of what determines how long a request of a group takes: the
// number of items wanted and how far it searches for them, each to a factor of
// 2, the score kind, and which masses and values it asks for.
std::uint64_t EffortOf(const v1::AttendRequest& request);

// Starts a call. gRPC owns the result.
//
// The worker that takes the call also takes waiting calls for the same catalog
// that can share its passes over the keys, and sends each reply as soon as it
// is ready. Calls never wait for others to arrive: if a worker is idle, a call
// runs at once, alone. Calls that read codes, calls that read every key from
// its floats, and calls that need separate processing (filters, draws, several
// heads) are never batched with each other, so that a light query waits for a
// heavy one no longer than the queue makes it.
//
// If a worker is free, a call that is known to be light is answered before this
// function returns, up to LightQueries::MostAtOnce at a time.
grpc::ServerUnaryReactor* StartAttendCall(Backend& backend, WorkerPool& pool,
                                          LightQueries& light_queries,
                                          grpc::CallbackServerContext* context,
                                          const grpc::ByteBuffer* request,
                                          grpc::ByteBuffer* response);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_HANDLERS_ATTEND_CALL_H_
