// The gRPC services: which worker pool and handler each method goes to.
//
// Raw methods, so that bytes which don't parse get INVALID_ARGUMENT from us;
// gRPC's own answer would be UNIMPLEMENTED.
#ifndef ATTENDANT_SERVICE_SERVICES_H_
#define ATTENDANT_SERVICE_SERVICES_H_

#include <grpcpp/impl/service_type.h>

#include <memory>
#include <vector>

#include "service/calls/backend.h"
#include "service/queue/worker_pool.h"

namespace attendant {

// Apart, so that neither queries nor writes that wait for the disk keep the
// others from their turn.
struct WorkerPools {
  WorkerPool* attend = nullptr;  // queries: as many threads as cores
  WorkerPool* write = nullptr;   // writes: mostly waiting for the disk
  WorkerPool* read = nullptr;    // descriptions and reads of items
  // What takes seconds to minutes: snapshots are made, verified and restored.
  WorkerPool* long_work = nullptr;
};

// The services, which keep references to the arguments.
std::vector<std::unique_ptr<grpc::Service>> MakeServices(
    Backend& backend, const WorkerPools& pools);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_SERVICES_H_
