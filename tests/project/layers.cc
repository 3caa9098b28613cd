#include "tests/project/layers.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace attendant {
namespace {

namespace fs = std::filesystem;

// An include may go to the file's own folder, or to a sibling of a lower level.
struct Folder {
  absl::string_view name;
  int level;  // among the folders of the one that it lies in
};
constexpr Folder kFolders[] = {
    {"core/base", 0},
    {"core/kernels", 1},
    {"core/attention", 2},
    {"core/encode", 3},
    {"core/shortlist", 3},
    {"core/storage", 3},
    {"core/catalog", 4},
    {"core/attention/softmax", 0},
    {"core/attention/models", 1},
    {"core/attention/sampling", 1},
    {"core/attention/heads", 2},
    {"core/attention/approximations", 3},
    {"core/attention/sequences", 4},
    {"core/shortlist/builds", 0},
    {"core/shortlist/keys", 1},
    {"core/shortlist/scan", 2},
    {"core/shortlist/lists", 3},
    {"core/shortlist/calibration", 4},
    {"core/shortlist/mass", 4},
    {"core/shortlist/passes", 5},
    {"core/shortlist/ivf", 6},
    {"core/shortlist/kinds", 7},
    {"core/storage/files", 0},
    {"core/storage/records", 1},
    {"core/storage/rocks", 2},
    {"core/storage/catalogs", 3},
    {"core/storage/snapshots", 4},
    {"core/storage/store", 5},
    {"core/catalog/rows", 0},
    {"core/catalog/filter", 1},
    {"core/catalog/segments", 2},
    {"core/catalog/writes", 3},
    {"core/catalog/live", 4},
    {"core/catalog/query", 4},
    {"service/log", 0},
    {"service/metrics", 0},
    {"service/watches", 1},
    {"service/connections", 2},
    {"service/convert", 2},
    {"service/queue", 2},
    {"service/security", 2},
    {"service/calls", 3},
    {"service/http", 3},
    {"service/handlers", 4},
    // These assemble the others.
    {"service", 5},
    {"service/attendantd", 6},
    {"client/api", 0},
    {"client/files", 0},
    {"client/format", 0},
    {"client/flags", 1},
    {"client/picture", 1},
    {"client/doctor", 2},
    {"client/commands", 3},
    {"client/load", 3},
    {"client/attendant", 4},
    {"client/commands/shared", 0},
    {"client/commands/attention", 1},
    {"client/commands/fits", 1},
    {"client/commands/administration", 2},
    {"client/commands/items", 2},
    {"client/commands/models", 2},
    {"client/load/requests", 0},
    {"client/load/results", 0},
    {"client/load/send", 1},
    {"client/load/report", 2},
    {"client/load/run", 3},
};

std::optional<int> LevelOf(absl::string_view folder) {
  for (const Folder& known : kFolders) {
    if (known.name == folder) return known.level;
  }
  return std::nullopt;
}

// For core/storage/records/store.h: "core" and "core/storage".
struct Place {
  explicit Place(absl::string_view path) {
    const std::vector<std::string> parts = absl::StrSplit(path, '/');
    top = parts[0];
    folder = absl::StrJoin(parts.begin(), parts.end() - 1, "/");
  }
  std::string top;
  std::string folder;
};

// Returns the folder of `place` that is a sibling of one of `other`'s, or is
// the same: "core/catalog" of "core/catalog/rows", a sibling of "core/storage".
absl::string_view BranchOf(const Place& place, const Place& other) {
  const std::vector<absl::string_view> folders =
      absl::StrSplit(place.folder, '/');
  const std::vector<absl::string_view> others =
      absl::StrSplit(other.folder, '/');
  const auto [end, unused] = std::mismatch(folders.begin(), folders.end(),
                                           others.begin(), others.end());
  if (end == folders.end()) return place.folder;
  return absl::string_view(place.folder)
      .substr(0, static_cast<std::size_t>(end->end() - place.folder.data()));
}

bool StartsWithAny(absl::string_view text,
                   std::initializer_list<absl::string_view> prefixes) {
  return std::ranges::any_of(prefixes, [&](absl::string_view prefix) {
    return absl::StartsWith(text, prefix);
  });
}

bool IsWire(absl::string_view include) {
  return StartsWithAny(include,
                       {"grpc/", "grpcpp/", "google/", "attendant/"}) ||
         absl::EndsWith(include, ".pb.h");
}

// Returns whether the files of this folder are all in its subfolders. A
// top-level folder may also have files of its own, which assemble its
// subfolders.
bool IsDivided(absl::string_view folder) {
  return absl::StrContains(folder, '/') &&
         std::any_of(std::begin(kFolders), std::end(kFolders),
                     [&](const Folder& known) {
                       return absl::StartsWith(known.name,
                                               absl::StrCat(folder, "/"));
                     });
}

std::string WhyWithin(const Place& from, const Place& to) {
  if (!LevelOf(from.folder).has_value() || !LevelOf(to.folder).has_value()) {
    return absl::StrCat("a folder of ", from.top,
                        " whose place in the order is not known");
  }
  for (const Place* place : {&from, &to}) {
    if (IsDivided(place->folder)) {
      return absl::StrCat(place->folder, " has folders for its files");
    }
  }
  if (from.folder == to.folder) return "";
  const absl::string_view above = BranchOf(from, to);
  const absl::string_view below = BranchOf(to, from);
  if (LevelOf(below) < LevelOf(above)) return "";
  return absl::StrCat(above, " does not stand above ", below);
}

// Returns why a file must not include this, or "".
std::string Why(absl::string_view path, absl::string_view include,
                bool quoted) {
  const Place from(path);
  const Place to(include);
  if (absl::StrContains(include, "..") ||
      (quoted && !absl::StrContains(include, '/'))) {
    return "paths begin at the root of the project";
  }
  if (StartsWithAny(include, {"tests/", "bench/", "gtest/", "gmock/"})) {
    return "only tests include tests";
  }
  if (absl::StartsWith(include, "faiss/") &&
      !absl::StartsWith(path, "core/shortlist/")) {
    return "only core/shortlist includes FAISS";
  }
  if (absl::StartsWith(include, "rocksdb/") &&
      !(absl::StartsWith(path, "core/storage/") &&
        absl::EndsWith(path, ".cc"))) {
    return "only the .cc files of core/storage include RocksDB";
  }
  if (from.top == "core") {
    if (IsWire(include)) return "core knows neither gRPC nor protobuf";
    if (to.top == "service" || to.top == "client") {
      return absl::StrCat("core does not stand above ", to.top);
    }
  }
  if ((from.top == "service" && to.top == "client") ||
      (from.top == "client" && to.top == "service")) {
    return "service and client meet on the wire only";
  }
  if (from.top == to.top) return WhyWithin(from, to);
  return "";
}

bool IsSource(const fs::path& path) {
  const std::string extension = path.extension().string();
  return extension == ".h" || extension == ".cc" || extension == ".inc";
}

}  // namespace

