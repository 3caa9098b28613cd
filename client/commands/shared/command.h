// What the verbs of the command line share: the context, output and formats.
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
#include "client/api/exit_status.h"
#include "client/flags/connection_flags.h"
#include "client/format/text.h"

namespace attendant {

// The width of a bar and of a wide column of a table, in terminal columns.
inline constexpr int kBarWidth = 20;
inline constexpr int kWideColumn = 100;

// The global flags, and the connection and exit status that follow from them.
class Context {
 public:
  ConnectionFlags connection;
  bool json = false;
  double timeout_seconds = 30;
  // The style of standard output.
  Style style;

  // Connects to the server. UsageError for files of the flags that can't be
  // used; otherwise, the errors of Client::Connect.
  absl::StatusOr<std::unique_ptr<Client>> Connect() const;

  // Runs a verb, prints its error and sets the exit status. An exception of the
  // verb is an Internal error.
  void Run(const std::function<absl::Status(const Context&)>& verb);
  int exit_status() const { return exit_status_; }

 private:
  int exit_status_ = kExitOk;
};

// Makes `command` run a verb with its flags once they are parsed. `context`
// must outlive it.
template <typename Flags>
void SetVerb(CLI::App& command, Context& context,
             const std::shared_ptr<Flags>& flags,
             absl::Status (*verb)(const Flags&, const Context&)) {
  command.final_callback([flags, verb, &context] {
    context.Run([&](const Context& c) { return verb(*flags, c); });
  });
}

// Writes `text` to standard output.
void Print(absl::string_view text);
// Writes what Print has buffered. DataLoss if that, or an earlier write of the
// output, failed.
absl::Status FlushOutput();
// Returns true if Print has written anything.
bool HasPrinted();
// Writes `line` and a line end to standard error.
void Note(absl::string_view line);
// Notes the state token of a write and what it is for; nothing if it is empty,
// since nothing was written.
void NoteToken(absl::string_view token);
// Returns `status` with "; HINT" appended to its message.
absl::Status WithHint(const absl::Status& status, absl::string_view hint);

// Writes "attendant: MESSAGE" to standard error.
void PrintError(absl::string_view message);

// Returns true if a command may ask before it deletes something: standard input
// and standard error are a terminal.
bool MayAsk();
// Returns UsageError, which names --yes, unless `yes` or MayAsk. Scripts thus
// say what people are asked.
absl::Status CheckMayDelete(bool yes);
// Asks "QUESTION [y/N]" on standard error and reads a line from standard input.
// Cancelled unless the line begins with "y" or "Y".
absl::Status Confirm(absl::string_view question);

// Returns a message in the canonical JSON of Protobuf, with a line end. Fields
// that are 0 or empty are included.
std::string ToJson(const google::protobuf::Message& message);
// Returns ToJson of a reply that has `items`, without the members of items that
// were not requested: as they are empty, the item would seem to have none.
std::string ToJsonWithout(const google::protobuf::Message& reply,
                          const std::vector<std::string>& not_asked_for);

// Ends a verb: prints the reply as JSON, or the text and, if the reply is to a
// write, notes its state token. Returns OK.
absl::Status Show(const google::protobuf::Message& reply,
                  absl::string_view text, const Context& context,
                  absl::string_view token = {});

// A list as people read it.
struct Listing {
  Table table;
  std::string none;                       // printed if the list is empty
  std::vector<std::string> damaged = {};  // noted after the table
};
// Prints `all` as JSON, or the listing, as the context has it.
void PrintList(const google::protobuf::Message& all, const Listing& listing,
               const Context& context);

// Returns "1 item", "2 items", "1,000 items".
std::string CountOf(std::int64_t count, absl::string_view noun);
// Returns a time as in "2026-01-31T12:00:00Z", without fractions of a second.
std::string FormatTimestamp(const google::protobuf::Timestamp& timestamp);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_SHARED_COMMAND_H_
