// An Attend call, which may be answered along with others that wait.
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

// A hash of what tells how long a request of a group takes: how many items it
// wants and how far it looks for them, to a factor of 2, by what it scores, and
// what it says of masses and values.
std::uint64_t EffortOf(const v1::AttendRequest& request);

// Starts a call. The result belongs to gRPC.
//
// The worker that takes the call takes along others that wait for the same
// catalog and can share its passes over the keys, and sends each its reply as
// soon as that is made. Nothing waits for others to come: with an idle worker
// every call runs at once, alone. What reads codes, what reads every key from
// its floats, and what takes a way of its own (filters, draws, several heads)
// are never taken along together, so that no light query waits for a heavy one
// longer than the queue makes it.
//
// Where a worker is free, a call that is known to be light is answered before
// the function returns, so many at a time (LightQueries::MostAtOnce).
grpc::ServerUnaryReactor* StartAttendCall(Backend& backend, WorkerPool& pool,
                                          LightQueries& light_queries,
                                          grpc::CallbackServerContext* context,
                                          const grpc::ByteBuffer* request,
                                          grpc::ByteBuffer* response);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_HANDLERS_ATTEND_CALL_H_
