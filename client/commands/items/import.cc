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

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/api/error_json.h"
#include "client/api/grpc_status.h"
#include "client/api/importer.h"
#include "client/commands/items/commands.h"
#include "client/commands/items/import_rows.h"
#include "client/commands/items/item_lines.h"
#include "client/commands/items/item_source.h"
#include "client/format/progress.h"
#include "core/base/clock.h"
#include "core/base/status.h"
#include "nlohmann/json.hpp"

namespace attendant {
namespace {

constexpr std::size_t kMaxRejectionsShown = 100;

volatile std::sig_atomic_t interrupted = 0;

// Ctrl-C ends the import after what was sent; a second one ends the process.
void StopOnInterrupt() {
  interrupted = 0;
  struct sigaction before {};
  sigaction(SIGINT, nullptr, &before);
  if (before.sa_handler == SIG_IGN) return;  // as in the background
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
};

struct Rejection {
  std::int64_t row = 0;  // its number
  std::string id;
  std::string reason;
};

// Rows of which some never reach the server, and what became of them.
class RowImport {
 public:
  RowImport(ItemSource& source, Importer& importer)
      : source_(source), importer_(importer) {}

  // Sends all rows. What was done before an error is done.
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

  // Returns how many of those sent are dealt with.
  std::int64_t TakeFailures() {
    // Before the failures, which come with what they are of.
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

  // In the order of rows: the server's come later than what was never sent.
  std::vector<Rejection> TakeRejections() {
    std::stable_sort(rejections_.begin(), rejections_.end(),
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
  // In the order of the stream, but for the first forgotten_count_.
  std::deque<Sent> sent_;
  std::int64_t forgotten_count_ = 0;
  std::vector<Rejection> rejections_;
};

void NoteRejections(const std::vector<Rejection>& rejections) {
  std::size_t shown = 0;
  for (const Rejection& rejection : rejections) {
    if (shown++ == kMaxRejectionsShown) {
      PrintError(absl::StrCat(
          "and ",
          CountOf(static_cast<std::int64_t>(rejections.size() - shown + 1),
                  "row"),
          " more; --json lists all"));
      return;
    }
    PrintError(absl::StrCat(
        "row ", rejection.row,
        rejection.id.empty() ? "" : absl::StrCat(" (", rejection.id, ")"), ": ",
        rejection.reason));
  }
}

std::string ImportJson(const std::string& catalog, std::int64_t row_count,
                       const std::vector<Rejection>& rejections,
                       const ImportProgress& progress, double seconds,
                       const absl::Status& status) {
  nlohmann::ordered_json json;
  // As of all that fails, with what was done until then.
  if (!status.ok()) {
    json = nlohmann::ordered_json::parse(ErrorJson(status));
  }
  json["catalog"] = catalog;
  json["rowCount"] = row_count;
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
  json["stateToken"] = progress.state_token;
  json["seconds"] = seconds;
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) +
         "\n";
}

// Approximate while others write.
void NoteReplaced(std::int64_t replaced_count) {
  if (replaced_count <= 0) return;
  Note(absl::StrCat("Replaced whole, with keys and attributes: ",
                    CountOf(replaced_count, "item"),
                    " (`items update` changes parts)."));
}

// While it can still be interrupted.
absl::Status NoteLosses(const v1::Catalog& catalog, const ImportFlags& flags,
                        ItemSource& source) {
  if (flags.if_absent || catalog.item_count() == 0) return absl::OkStatus();
  ATTENDANT_ASSIGN_OR_RETURN(const UnseenParts unseen, source.Unseen());
  if (unseen.empty()) return absl::OkStatus();
  Note(absl::StrCat(
      "Items that are there are replaced whole and lose what no file gives: ",
      absl::StrJoin(unseen.names(), ", "), ". `items update` keeps it."));
  return absl::OkStatus();
}

// Of an import whose stream ended so. `stored` says what it did.
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
  if (!context.json) {
    ATTENDANT_RETURN_IF_ERROR(NoteLosses(response.catalog(), flags, *source));
  }
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
    Print(ImportJson(catalog, source->row_count(), rejections, progress,
                     seconds, outcome));
  } else {
    NoteRejections(rejections);
  }
  ATTENDANT_RETURN_IF_ERROR(outcome);
  if (!context.json) {
    // All is stored, whether or not the server can still be asked.
    const auto after = client->GetCatalog(request);
    if (after.ok()) {
      NoteReplaced(progress.stored_count - (after->catalog().item_count() -
                                            response.catalog().item_count()));
    }
    Print(
        absl::StrCat("Stored ", CountOf(progress.stored_count, "item"), " in ",
                     catalog, ", in ", FormatNumber(seconds), " s (",
                     FormatCount(static_cast<std::int64_t>(
                         static_cast<double>(progress.stored_count) / seconds)),
                     " a second).\n"));
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
                       "Whole items, a JSON object a line: {\"id\": \"...\", "
                       "\"keys\": {\"FIELD\": [0.5, ...]}, \"value\": [...], "
                       "\"attributes\": {...}, \"opaque_value\": ...}; "
                       "`items export` writes them")
          ->type_name("FILE")
          ->excludes(inputs.from)
          ->excludes(inputs.ids)
          ->excludes(inputs.attributes);
  command->add_flag("--if-absent", flags->if_absent,
                    "Refuse items that exist, in place of replacing them");
  command->footer(
      "Examples:\n"
      "  attendant items import shop --from fit/events --from fit/text\n"
      "  attendant items import photos --ids ids.txt --keys image=clip.npy \\\n"
      "      --attributes titles.jsonl\n"
      "  attendant items import photos --items photos.jsonl.gz\n\n"
      "Items that exist are replaced whole, unless --if-absent: what the files "
      "do not give of\n"
      "them goes, attributes too (`items update`, of the same files, changes "
      "parts). A row that\n"
      "is refused does not stop the others: it is reported by number, id and "
      "reason, and the\n"
      "exit status is 1.");
  command->final_callback([flags, inputs, item_lines, &context] {
    if (inputs.from->empty() && inputs.ids->empty() && item_lines->empty()) {
      throw CLI::RequiredError("--items, --from, or --ids with --keys,");
    }
    context.Run([&](const Context& c) { return Import(*flags, c); });
  });
}

}  // namespace attendant
