// A client that writes to a server until the server dies, and knows what must
// be there afterwards.
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
  std::int64_t note = 0;     // the attribute; 0 if absent

  bool operator==(const CrashItem&) const = default;
};
using CrashItems = std::map<std::string, CrashItem>;  // by id

// Owns a catalog NAME, a copy of it restored from snapshots, an alias to one of
// the two, snapshots, and versions of a model. Nobody else writes to them. Not
// thread-safe.
class CrashWriter {
 public:
  CrashWriter(std::string name, std::uint64_t seed)
      : name_(std::move(name)), random_(seed) {}

  // Writes until one write gets no answer, or until so many writes have
  // succeeded that they evidently do not reach the fail point.
  void WriteUntilKilled(Connection& connection);

  // Call after a restart. Checks that every acknowledged write is there, and
  // that the unanswered one took effect completely or not at all; then repeats
  // that one if it can be repeated.
  void Check(Connection& connection);

  std::int64_t acknowledged_count() const { return acknowledged_count_; }

 private:
  using Items = CrashItems;

  // The writer's part of the server's state.
  struct State {
    std::map<std::string, Items> catalogs;   // NAME, and the copy
    std::map<std::string, Items> snapshots;  // of NAME
    std::string target;                      // of the alias; "" if none
    std::set<std::int64_t> models;
    std::int64_t last_model = 0;  // may be deleted, hence unreadable
    // Token of the last write to NAME that has one, and of a write to the
    // previous catalog of that name.
    std::string token;
    std::string stale_token;

    Items& items(const std::string& catalog) { return catalogs[catalog]; }
  };
  // The part of State that can be read.
  struct Found {
    std::map<std::string, Items> catalogs;
    std::map<std::string, std::int64_t> snapshots;  // how many items
    std::string target;
    std::set<std::int64_t> models;

    bool operator==(const Found&) const = default;
  };

  // One operation: the request it sends, and the state it leads to.
  struct Operation {
    State after;
    // Sets `token` if the operation writes items.
    std::function<grpc::Status(Connection&, std::string* token)> send;
    bool repeatable = false;  // a repeat is OK and changes nothing
    grpc::StatusCode code = grpc::StatusCode::OK;
  };

  static Found Visible(const State& state);
  static std::string Text(const Found& found);
  std::string copy() const { return name_ + "-copy"; }
  std::string alias() const { return name_ + "-alias"; }

  // Reads the current state with the token. Returns nullopt if the server died
  // meanwhile.
  std::optional<Found> Read(Connection& connection) const;
  bool ReadSnapshots(Connection& connection, Found& found) const;
  bool ReadModels(Connection& connection, Found& found) const;
  bool ReadAlias(Connection& connection, Found& found) const;
  void CheckTokens(Connection& connection) const;

  int Random(int count) { return static_cast<int>(random_() % count); }
  std::vector<std::string> RandomIds();
  // Ids of existing items.
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

// Writes its own items to a catalog that others write to at the same time, so
// that several writes share a sync and a kill can interrupt it. Not
// thread-safe.
class CrashSharer {
 public:
  // `catalog` is the catalog's name; `name` is the prefix of the ids.
  CrashSharer(std::string catalog, std::string name, std::uint64_t seed)
      : catalog_(std::move(catalog)), name_(std::move(name)), random_(seed) {}

  // As in CrashWriter.
  void WriteUntilKilled(Connection& connection);
  void Check(Connection& connection);
  std::int64_t acknowledged_count() const { return acknowledged_count_; }

 private:
  using Versions = std::map<std::string, std::int64_t>;  // by id

  struct Write {
    std::string request_id;
    Versions upserts;
    std::vector<std::string> deletes;  // instead of upserts
  };

  Write Next();
  grpc::Status Send(Connection& connection, const Write& write,
                    std::string* token) const;
  static void Apply(const Write& write, Versions& versions);
  // Reads the versions of its own items.
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
