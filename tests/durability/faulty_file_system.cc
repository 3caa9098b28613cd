#include "tests/durability/faulty_file_system.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

namespace attendant {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

// The unit that a disk writes completely or not at all.
constexpr std::size_t kSectorBytes = 512;

std::string Normal(const std::string& path) {
  std::string normal = std::filesystem::path(path).lexically_normal().string();
  if (normal.size() > 1 && normal.back() == '/') normal.pop_back();
  return normal;
}

std::string ParentOf(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

// Returns `path` after the rename of `from`, which is the path itself or a
// directory above it.
std::string Renamed(const std::string& path, const std::string& from,
                    const std::string& to) {
  const bool within = path == from || path.rfind(from + "/", 0) == 0;
  return within ? to + path.substr(from.size()) : path;
}

IOStatus ErrorOf(FileFault::Kind kind, const std::string& path) {
  switch (kind) {
    case FileFault::Kind::kNoSpace:
      return IOStatus::NoSpace(kInjectedError, path);
    case FileFault::Kind::kNoRights:
      return IOStatus::IOError(absl::StrCat(kInjectedError, ": ", path),
                               "Permission denied");
    default:
      return IOStatus::IOError(kInjectedError, path);
  }
}

}  // namespace

class FaultyFileSystem::WritableFile
    : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  WritableFile(std::unique_ptr<rocksdb::FSWritableFile> file, std::string path,
               std::shared_ptr<Inode> inode, FaultyFileSystem* files)
      : FSWritableFileOwnerWrapper(std::move(file)),
        path_(std::move(path)),
        inode_(std::move(inode)),
        files_(files) {}

  IOStatus Append(const Slice& data, const IOOptions& options,
                  IODebugContext* debug) override {
    MutexLock lock(&files_->mutex_);
    const auto fault = files_->ComeBy(FileCall::kWrite, path_);
    Slice written = data;
    if (fault == FileFault::Kind::kShorten) {
      written = Slice(data.data(), data.size() / 2);
    } else if (fault.has_value()) {
      return ErrorOf(*fault, path_);
    }
    const IOStatus status = target()->Append(written, options, debug);
    if (status.ok()) inode_->live.append(written.data(), written.size());
    return fault.has_value() ? ErrorOf(*fault, path_) : status;
  }
  IOStatus Append(const Slice& data, const IOOptions& options,
                  const rocksdb::DataVerificationInfo&,
                  IODebugContext* debug) override {
    return Append(data, options, debug);
  }
  IOStatus PositionedAppend(const Slice&, std::uint64_t, const IOOptions&,
                            IODebugContext*) override {
    return IOStatus::NotSupported("PositionedAppend");
  }
  IOStatus PositionedAppend(const Slice&, std::uint64_t, const IOOptions&,
                            const rocksdb::DataVerificationInfo&,
                            IODebugContext*) override {
    return IOStatus::NotSupported("PositionedAppend");
  }
  IOStatus Truncate(std::uint64_t size, const IOOptions& options,
                    IODebugContext* debug) override {
    MutexLock lock(&files_->mutex_);
    inode_->overwritten |= size < inode_->synced.size();
    inode_->live.resize(size);
    return target()->Truncate(size, options, debug);
  }
  IOStatus Sync(const IOOptions&, IODebugContext*) override {
    MutexLock lock(&files_->mutex_);
    if (const auto fault = files_->ComeBy(FileCall::kSync, path_)) {
      return ErrorOf(*fault, path_);
    }
    SyncBytes(*inode_);
    return IOStatus::OK();
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    return Sync(options, debug);
  }
  // Guarantees nothing.
  IOStatus RangeSync(std::uint64_t, std::uint64_t, const IOOptions&,
                     IODebugContext*) override {
    return IOStatus::OK();
  }

 private:
  const std::string path_;
  const std::shared_ptr<Inode> inode_;
  FaultyFileSystem* const files_;
};

