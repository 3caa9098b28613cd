// attendant snapshot create|list|verify|restore|export|import|delete
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "client/api/pages.h"
#include "client/commands/administration/commands.h"
#include "client/files/file_stream.h"
#include "client/format/progress.h"
#include "core/base/status.h"

namespace attendant {
namespace {

// Every server accepts this much: --max-message-bytes is at least 64 KiB.
constexpr std::size_t kChunkBytes = std::size_t{48} << 10;

// Draws the progress of long work in KiB, from the first update on.
class WorkBar {
 public:
  explicit WorkBar(std::string label) : label_(std::move(label)) {}

  void Update(std::int64_t done_bytes, std::int64_t total_bytes) {
    if (!bar_.has_value()) bar_.emplace(stderr, label_, total_bytes >> 10);
    bar_->Update(done_bytes >> 10);
  }
  Client::OnProgress on_progress() {
    return [this](const v1::WorkProgress& progress) {
      Update(progress.done_bytes(), progress.total_bytes());
    };
  }

 private:
  const std::string label_;
  std::optional<Progress> bar_;
};

struct Names {
  std::string catalog;
  std::string name;
  std::string other;  // the new catalog, or the file
};

// Returns a request for one snapshot.
template <typename Request>
Request RequestFor(const Names& names) {
  Request request;
  request.set_catalog(names.catalog);
  request.set_name(names.name);
  return request;
}

// Returns the result of `call`, which draws a bar; the bar is erased by then.
template <typename Call>
auto WithBar(const std::string& label, Call call) {
  WorkBar bar(label);
  return call(bar);
}

std::string Describe(const v1::StoredSnapshot& snapshot) {
  return absl::StrCat(CountOf(snapshot.item_count(), "item"), ", ",
                      FormatBytes(snapshot.size_bytes()), " in ",
                      CountOf(snapshot.file_count(), "file"));
}

absl::Status CreateSnapshot(const Names& names, const Context& context) {
  const auto request = RequestFor<v1::CreateSnapshotRequest>(names);
  ATTENDANT_ASSIGN_OR_RETURN(const auto client, context.Connect());
  ATTENDANT_ASSIGN_OR_RETURN(
      const auto response, WithBar("Checking", [&](WorkBar& bar) {
        return client->CreateSnapshot(request, bar.on_progress());
      }));
  const v1::StoredSnapshot& snapshot = response.snapshot();
  return Show(response,
              absl::StrCat("Stored ", snapshot.name(), " of ",
                           snapshot.catalog(), ": ", Describe(snapshot), ".\n"),
              context);
}

absl::Status Verify(const Names& names, const Context& context) {
  const auto request = RequestFor<v1::VerifySnapshotRequest>(names);
  ATTENDANT_ASSIGN_OR_RETURN(const auto client, context.Connect());
  ATTENDANT_ASSIGN_OR_RETURN(
      const auto response, WithBar("Verifying", [&](WorkBar& bar) {
        return client->VerifySnapshot(request, bar.on_progress());
      }));
  return Show(response,
              absl::StrCat(names.name,
                           " is whole: ", Describe(response.snapshot()), ".\n"),
              context);
}

absl::Status Restore(const Names& names, const Context& context) {
  auto request = RequestFor<v1::RestoreSnapshotRequest>(names);
  request.set_new_catalog(names.other);
  ATTENDANT_ASSIGN_OR_RETURN(const auto client, context.Connect());
  ATTENDANT_ASSIGN_OR_RETURN(
      const auto response, WithBar("Restoring", [&](WorkBar& bar) {
        return client->RestoreSnapshot(request, bar.on_progress());
      }));
  return Show(
      response,
      absl::StrCat("Restored ", names.name, " as catalog ", names.other,
                   ", with ", CountOf(response.catalog().item_count(), "item"),
                   ".\n"),
      context);
}

absl::Status DeleteSnapshot(const Names& names, const Context& context) {
  const auto request = RequestFor<v1::DeleteSnapshotRequest>(names);
  ATTENDANT_ASSIGN_OR_RETURN(const auto client, context.Connect());
  ATTENDANT_ASSIGN_OR_RETURN(const auto response,
                             client->DeleteSnapshot(request));
  return Show(response, absl::StrCat("Deleted snapshot ", names.name, ".\n"),
              context);
}

absl::Status ListSnapshots(const std::string& catalog, const Context& context) {
  ATTENDANT_ASSIGN_OR_RETURN(const auto client, context.Connect());
  v1::ListSnapshotsRequest request;
  request.set_catalog(catalog);
  ATTENDANT_ASSIGN_OR_RETURN(
      const auto all, AllPages(*client, &Client::ListSnapshots, request));
  Listing listing = {
      .table = Table({{.title = "catalog"},
                      {.title = "snapshot"},
                      {.title = "taken"},
                      {.title = "items", .align = Table::Align::kRight},
                      {.title = "size", .align = Table::Align::kRight}}),
      .none = absl::StrCat(
          "There are no snapshots",
          catalog.empty() ? "" : absl::StrCat(" of '", Printable(catalog), "'"),
          ". `attendant snapshot create --help` tells how to make one.\n")};
  for (const v1::StoredSnapshot& snapshot : all.snapshots()) {
    listing.table.AddRow({snapshot.catalog(), snapshot.name(),
                          FormatTimestamp(snapshot.create_time()),
                          FormatCount(snapshot.item_count()),
                          FormatBytes(snapshot.size_bytes())});
  }
  for (const v1::DamagedSnapshot& damaged : all.damaged_snapshots()) {
    listing.damaged.push_back(damaged.message());
  }
  PrintList(all, listing, context);
  return absl::OkStatus();
}

absl::Status Export(const Names& names, const Context& context) {
  const auto request = RequestFor<v1::ExportSnapshotRequest>(names);
  ATTENDANT_ASSIGN_OR_RETURN(const auto client, context.Connect());
  ATTENDANT_ASSIGN_OR_RETURN(const auto file, FileStream::Create(names.other));
  std::int64_t done = 0;
  std::int64_t total = 0;
  ATTENDANT_RETURN_IF_ERROR(WithBar("Exporting", [&](WorkBar& bar) {
    return client->ExportSnapshot(
        request, [&](const v1::ExportSnapshotResponse& response) {
          total += response.total_bytes();
          done += static_cast<std::int64_t>(response.chunk().size());
          bar.Update(done, total);
          return file->Append(response.chunk());
        });
  }));
  if (done != total) {
    return absl::DataLossError(absl::StrCat("the server sent ", done, " of ",
                                            total, " bytes; nothing was kept"));
  }
  ATTENDANT_RETURN_IF_ERROR(file->Commit());
  if (context.json) {
    Print(absl::StrCat("{\n \"totalBytes\": \"", total, "\"\n}\n"));
  } else {
    Print(
        absl::StrCat("Wrote ", FormatBytes(total), " to ", names.other, ".\n"));
  }
  return absl::OkStatus();
}

absl::Status Import(const Names& names, const Context& context) {
  std::error_code error;
  const auto total =
      static_cast<std::int64_t>(std::filesystem::file_size(names.other, error));
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(
      error ? nullptr : std::fopen(names.other.c_str(), "rbe"), &std::fclose);
  if (file == nullptr) {
    if (!error) error = std::error_code(errno, std::generic_category());
    return absl::NotFoundError(
        absl::StrCat(names.other, " can't be read: ", error.message()));
  }
  ATTENDANT_ASSIGN_OR_RETURN(const auto client, context.Connect());
  const auto response = WithBar("Importing", [&](WorkBar& bar) {
    std::int64_t done = 0;
    return client->ImportSnapshot(
        [&](v1::ImportSnapshotRequest* request) -> absl::StatusOr<bool> {
          if (done == 0) {
            request->set_catalog(names.catalog);
            request->set_name(names.name);
          }
          std::string& bytes = *request->mutable_chunk();
          bytes.resize(kChunkBytes);
          bytes.resize(std::fread(bytes.data(), 1, bytes.size(), file.get()));
          if (std::ferror(file.get()) != 0) {
            return absl::InternalError(
                absl::StrCat(names.other, " can't be read"));
          }
          done += static_cast<std::int64_t>(bytes.size());
          bar.Update(done, total);
          return !bytes.empty();
        });
  });
  if (absl::IsAlreadyExists(response.status())) {
    return WithHint(response.status(), "--name imports it under another name");
  }
  // The server knows the bytes of the file, not its name.
  if (!response.ok()) {
    return ReplacePrefix(response.status(), "bytes", names.other);
  }
  const v1::StoredSnapshot& snapshot = response->snapshot();
  return Show(*response,
              absl::StrCat("Imported ", snapshot.name(), " of ",
                           snapshot.catalog(), ": ", Describe(snapshot), ".\n"),
              context);
}

using Verb = absl::Status (*)(const Names& names, const Context& context);

// Adds a verb on one snapshot. More positional arguments may follow.
CLI::App* AddVerb(CLI::App& snapshot, Context& context, const std::string& verb,
                  const std::string& description, Verb action,
                  const std::shared_ptr<Names>& names) {
  CLI::App* command = snapshot.add_subcommand(verb, description);
  SetVerb(*command, context, names, action);
  return command;
}

CLI::App* AddOnSnapshot(CLI::App& snapshot, Context& context,
                        const std::string& verb, const std::string& description,
                        Verb action, const std::shared_ptr<Names>& names) {
  CLI::App* command =
      AddVerb(snapshot, context, verb, description, action, names);
  command->add_option("CATALOG", names->catalog, "The catalog, or an alias")
      ->required();
  command->add_option("NAME", names->name, "The snapshot")->required();
  return command;
}

void AddCreateSnapshot(CLI::App& snapshot, Context& context) {
  auto names = std::make_shared<Names>();
  CLI::App* create =
      AddVerb(snapshot, context, "create", "Store a snapshot of a catalog",
              &CreateSnapshot, names);
  create->add_option("CATALOG", names->catalog, "The catalog, or an alias")
      ->required();
  create->add_option("NAME", names->name,
                     "The snapshot's name. Default: made of the time and the "
                     "last write's number");
  create->footer(
      "Examples:\n"
      "  attendant snapshot create shop\n"
      "  attendant snapshot create shop before-sale\n\n"
      "Queries and writes go on meanwhile. A snapshot holds every write that "
      "was\n"
      "acknowledged before, and is on the same disk as the catalog:\n"
      "`attendant snapshot export` copies it elsewhere.");
}

void AddListSnapshots(CLI::App& snapshot, Context& context) {
  auto catalog = std::make_shared<std::string>();
  CLI::App* list = snapshot.add_subcommand("list", "List snapshots");
  list->add_option("CATALOG", *catalog,
                   "List only this catalog's. Default: all");
  list->footer("Example:\n  attendant snapshot list shop");
  SetVerb(*list, context, catalog, &ListSnapshots);
}

void AddRestore(CLI::App& snapshot, Context& context) {
  auto names = std::make_shared<Names>();
  CLI::App* restore =
      AddOnSnapshot(snapshot, context, "restore",
                    "Make a new catalog from a snapshot", &Restore, names);
  restore
      ->add_option("NEW_CATALOG", names->other,
                   "The catalog to make; its name must be free")
      ->required();
  restore->footer(
      "Examples:\n"
      "  attendant snapshot restore shop-1 before-sale shop-2\n"
      "  attendant alias set shop shop-2 --if-names shop-1\n\n"
      "The whole snapshot is verified first; a damaged one changes nothing. "
      "The\n"
      "second command switches clients of the alias `shop` to the restored\n"
      "catalog without an error.");
}

void AddExport(CLI::App& snapshot, Context& context) {
  auto names = std::make_shared<Names>();
  CLI::App* command = AddOnSnapshot(
      snapshot, context, "export",
      "Write a snapshot to a file, to keep it elsewhere", &Export, names);
  command->add_option("FILE", names->other, "The file, which must not exist")
      ->required();
  command->footer(
      "Example:\n"
      "  attendant snapshot export shop before-sale before-sale.snapshot\n\n"
      "The file holds the checksum of every part, and gets its name once it "
      "is\n"
      "complete.");
}

void AddImport(CLI::App& snapshot, Context& context) {
  auto names = std::make_shared<Names>();
  CLI::App* command =
      AddVerb(snapshot, context, "import",
              "Bring an exported snapshot to a server", &Import, names);
  command->add_option("FILE", names->other, "A file that `export` wrote")
      ->required();
  command->add_option("--catalog", names->catalog,
                      "List it under this catalog. Default: its own");
  command->add_option("--name", names->name,
                      "List it under this name. Default: its own");
  command->footer(
      "Examples:\n"
      "  attendant snapshot import before-sale.snapshot\n"
      "  attendant snapshot import before-sale.snapshot --name again\n\n"
      "A snapshot is listed once every byte of it was verified; nothing is "
      "kept\n"
      "of a damaged or truncated file. Its catalog need not exist.");
}

}  // namespace

void AddSnapshotCommands(CLI::App& app, Context& context) {
  CLI::App* snapshot = app.add_subcommand(
      "snapshot", "Store, verify, restore and move copies of catalogs");
  snapshot->require_subcommand(1);
  snapshot->footer(
      "Examples:\n"
      "  attendant snapshot create shop before-sale\n"
      "  attendant snapshot restore shop before-sale shop-2");
  AddCreateSnapshot(*snapshot, context);
  AddListSnapshots(*snapshot, context);
  AddOnSnapshot(*snapshot, context, "verify", "Check every byte of a snapshot",
                &Verify, std::make_shared<Names>())
      ->footer("Example:\n  attendant snapshot verify shop before-sale");
  AddRestore(*snapshot, context);
  AddExport(*snapshot, context);
  AddImport(*snapshot, context);
  AddOnSnapshot(*snapshot, context, "delete", "Delete a snapshot",
                &DeleteSnapshot, std::make_shared<Names>())
      ->footer("Example:\n  attendant snapshot delete shop before-sale");
}

}  // namespace attendant
