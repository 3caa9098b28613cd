#include "service/build_metrics.h"

#include <grpcpp/grpcpp.h>

#include <string>

#include "core/kernels/kernels.h"
#include "core/shortlist/builds/faiss_build.h"
#include "core/storage/rocks/rocksdb_build.h"

namespace attendant {

void AddBuildMetrics(MetricPage& page) {
  page.AddGauge("attendant_build_info",
                "1; the labels are the versions of the server and its "
                "libraries, and the kernels in use.",
                1,
                {{"version", ATTENDANT_VERSION},
                 {"kernels", std::string(KernelLevelName(ActiveKernelLevel()))},
                 {"compiler", __VERSION__},
                 {"faiss", FaissVersion()},
                 {"rocksdb", RocksDbVersion()},
                 {"grpc", grpc::Version()}});
}

}  // namespace attendant