class FaultyFileSystem::RandomFile
    : public rocksdb::FSRandomRWFileOwnerWrapper {
 public:
  RandomFile(std::unique_ptr<rocksdb::FSRandomRWFile> file, std::string path,
             std::shared_ptr<Inode> inode, FaultyFileSystem* files)
      : FSRandomRWFileOwnerWrapper(std::move(file)),
        path_(std::move(path)),
        inode_(std::move(inode)),
        files_(files) {}

  IOStatus Write(std::uint64_t offset, const Slice& data,
                 const IOOptions& options, IODebugContext* debug) override {
    MutexLock lock(&files_->mutex_);
    if (const auto fault = files_->ComeBy(FileCall::kWrite, path_)) {
      return ErrorOf(*fault, path_);
    }
    const IOStatus status = target()->Write(offset, data, options, debug);
    if (!status.ok()) return status;
    std::string& live = inode_->live;
    live.resize(std::max<std::size_t>(live.size(), offset + data.size()));
    live.replace(offset, data.size(), data.data(), data.size());
    inode_->overwritten = true;
    return status;
  }
  IOStatus Sync(const IOOptions&, IODebugContext*) override {
    MutexLock lock(&files_->mutex_);
    if (const auto fault = files_->ComeBy(FileCall::kSync, path_)) {
      return ErrorOf(*fault, path_);
    }
    SyncBytes(*inode_);
    return IOStatus::OK();
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    return Sync(options, debug);
  }

 private:
  const std::string path_;
  const std::shared_ptr<Inode> inode_;
  FaultyFileSystem* const files_;
};

class FaultyFileSystem::Directory : public rocksdb::FSDirectoryWrapper {
 public:
  Directory(std::unique_ptr<rocksdb::FSDirectory> directory, std::string path,
            FaultyFileSystem* files)
      : FSDirectoryWrapper(std::move(directory)),
        path_(std::move(path)),
        files_(files) {}

  IOStatus Fsync(const IOOptions&, IODebugContext*) override {
    MutexLock lock(&files_->mutex_);
    if (const auto fault = files_->ComeBy(FileCall::kSync, path_)) {
      return ErrorOf(*fault, path_);
    }
    files_->SyncNames(path_);
    return IOStatus::OK();
  }
  IOStatus FsyncWithDirOptions(const IOOptions& options, IODebugContext* debug,
                               const rocksdb::DirFsyncOptions&) override {
    return Fsync(options, debug);
  }

 private:
  const std::string path_;
  FaultyFileSystem* const files_;
};

FaultyFileSystem::FaultyFileSystem(std::string root, std::uint64_t seed)
    : FileSystemWrapper(rocksdb::FileSystem::Default()),
      root_(Normal(root)),
      random_(seed) {}

FaultyFileSystem::~FaultyFileSystem() = default;

void FaultyFileSystem::CutPowerAt(std::int64_t nth, bool zeros) {
  MutexLock lock(&mutex_);
  cut_at_ = call_count_ + nth;
  zeros_ = zeros;
}

bool FaultyFileSystem::cut() const {
  MutexLock lock(&mutex_);
  return left_.has_value();
}

void FaultyFileSystem::Inject(const FileFault& fault) {
  MutexLock lock(&mutex_);
  fault_ = fault;
}

bool FaultyFileSystem::befell() const {
  MutexLock lock(&mutex_);
  return struck_.size() > struck_before_;
}

std::vector<FileFault> FaultyFileSystem::struck() const {
  MutexLock lock(&mutex_);
  return struck_;
}

void FaultyFileSystem::InjectNothing() {
  MutexLock lock(&mutex_);
  fault_.reset();
  struck_before_ = struck_.size();
  holds_ = false;
  released_.NotifyAll();
}

std::int64_t FaultyFileSystem::call_count() const {
  MutexLock lock(&mutex_);
  return call_count_;
}

std::size_t FaultyFileSystem::Random(std::size_t count) {
  return static_cast<std::size_t>(random_() % count);
}

