// Statistics of a catalog's database.
#ifndef ATTENDANT_CORE_STORAGE_RECORDS_STORE_FIGURES_H_
#define ATTENDANT_CORE_STORAGE_RECORDS_STORE_FIGURES_H_

#include <cstdint>

namespace attendant {

// Figures that RocksDB reports for a catalog's database; 0 if unavailable.
struct StoreFigures {
  std::int64_t write_buffer_bytes = 0;
  std::int64_t table_reader_bytes = 0;  // indexes and filters, in memory
  std::int64_t table_bytes = 0;         // on disk, in use
  std::int64_t level0_table_count = 0;
  std::int64_t compaction_backlog_bytes = 0;  // estimate of what is to be
                                              // rewritten
  std::int64_t background_error_count = 0;    // since it was opened
  bool writes_stopped = false;                // until a flush or compaction

  std::int64_t memory_bytes() const {
    return write_buffer_bytes + table_reader_bytes;
  }
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_RECORDS_STORE_FIGURES_H_
