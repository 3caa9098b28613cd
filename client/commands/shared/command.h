// What the verbs of the command line share.
#ifndef ATTENDANT_CLIENT_COMMANDS_SHARED_COMMAND_H_
#define ATTENDANT_CLIENT_COMMANDS_SHARED_COMMAND_H_

#include <google/protobuf/message.h>
#include <google/protobuf/timestamp.pb.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/api/client.h"
#include "client/flags/connection_flags.h"
#include "client/format/text.h"

namespace attendant {

// Exit statuses of `attendant`.
inline constexpr int kExitOk = 0;
inline constexpr int kExitRefused = 1;      // the server or the data refused
inline constexpr int kExitUsage = 2;        // the command line is wrong
inline constexpr int kExitUnreachable = 3;  // no server that speaks

// Columns of a bar, and of a column of a table that may be wide.
inline constexpr int kBarWidth = 20;
inline constexpr int kWideColumn = 100;

// The command line as a whole: global flags, and where output goes.
class Context {
 public:
  ConnectionFlags connection;
  bool json = false;
  double timeout_seconds = 30;
  // Of standard output.
  Style style;

  absl::StatusOr<std::unique_ptr<Client>> Connect() const;

  // Runs a verb, and keeps how it ended. What it throws is an Internal error.
  void Run(const std::function<absl::Status(const Context&)>& verb);
  int exit_status() const { return exit_status_; }

 private:
  int exit_status_ = kExitOk;
};

// Writes to standard output, to standard error as a line of its own.
void Print(absl::string_view text);
// Whether anything was printed.
bool HasPrinted();
void Note(absl::string_view line);
// The token of a write, as a line on standard error that says what it is for;
// nothing if it is empty, as nothing was written.
void NoteToken(absl::string_view token);
// The error, as "attendant: ..." on standard error.
void PrintError(absl::string_view message);

// A message in the canonical JSON of Protobuf, with a line end. What is 0 or
// empty is printed too.
std::string ToJson(const google::protobuf::Message& message);
// The same of a reply with `items`, whose members that were not asked for are
// left out: empty, they would look as if the item had none.
std::string ToJsonWithout(const google::protobuf::Message& reply,
                          const std::vector<std::string>& not_asked_for);

// A reply of a list, for people.
struct Listing {
  Table table;
  std::string none;  // said in its place, if there is nothing at all
  std::vector<std::string> damaged = {};  // noted after it
};
// Prints one of both.
void PrintList(const google::protobuf::Message& all, const Listing& listing,
               const Context& context);

// "1 item", "2 items", "1,000 items".
std::string CountOf(std::int64_t count, absl::string_view noun);
// "2026-01-31 12:00:00 UTC".
std::string FormatTimestamp(const google::protobuf::Timestamp& timestamp);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_SHARED_COMMAND_H_
