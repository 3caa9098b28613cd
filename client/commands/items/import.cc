// attendant items import
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/api/error_json.h"
#include "client/api/grpc_status.h"
#include "client/api/importer.h"
#include "client/commands/items/commands.h"
#include "client/commands/items/import_rows.h"
#include "client/commands/items/item_lines.h"
#include "client/commands/items/item_source.h"
#include "client/commands/items/replacing.h"
#include "client/format/progress.h"
#include "core/base/clock.h"
#include "core/base/status.h"
#include "nlohmann/json.hpp"

namespace attendant {
namespace {

constexpr std::size_t kMaxRejectionLines = 100;
// More rows than this that are rejected for one reason share a line.
constexpr std::size_t kMaxAlike = 3;
// Shorter imports tell nothing about the rate of longer ones.
constexpr double kMinRatedSeconds = 1;

volatile std::sig_atomic_t interrupted = 0;

// The first Ctrl-C ends the import once the items sent so far are acknowledged;
// a second one ends the process.
void StopOnInterrupt() {
  interrupted = 0;
  struct sigaction before {};
  sigaction(SIGINT, nullptr, &before);
  if (before.sa_handler == SIG_IGN) return;  // a background job
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
}

struct ImportFlags {
  std::string catalog;
  ImportInputs inputs;
  std::string items;  // path
  bool if_absent = false;
  bool replace = false;
};

struct Rejection {
  std::int64_t row = 0;  // the row's number
  std::string id;
  std::string reason;
};

// Sends rows to the server and collects the rejected ones, whether the server
// refused them or they were never sent.
class RowImport {
 public:
  RowImport(ItemSource& source, Importer& importer)
      : source_(source), importer_(importer) {}

  // Sends all rows. After an error, the items stored before it stay stored.
  absl::Status Send() {
    Progress progress(stderr, "Importing", source_.row_count());
    while (interrupted == 0) {
      ATTENDANT_ASSIGN_OR_RETURN(std::optional<SourceRow> row, source_.Next());
      if (!row.has_value()) break;
      if (row->item.ok()) {
        ATTENDANT_RETURN_IF_ERROR(importer_.Add(*std::move(row->item)));
        sent_.push_back({row->number, std::move(row->id)});
      } else {
        rejections_.push_back({row->number, std::move(row->id),
                               std::string(row->item.status().message())});
      }
      progress.Update(TakeFailures());
    }
    ATTENDANT_RETURN_IF_ERROR(importer_.Finish());
    return absl::OkStatus();
  }

  // Collects the server's failures. Returns the number of items acknowledged.
  std::int64_t TakeFailures() {
    // Read before the failures, so that every failure up to it is among them.
    const std::int64_t done_count = importer_.progress().acknowledged_count;
    for (const v1::ImportFailure& failure : importer_.TakeFailures()) {
      const auto index =
          static_cast<std::size_t>(failure.item_index() - forgotten_count_);
      if (index >= sent_.size()) continue;
      rejections_.push_back(
          {sent_[index].number, sent_[index].id,
           std::string(FromRpcStatus(failure.status()).message())});
    }
    for (; forgotten_count_ < done_count && !sent_.empty();
         ++forgotten_count_) {
      sent_.pop_front();
    }
    return done_count;
  }

  // Returns the rejections ordered by row: the server's arrive later than those
  // of rows that were never sent.
  std::vector<Rejection> TakeRejections() {
    std::ranges::stable_sort(rejections_,
                             [](const Rejection& one, const Rejection& other) {
                               return one.row < other.row;
                             });
    return std::move(rejections_);
  }

 private:
  struct Sent {
    std::int64_t number = 0;
    std::string id;
  };

