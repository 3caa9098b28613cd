#include "client/commands/shared/command.h"

#include <google/protobuf/util/json_util.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/api/advice.h"
#include "client/api/error_json.h"
#include "core/base/status.h"

namespace attendant {
namespace {

// Global because a process has one standard output.
bool has_printed = false;

// Runs a verb; an exception becomes an Internal error.
absl::Status EndOf(const std::function<absl::Status(const Context&)>& verb,
                   const Context& context) {
  try {
    return verb(context);
  } catch (const std::exception& error) {
    return absl::InternalError(error.what());
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Client>> Context::Connect() const {
  ATTENDANT_ASSIGN_OR_RETURN(Client::Options options,
                             ClientOptions(connection));
  ATTENDANT_RETURN_IF_ERROR(CheckSecurity(options.security));
  options.deadline = absl::Seconds(timeout_seconds);
  return Client::Connect(std::move(options));
}

void Context::Run(const std::function<absl::Status(const Context&)>& verb) {
  absl::Status status = EndOf(verb, *this);
  const absl::Status written = FlushOutput();
  status.Update(written);
  if (status.ok()) return;
  // A verb may print its answer and fail: `doctor`, for example.
  if (json && written.ok() && !HasPrinted()) {
    Print(ErrorJson(status));
    std::fflush(stdout);
  }
  PrintError(MessageWithAdvice(status));
  exit_status_ = ExitStatusOf(status);
}

void Print(absl::string_view text) {
  has_printed = has_printed || !text.empty();
  std::fwrite(text.data(), 1, text.size(), stdout);
}

absl::Status FlushOutput() {
  // ferror tells of earlier writes, which happen when the buffer is full.
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) {
    return absl::OkStatus();
  }
  return absl::DataLossError("standard output can't be written");
}

bool HasPrinted() { return has_printed; }

void Note(absl::string_view line) {
  const std::string text = absl::StrCat(line, "\n");
  // Keeps the order of lines if both streams are one pipe.
  std::fflush(stdout);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void NoteToken(absl::string_view token) {
  if (token.empty()) return;
  Note(absl::StrCat("Reads see it with --state-token ", token));
}

void PrintError(absl::string_view message) {
  Note(absl::StrCat("attendant: ", Printable(message)));
}

absl::Status WithHint(const absl::Status& status, absl::string_view hint) {
  return WithMessage(status, absl::StrCat(status.message(), "; ", hint));
}

bool MayAsk() {
  return isatty(STDIN_FILENO) != 0 && isatty(STDERR_FILENO) != 0;
}

absl::Status CheckMayDelete(bool yes) {
  if (yes || MayAsk()) return absl::OkStatus();
  return UsageError(
      "nothing was deleted: there is no terminal to ask on, and only --yes "
      "deletes without asking");
}

absl::Status Confirm(absl::string_view question) {
  std::fflush(stdout);
  const std::string text = absl::StrCat(Printable(question), " [y/N] ");
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::string answer;
  std::getline(std::cin, answer);
  if (!answer.empty() && (answer[0] == 'y' || answer[0] == 'Y')) {
    return absl::OkStatus();
  }
  return absl::CancelledError("nothing was deleted; --yes does not ask");
}

std::string ToJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.always_print_primitive_fields = true;
  std::string json;
  const auto status =
      google::protobuf::util::MessageToJsonString(message, &json, options);
  // Fails only for types of messages that no reply contains.
  if (!status.ok()) return "null\n";
  return json;
}

std::string ToJsonWithout(const google::protobuf::Message& reply,
                          const std::vector<std::string>& not_asked_for) {
  auto json = nlohmann::ordered_json::parse(ToJson(reply));
  for (nlohmann::ordered_json& item : json["items"]) {
    for (const std::string& member : not_asked_for) item.erase(member);
  }
  return absl::StrCat(json.dump(1), "\n");
}

absl::Status Show(const google::protobuf::Message& reply,
                  absl::string_view text, const Context& context,
                  absl::string_view token) {
  if (context.json) {
    Print(ToJson(reply));
  } else {
    Print(text);
    NoteToken(token);
  }
  return absl::OkStatus();
}

void PrintList(const google::protobuf::Message& all, const Listing& listing,
               const Context& context) {
  if (context.json) {
    Print(ToJson(all));
    return;
  }
  if (!listing.table.empty()) {
    Print(listing.table.Format(context.style));
  } else if (listing.damaged.empty()) {
    Print(listing.none);
  }
  for (const std::string& damaged : listing.damaged) {
    Note(Printable(absl::StrCat("damaged: ", damaged)));
  }
}

std::string CountOf(std::int64_t count, absl::string_view noun) {
  return absl::StrCat(FormatCount(count), " ", noun, count == 1 ? "" : "s");
}

std::string FormatTimestamp(const google::protobuf::Timestamp& timestamp) {
  return absl::FormatTime("%E4Y-%m-%dT%H:%M:%SZ",
                          absl::FromUnixSeconds(timestamp.seconds()),
                          absl::UTCTimeZone());
}

}  // namespace attendant
