// The gRPC services: maps each method to a worker pool and a handler.
//
// Uses raw methods, so that requests which cannot be parsed get
// INVALID_ARGUMENT; gRPC itself would answer UNIMPLEMENTED.
#ifndef ATTENDANT_SERVICE_SERVICES_H_
#define ATTENDANT_SERVICE_SERVICES_H_

#include <grpcpp/impl/service_type.h>

#include <memory>
#include <vector>

#include "service/calls/backend.h"
#include "service/queue/worker_pool.h"

namespace attendant {

// Separate pools, so that neither queries nor writes that wait for the disk
// delay the other kinds of work.
struct WorkerPools {
  WorkerPool* attend = nullptr;  // queries: as many threads as cores
  WorkerPool* write = nullptr;   // writes: mostly waiting for the disk
  WorkerPool* sweep = nullptr;   // deletes by filter: reading all items
  WorkerPool* read = nullptr;    // descriptions, and reads and lists of items
  // Work that takes seconds to minutes: creating, verifying and restoring
  // snapshots.
  WorkerPool* long_work = nullptr;
};

// Creates the services, which keep references to the arguments.
std::vector<std::unique_ptr<grpc::Service>> MakeServices(
    Backend& backend, const WorkerPools& pools);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_SERVICES_H_