  ItemSource& source_;
  Importer& importer_;
  // The items of the stream in order, without the first forgotten_count_.
  std::deque<Sent> sent_;
  std::int64_t forgotten_count_ = 0;
  std::vector<Rejection> rejections_;
};

std::string RowText(const Rejection& rejection) {
  return absl::StrCat(
      "row ", rejection.row,
      rejection.id.empty() ? "" : absl::StrCat(" (", rejection.id, ")"));
}

// Erases the position in "PATH: line 3: MESSAGE" or "PATH: row 2 (line 3):
// MESSAGE".
void ErasePosition(std::string& reason) {
  for (const std::string& mark : {std::string(": line "), {": row "}}) {
    const std::size_t begin = reason.find(mark);
    if (begin == std::string::npos) continue;
    const std::size_t number = begin + mark.size();
    const std::size_t end = reason.find(": ", number);
    if (end == std::string::npos || !absl::ascii_isdigit(reason[number])) {
      continue;
    }
    reason.erase(begin, end - begin);
    return;
  }
}

// Returns the reason without the row's own id and position, for comparison with
// those of other rows.
std::string KindOf(const Rejection& rejection) {
  std::string kind = rejection.reason;
  ErasePosition(kind);
  if (!rejection.id.empty()) {
    kind = absl::StrReplaceAll(kind,
                               {{absl::StrCat("'", rejection.id, "'"), "''"}});
  }
  return kind;
}

// Prints one line for each rejection, or for all that share a reason if there
// are more than kMaxAlike of them.
void NoteRejections(const std::vector<Rejection>& rejections) {
  absl::flat_hash_map<std::string, std::int64_t> count_of;
  for (const Rejection& rejection : rejections) ++count_of[KindOf(rejection)];
  std::size_t line_count = 0;
  std::int64_t told_count = 0;
  for (const Rejection& rejection : rejections) {
    if (line_count == kMaxRejectionLines) break;
    std::int64_t& count = count_of[KindOf(rejection)];
    if (count == 0) continue;  // told with the first of its kind
    ++line_count;
    const bool shared = count > static_cast<std::int64_t>(kMaxAlike);
    told_count += shared ? count : 1;
    PrintError(absl::StrCat(
        shared ? absl::StrCat(CountOf(count, "row"), ", the first is ") : "",
        RowText(rejection), ": ", rejection.reason));
    if (shared) count = 0;
  }
  const std::int64_t left_count =
      static_cast<std::int64_t>(rejections.size()) - told_count;
  if (left_count == 0) return;
  PrintError(absl::StrCat("and ", CountOf(left_count, "row"),
                          " more; --json lists all"));
}

std::string ImportJson(const ImportFlags& flags, const ItemSource& source,
                       const std::vector<Rejection>& rejections,
                       const ImportProgress& progress, double seconds,
                       const absl::Status& status) {
  nlohmann::ordered_json json;
  // A failure has the usual error object in addition to the counts.
  if (!status.ok()) {
    json = nlohmann::ordered_json::parse(ErrorJson(status));
  }
  json["catalog"] = flags.catalog;
  json["rowCount"] = source.row_count();
  json["storedCount"] = progress.stored_count;
  json["rejectedCount"] = rejections.size();
  json["rejected"] = nlohmann::ordered_json::array();
  for (const Rejection& rejection : rejections) {
    nlohmann::ordered_json entry;
    entry["row"] = rejection.row;
    entry["id"] = rejection.id;
    entry["reason"] = rejection.reason;
    json["rejected"].push_back(std::move(entry));
  }
  if (!flags.inputs.attributes.empty()) {
    json["withoutAttributesCount"] = source.without_attributes_count();
  }
  json["stateToken"] = progress.state_token;
  json["seconds"] = seconds;
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) +
         "\n";
}

// Returns "Stored 8 items in films, in 2.5 s (3 per second).", without the rate
// if the time is short.
std::string StoredText(std::int64_t count, const std::string& catalog,
                       double seconds) {
  std::string text =
      absl::StrCat("Stored ", CountOf(count, "item"), " in ", catalog, ", in ",
                   FormatNumber(seconds), " s");
  if (seconds >= kMinRatedSeconds) {
    absl::StrAppend(&text, " (",
                    FormatCount(static_cast<std::int64_t>(
                        static_cast<double>(count) / seconds)),
                    " per second)");
  }
  return text + ".\n";
}

// Says how many items were replaced. Approximate if others write meanwhile.
void NoteReplaced(std::int64_t replaced_count) {
  if (replaced_count <= 0) return;
  Note(absl::StrCat("Replaced whole, with keys and attributes: ",
                    CountOf(replaced_count, "item"),
                    " (`items update` changes parts)."));
}

void NoteWithoutAttributes(std::int64_t count, const std::string& path) {
  if (count == 0) return;
  Note(absl::StrCat("Without attributes: ", CountOf(count, "item"), "; ", path,
                    " has none for them."));
}

// FailedPrecondition if the import would remove parts of stored items and
// nothing says that it may.
absl::Status CheckLosses(Client& client, const v1::Catalog& catalog,
                         const ImportFlags& flags, ItemSource& source) {
  if (flags.if_absent || flags.replace || catalog.item_count() == 0) {
    return absl::OkStatus();
  }
  ATTENDANT_ASSIGN_OR_RETURN(const UnseenParts unseen, source.Unseen());
  return CheckNothingIsLost(
      client, flags.catalog, unseen,
      absl::StrCat(flags.items.empty()
                       ? absl::StrCat("`attendant items update ", flags.catalog,
                                      ShellFlags(flags.inputs),
                                      "` keeps them, and --replace")
                       : "add them to the file, or --replace",
                   " replaces such items all the same"));
}

// Returns the outcome of an import whose stream ended with `status`. `stored`
// says how many rows were stored.
absl::Status OutcomeOf(const absl::Status& status,
                       const std::vector<Rejection>& rejections,
                       const std::string& stored) {
  if (!status.ok()) {
    return PrefixField(status, absl::StrCat(stored, ", then: "));
  }
  if (interrupted != 0) {
    return absl::CancelledError(absl::StrCat("interrupted; ", stored));
  }
  if (rejections.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(stored, ", rejected ",
                   FormatCount(static_cast<std::int64_t>(rejections.size()))));
}

absl::StatusOr<std::unique_ptr<ItemSource>> OpenSource(
    const ImportFlags& flags, const v1::CatalogSchema& schema) {
  if (!flags.items.empty()) return ItemLines::Open(flags.items, schema);
  return ImportRows::Open(flags.inputs, schema);
}

absl::Status Import(const ImportFlags& flags, const Context& context) {
  const std::string& catalog = flags.catalog;
  ATTENDANT_ASSIGN_OR_RETURN(const auto client, context.Connect());
  v1::GetCatalogRequest request;
  request.set_name(catalog);
  ATTENDANT_ASSIGN_OR_RETURN(const auto response, client->GetCatalog(request));
  ATTENDANT_ASSIGN_OR_RETURN(const auto source,
                             OpenSource(flags, response.catalog().schema()));
  ATTENDANT_RETURN_IF_ERROR(
      CheckLosses(*client, response.catalog(), flags, *source));
  StopOnInterrupt();
  const SteadyTime start = SteadyNow();
  const auto importer = client->StartImport(
      catalog, {.if_absent = flags.if_absent,
                .stall_timeout = absl::Seconds(context.timeout_seconds)});
  RowImport import(*source, *importer);
  const absl::Status status = import.Send();
  import.TakeFailures();
  const std::vector<Rejection> rejections = import.TakeRejections();
  const double seconds = absl::ToDoubleSeconds(TimeSince(start));
  const ImportProgress progress = importer->progress();
  const absl::Status outcome = OutcomeOf(
      status, rejections,
      absl::StrCat("stored ", FormatCount(progress.stored_count), " of ",
                   CountOf(source->row_count(), "row"), " in ", catalog));
  if (context.json) {
    Print(ImportJson(flags, *source, rejections, progress, seconds, outcome));
  } else {
    NoteRejections(rejections);
    NoteWithoutAttributes(source->without_attributes_count(),
                          flags.inputs.attributes);
  }
  ATTENDANT_RETURN_IF_ERROR(outcome);
  if (!context.json) {
    // All items are stored, even if the server can't be asked any more.
    const auto after = client->GetCatalog(request);
    if (after.ok()) {
      NoteReplaced(progress.stored_count - (after->catalog().item_count() -
                                            response.catalog().item_count()));
    }
    Print(StoredText(progress.stored_count, catalog, seconds));
  }
  return absl::OkStatus();
}

}  // namespace