std::vector<std::string> FindLayerViolations(absl::string_view path,
                                             absl::string_view text) {
  std::vector<std::string> violations;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripLeadingAsciiWhitespace(line);
    if (!absl::ConsumePrefix(&line, "#")) continue;
    line = absl::StripLeadingAsciiWhitespace(line);
    if (!absl::ConsumePrefix(&line, "include")) continue;
    line = absl::StripLeadingAsciiWhitespace(line);
    if (line.empty()) continue;
    const bool quoted = line[0] == '"';
    const std::size_t end = line.find(quoted ? '"' : '>', 1);
    if (end == absl::string_view::npos) continue;
    const absl::string_view include = line.substr(1, end - 1);
    const std::string why = Why(path, include, quoted);
    if (why.empty()) continue;
    violations.push_back(
        absl::StrCat(path, ":", number, ": ", include, ": ", why));
  }
  return violations;
}

TreeReport FindTreeViolations(const std::string& root) {
  TreeReport report;
  for (const std::string top : {"core", "service", "client"}) {
    const fs::path folder = fs::path(root) / top;
    if (!fs::exists(folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(
             folder, fs::directory_options::follow_directory_symlink)) {
      if (!entry.is_regular_file() || !IsSource(entry.path())) continue;
      ++report.file_count;
      std::ifstream file(entry.path());
      const std::string text(std::istreambuf_iterator<char>(file), {});
      const std::string path =
          entry.path().lexically_relative(root).generic_string();
      for (std::string& violation : FindLayerViolations(path, text)) {
        report.violations.push_back(std::move(violation));
      }
    }
  }
  return report;
}

}  // namespace attendant