std::optional<FileFault::Kind> FaultyFileSystem::ComeBy(
    FileCall call, const std::string& path) {
  if (call != FileCall::kOpen && ++call_count_ == cut_at_) CutPower();
  if (!fault_.has_value() || fault_->call != call ||
      path.find(fault_->path_part) == path.npos || --fault_->nth > 0) {
    return std::nullopt;
  }
  const FileFault::Kind kind = fault_->kind;
  struck_.push_back(*std::exchange(fault_, std::nullopt));
  struck_.back().path_part =
      std::filesystem::path(path).lexically_relative(root_).string();
  if (kind == FileFault::Kind::kHold) {
    holds_ = true;
    while (holds_) released_.Wait(&mutex_);
    return std::nullopt;
  }
  if (kind != FileFault::Kind::kDelay) return kind;
  // This sleep does not synchronise: the delay is the fault.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  return std::nullopt;
}

IOStatus FaultyFileSystem::FailureOf(FileCall call, const std::string& path) {
  MutexLock lock(&mutex_);
  const auto fault = ComeBy(call, path);
  return fault.has_value() ? ErrorOf(*fault, path) : IOStatus::OK();
}

std::shared_ptr<FaultyFileSystem::Inode> FaultyFileSystem::NewInode() {
  auto inode = std::make_shared<Inode>();
  inode->number = ++inode_count_;
  return inode;
}

void FaultyFileSystem::Note(const std::string& directory, Change change) {
  Apply(change, live_);
  if (change.IsRenamedDirectory()) {
    // Unsynced changes in the directory continue under its new name.
    const auto rename = [&](std::string& path) {
      if (!path.empty()) path = Renamed(path, change.removed, change.added);
    };
    for (auto& [path, changes] : changes_) {
      if (Renamed(path, change.removed, "") == path) continue;
      rename(path);
      for (Change& below : changes) {
        rename(below.removed);
        rename(below.added);
      }
    }
  }
  auto at = std::ranges::find_if(changes_, [&](const auto& changes) {
    return changes.first == directory;
  });
  if (at == changes_.end()) at = changes_.insert(at, {directory, {}});
  at->second.push_back(std::move(change));
}

void FaultyFileSystem::Apply(const Change& change, Names& names) {
  if (change.IsRenamedDirectory()) {
    Names renamed;
    for (const auto& [path, inode] : names) {
      renamed[Renamed(path, change.removed, change.added)] = inode;
    }
    names = std::move(renamed);
  }
  names.erase(change.removed);
  if (!change.added.empty()) names[change.added] = change.inode;
}

void FaultyFileSystem::SyncNames(const std::string& directory) {
  std::erase_if(changes_, [&](const auto& changes) {
    mutex_.AssertHeld();
    if (changes.first != directory) return false;
    for (const Change& change : changes.second) Apply(change, synced_);
    return true;
  });
}

void FaultyFileSystem::SyncBytes(Inode& inode) {
  if (inode.overwritten) {
    inode.synced = inode.live;
  } else {
    inode.synced.append(inode.live, inode.synced.size());
  }
  inode.overwritten = false;
}

std::string FaultyFileSystem::WhatIsLeftOf(const Inode& inode) {
  if (inode.overwritten) {
    // Smaller than a sector: either the old or the new contents.
    return Random(2) == 0 ? inode.live : inode.synced;
  }
  const std::size_t begin = inode.synced.size();
  const std::size_t tail = inode.live.size() - begin;
  std::string left = inode.synced;
  if (tail == 0) return left;
  const std::size_t choice = Random(4);
  const std::size_t kept = choice == 0   ? 0
                           : choice == 1 ? tail
                                         : Random(tail + 1);
  left.append(inode.live, begin, kept);
  if (!zeros_) return left;
  // Zeroes sectors that were skipped although later ones were written, and
  // sectors that were only preallocated.
  for (std::size_t at = begin; at < left.size();
       at += kSectorBytes - at % kSectorBytes) {
    if (Random(4) != 0) continue;
    const std::size_t end =
        std::min(left.size(), at + kSectorBytes - at % kSectorBytes);
    std::fill(left.begin() + static_cast<std::ptrdiff_t>(at),
              left.begin() + static_cast<std::ptrdiff_t>(end), '\0');
  }
  if (Random(2) == 0) left.append(8 + Random(2 * kSectorBytes), '\0');
  return left;
}

