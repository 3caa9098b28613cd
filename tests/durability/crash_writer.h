// One that writes to a server until that dies, and knows what must be there.
#ifndef ATTENDANT_TESTS_DURABILITY_CRASH_WRITER_H_
#define ATTENDANT_TESTS_DURABILITY_CRASH_WRITER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/durability/crash_server.h"

namespace attendant {

struct CrashItem {
  std::int64_t version = 0;  // the key
  std::int64_t note = 0;     // the attribute; 0: none

  bool operator==(const CrashItem&) const = default;
};
using CrashItems = std::map<std::string, CrashItem>;  // by id

// Has a catalog NAME, a copy of it that comes of snapshots, an alias that names
// one of the two, snapshots, and versions of a model: nobody else writes to
// them. Not thread-safe.
class CrashWriter {
 public:
  CrashWriter(std::string name, std::uint64_t seed)
      : name_(std::move(name)), random_(seed) {}

  // Until one write has no answer, or there were so many that a fail point that
  // did not kill the server is not among what they come by.
  void WriteUntilKilled(Connection& connection);

  // After a restart: all that was acknowledged is there, and the write that had
  // no answer or not. What can be repeated then is.
  void Check(Connection& connection);

  std::int64_t acknowledged_count() const { return acknowledged_count_; }

 private:
  using Items = CrashItems;

  // What the writer's part of the server holds.
  struct State {
    std::map<std::string, Items> catalogs;   // NAME, and the copy
    std::map<std::string, Items> snapshots;  // of NAME
    std::string target;                      // of the alias; empty: none
    std::set<std::int64_t> models;
    std::int64_t last_model = 0;  // also a deleted one: can't be read
    // Of the last write of NAME that has one, and of the NAME before this.
    std::string token;
    std::string stale_token;

    Items& items(const std::string& catalog) { return catalogs[catalog]; }
  };
  // As much of it as can be read.
  struct Found {
    std::map<std::string, Items> catalogs;
    std::map<std::string, std::int64_t> snapshots;  // how many items
    std::string target;
    std::set<std::int64_t> models;

    bool operator==(const Found&) const = default;
  };

  // One operation: what it asks for, and what it makes of a state.
  struct Operation {
    State after;
    // Sets the token of a write of items.
    std::function<grpc::Status(Connection&, std::string* token)> send;
    bool repeatable = false;  // the same again is the same, and OK
    grpc::StatusCode code = grpc::StatusCode::OK;
  };

  static Found Visible(const State& state);
  static std::string Text(const Found& found);
  std::string copy() const { return name_ + "-copy"; }
  std::string alias() const { return name_ + "-alias"; }

  // What there is, read with the token. Nothing if the server died meanwhile.
  std::optional<Found> Read(Connection& connection) const;
  bool ReadSnapshots(Connection& connection, Found& found) const;
  bool ReadModels(Connection& connection, Found& found) const;
  bool ReadAlias(Connection& connection, Found& found) const;
  void CheckTokens(Connection& connection) const;

  int Random(int count) { return static_cast<int>(random_() % count); }
  std::vector<std::string> RandomIds();
  // Of items that there are.
  std::vector<std::string> KnownIds();
  std::string RandomSnapshot();
  std::string NextRequestId();

  Operation Next();
  Operation Upsert();
  Operation InsertAbsent();
  Operation UpsertIfUnchanged();
  Operation Update();
  Operation Delete();
  Operation DeleteMatching();
  Operation CreateCatalog();
  Operation Drop();
  Operation DropCopy();
  Operation CreateModel();
  Operation DeleteModel();
  Operation TakeSnapshot();
  Operation DeleteSnapshot();
  Operation ImportSnapshot();
  Operation Restore();
  Operation PointAlias();
  Operation DeleteAlias();

  const std::string name_;
  std::mt19937_64 random_;
  State state_;
  std::optional<Operation> unanswered_;
  std::int64_t write_count_ = 0;
  std::int64_t request_count_ = 0;
  std::int64_t snapshot_count_ = 0;
  std::int64_t acknowledged_count_ = 0;
};

// Writes its own items to a catalog that others write theirs to at the same
// time, so that writes of several share a sync, and a kill cuts it. Not
// thread-safe.
class CrashSharer {
 public:
  // Names: of the catalog, and what its ids begin with.
  CrashSharer(std::string catalog, std::string name, std::uint64_t seed)
      : catalog_(std::move(catalog)), name_(std::move(name)), random_(seed) {}

  // As of CrashWriter.
  void WriteUntilKilled(Connection& connection);
  void Check(Connection& connection);
  std::int64_t acknowledged_count() const { return acknowledged_count_; }

 private:
  using Versions = std::map<std::string, std::int64_t>;  // by id

  struct Write {
    std::string request_id;
    Versions upserts;
    std::vector<std::string> deletes;  // in place of upserts
  };

  Write Next();
  grpc::Status Send(Connection& connection, const Write& write,
                    std::string* token) const;
  static void Apply(const Write& write, Versions& versions);
  // Of its own items.
  Versions Read(Connection& connection) const;

  const std::string catalog_;
  const std::string name_;
  std::mt19937_64 random_;
  Versions versions_;
  std::string token_;  // of the last write
  std::optional<Write> unanswered_;
  std::int64_t write_count_ = 0;
  std::int64_t acknowledged_count_ = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_TESTS_DURABILITY_CRASH_WRITER_H_