void AddImportCommand(CLI::App& items, Context& context) {
  auto flags = std::make_shared<ImportFlags>();
  CLI::App* command = items.add_subcommand("import", "Store items from files");
  command->add_option("CATALOG", flags->catalog, "The catalog")->required();
  const InputOptions inputs = AddInputFlags(*command, flags->inputs);
  inputs.ids->needs(inputs.keys);
  CLI::Option* item_lines =
      command
          ->add_option("--items", flags->items,
                       "Whole items, as one JSON object per line: {\"id\": "
                       "\"...\", \"keys\": {\"FIELD\": [0.5, ...]}, "
                       "\"value\": [...], \"attributes\": {...}, "
                       "\"opaque_value\": ...}, as `items export` writes "
                       "them; or the output of `items get --json`")
          ->type_name("FILE")
          ->excludes(inputs.from)
          ->excludes(inputs.ids)
          ->excludes(inputs.attributes);
  CLI::Option* if_absent =
      command->add_flag("--if-absent", flags->if_absent,
                        "Refuse items that exist instead of replacing them");
  command
      ->add_flag("--replace", flags->replace,
                 "Replace items that exist even if they lose parts that no "
                 "file gives")
      ->excludes(if_absent);
  command->footer(
      "Examples:\n"
      "  attendant items import shop --from fit/events --from fit/text\n"
      "  attendant items import photos --ids ids.txt --keys image=clip.npy \\\n"
      "      --attributes titles.csv\n"
      "  attendant items import photos --items photos.jsonl.gz\n\n"
      "An item that exists is replaced whole, attributes included, unless "
      "--if-absent is given.\n"
      "If a stored item has a key, value or attribute that no file gives to "
      "any "
      "item, the import\n"
      "is refused before it begins, unless --replace is given; `items update` "
      "takes the same files\n"
      "and changes only the parts that they give. A rejected row does not stop "
      "the others: it is\n"
      "reported by number, id and reason, and the exit status is 1. A row of "
      "--attributes rejects its\n"
      "item; one whose id can't be read stops the import before it begins.");
  command->final_callback([flags, inputs, item_lines, &context] {
    if (inputs.from->empty() && inputs.ids->empty() && item_lines->empty()) {
      throw CLI::RequiredError("--items, --from, or --ids with --keys,");
    }
    context.Run([&](const Context& c) { return Import(*flags, c); });
  });
}

}  // namespace attendant