void FaultyFileSystem::CutPower() {
  Names names = synced_;
  for (const auto& [directory, changes] : changes_) {
    const std::size_t kept = Random(changes.size() + 1);
    for (std::size_t i = 0; i < kept; ++i) Apply(changes[i], names);
  }
  // A file may have several names.
  std::map<std::int64_t, std::shared_ptr<Inode>> inodes;
  for (const auto& [path, inode] : names) {
    if (inode != nullptr) inodes[inode->number] = inode;
  }
  std::map<std::int64_t, std::string> bytes;
  for (const auto& [number, inode] : inodes) {
    bytes[number] = WhatIsLeftOf(*inode);
  }
  left_.emplace();
  for (const auto& [path, inode] : names) {
    // Name order puts a directory before its contents.
    const std::string parent = ParentOf(path);
    if (path != root_ && parent != root_ && left_->count(parent) == 0) continue;
    if (inode == nullptr) {
      (*left_)[path] = std::nullopt;
      continue;
    }
    (*left_)[path] = bytes[inode->number];
  }
}

void FaultyFileSystem::RestoreAfterCut() {
  MutexLock lock(&mutex_);
  std::filesystem::remove_all(root_);
  std::filesystem::create_directories(root_);
  synced_.clear();
  changes_.clear();
  for (const auto& [path, bytes] : *left_) {
    if (!bytes.has_value()) {
      std::filesystem::create_directories(path);
      synced_[path] = nullptr;
      continue;
    }
    std::ofstream(path, std::ios::binary) << *bytes;
    synced_[path] = NewInode();
    synced_[path]->live = synced_[path]->synced = *bytes;
  }
  live_ = synced_;
  left_.reset();
  cut_at_ = 0;
}

IOStatus FaultyFileSystem::NewSequentialFile(
    const std::string& path, const rocksdb::FileOptions& options,
    std::unique_ptr<rocksdb::FSSequentialFile>* result, IODebugContext* debug) {
  const IOStatus failure = FailureOf(FileCall::kOpen, path);
  if (!failure.ok()) return failure;
  return target()->NewSequentialFile(path, options, result, debug);
}

IOStatus FaultyFileSystem::NewRandomAccessFile(
    const std::string& path, const rocksdb::FileOptions& options,
    std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
    IODebugContext* debug) {
  const IOStatus failure = FailureOf(FileCall::kOpen, path);
  if (!failure.ok()) return failure;
  return target()->NewRandomAccessFile(path, options, result, debug);
}

IOStatus FaultyFileSystem::NewWritableFile(
    const std::string& path, const rocksdb::FileOptions& options,
    std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* debug) {
  MutexLock lock(&mutex_);
  if (const auto fault = ComeBy(FileCall::kCreate, path)) {
    return ErrorOf(*fault, path);
  }
  std::unique_ptr<rocksdb::FSWritableFile> file;
  const IOStatus status =
      target()->NewWritableFile(path, options, &file, debug);
  if (!status.ok()) return status;
  const std::string name = Normal(path);
  auto inode = NewInode();
  Note(ParentOf(name), {"", name, inode});
  *result = std::make_unique<WritableFile>(std::move(file), name,
                                           std::move(inode), this);
  return status;
}

IOStatus FaultyFileSystem::NewRandomRWFile(
    const std::string& path, const rocksdb::FileOptions& options,
    std::unique_ptr<rocksdb::FSRandomRWFile>* result, IODebugContext* debug) {
  MutexLock lock(&mutex_);
  if (const auto fault = ComeBy(FileCall::kOpen, path)) {
    return ErrorOf(*fault, path);
  }
  const std::string name = Normal(path);
  const auto found = live_.find(name);
  if (found == live_.end()) return IOStatus::NotFound("not made here", path);
  std::unique_ptr<rocksdb::FSRandomRWFile> file;
  const IOStatus status =
      target()->NewRandomRWFile(path, options, &file, debug);
  if (!status.ok()) return status;
  *result =
      std::make_unique<RandomFile>(std::move(file), name, found->second, this);
  return status;
}

IOStatus FaultyFileSystem::NewDirectory(
    const std::string& path, const IOOptions& options,
    std::unique_ptr<rocksdb::FSDirectory>* result, IODebugContext* debug) {
  std::unique_ptr<rocksdb::FSDirectory> directory;
  const IOStatus status =
      target()->NewDirectory(path, options, &directory, debug);
  if (!status.ok()) return status;
  *result =
      std::make_unique<Directory>(std::move(directory), Normal(path), this);
  return status;
}

IOStatus FaultyFileSystem::DeleteFile(const std::string& path,
                                      const IOOptions& options,
                                      IODebugContext* debug) {
  MutexLock lock(&mutex_);
  if (const auto fault = ComeBy(FileCall::kRemove, path)) {
    return ErrorOf(*fault, path);
  }
  const IOStatus status = target()->DeleteFile(path, options, debug);
  const std::string name = Normal(path);
  if (status.ok()) Note(ParentOf(name), {name, "", nullptr});
  return status;
}

IOStatus FaultyFileSystem::CreateDir(const std::string& path,
                                     const IOOptions& options,
                                     IODebugContext* debug) {
  MutexLock lock(&mutex_);
  if (const auto fault = ComeBy(FileCall::kCreate, path)) {
    return ErrorOf(*fault, path);
  }
  const IOStatus status = target()->CreateDir(path, options, debug);
  const std::string name = Normal(path);
  if (status.ok()) Note(ParentOf(name), {"", name, nullptr});
  return status;
}

IOStatus FaultyFileSystem::CreateDirIfMissing(const std::string& path,
                                              const IOOptions& options,
                                              IODebugContext* debug) {
  bool is_directory = false;
  if (target()->IsDirectory(path, options, &is_directory, debug).ok() &&
      is_directory) {
    return IOStatus::OK();
  }
  return CreateDir(path, options, debug);
}

IOStatus FaultyFileSystem::DeleteDir(const std::string& path,
                                     const IOOptions& options,
                                     IODebugContext* debug) {
  MutexLock lock(&mutex_);
  if (const auto fault = ComeBy(FileCall::kRemove, path)) {
    return ErrorOf(*fault, path);
  }
  const IOStatus status = target()->DeleteDir(path, options, debug);
  if (!status.ok()) return status;
  const std::string name = Normal(path);
  // A new directory of this name must not find the contents of this one.
  SyncNames(name);
  Note(ParentOf(name), {name, "", nullptr});
  return status;
}

IOStatus FaultyFileSystem::RenameFile(const std::string& source,
                                      const std::string& target_path,
                                      const IOOptions& options,
                                      IODebugContext* debug) {
  MutexLock lock(&mutex_);
  if (const auto fault = ComeBy(FileCall::kRename, target_path)) {
    return ErrorOf(*fault, target_path);
  }
  const IOStatus status =
      target()->RenameFile(source, target_path, options, debug);
  if (!status.ok()) return status;
  const std::string from = Normal(source);
  const std::string to = Normal(target_path);
  const auto found = live_.find(from);
  const std::shared_ptr<Inode> inode =
      found == live_.end() ? NewInode() : found->second;
  Note(ParentOf(to), {from, to, inode});
  return status;
}

IOStatus FaultyFileSystem::LinkFile(const std::string& source,
                                    const std::string& target_path,
                                    const IOOptions& options,
                                    IODebugContext* debug) {
  MutexLock lock(&mutex_);
  if (const auto fault = ComeBy(FileCall::kCreate, target_path)) {
    return ErrorOf(*fault, target_path);
  }
  const IOStatus status =
      target()->LinkFile(source, target_path, options, debug);
  if (!status.ok()) return status;
  const std::string to = Normal(target_path);
  const auto found = live_.find(Normal(source));
  if (found != live_.end()) Note(ParentOf(to), {"", to, found->second});
  return status;
}

IOStatus FaultyFileSystem::ReopenWritableFile(
    const std::string& path, const rocksdb::FileOptions&,
    std::unique_ptr<rocksdb::FSWritableFile>*, IODebugContext*) {
  return IOStatus::NotSupported("ReopenWritableFile", path);
}

IOStatus FaultyFileSystem::ReuseWritableFile(
    const std::string& path, const std::string&, const rocksdb::FileOptions&,
    std::unique_ptr<rocksdb::FSWritableFile>*, IODebugContext*) {
  return IOStatus::NotSupported("ReuseWritableFile", path);
}

}  // namespace attendant
