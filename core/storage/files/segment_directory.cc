#include "core/storage/files/segment_directory.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/fail_point.h"
#include "core/base/spare_time.h"
#include "core/base/status.h"
#include "core/storage/files/disk_space.h"
#include "core/storage/files/stream_hash.h"

namespace attendant {
namespace {

constexpr absl::string_view kManifest = "MANIFEST";

class StampedFileWriter : public StampedFile {
 public:
  // Writes to `directory`; stops once `cancelled`, if not null, is true.
  StampedFileWriter(std::string directory, std::unique_ptr<FileWriter> file,
                    const std::atomic<bool>* cancelled)
      : directory_(std::move(directory)),
        file_(std::move(file)),
        cancelled_(cancelled) {}

  absl::StatusOr<FileStamp> Commit() override {
    ATTENDANT_RETURN_IF_ERROR(status());
    ATTENDANT_RETURN_IF_ERROR(Flush());
    ATTENDANT_RETURN_IF_ERROR(file_->Commit());
    return FileStamp{.size = file_->size(), .hash = hash_.Text()};
  }

 private:
  absl::Status Append(std::span<const std::byte> bytes) override {
    absl::string_view text(reinterpret_cast<const char*>(bytes.data()),
                           bytes.size());
    if (block_.size() + text.size() > kFileBlockBytes) {
      ATTENDANT_RETURN_IF_ERROR(Flush());
    }
    if (text.size() < kFileBlockBytes) {
      block_.append(text.data(), text.size());
      return absl::OkStatus();
    }
    for (; !text.empty();
         text.remove_prefix(std::min(text.size(), kFileBlockBytes))) {
      ATTENDANT_RETURN_IF_ERROR(Write(text.substr(0, kFileBlockBytes)));
    }
    return absl::OkStatus();
  }

  absl::Status Flush() {
    const absl::Status status = Write(block_);
    block_.clear();
    return status;
  }

  // Writes at most a block. Others may have filled the disk since the file was
  // begun.
  absl::Status Write(absl::string_view bytes) {
    if (cancelled_ != nullptr && cancelled_->load()) {
      return absl::CancelledError("its catalog is deleted");
    }
    MakeWay();
    ATTENDANT_RETURN_IF_ERROR(CheckDiskSpace(directory_, bytes.size()));
    hash_.Update(bytes);
    return file_->Append(bytes);
  }

  const std::string directory_;
  const std::unique_ptr<FileWriter> file_;
  const std::atomic<bool>* const cancelled_;
  StreamHash hash_;
  std::string block_;
};

class FileSource : public StampedSource {
 public:
  FileSource(std::string path, std::unique_ptr<FileReader> file,
             std::uint64_t size, FileStamp stamp)
      : path_(std::move(path)),
        file_(std::move(file)),
        size_(size),
        stamp_(std::move(stamp)),
        left_(size) {}

  std::uint64_t left() const override { return left_ + buffered(); }

  absl::Status Verify() override {
    while (read_.ok() && left_ > 0) FillBlock().IgnoreError();
    ATTENDANT_RETURN_IF_ERROR(read_);
    const FileStamp found = {.size = size_, .hash = hash_.Text()};
    if (found == stamp_ || ATTENDANT_PLANTED_BUG("skip_segment_checksum")) {
      return absl::OkStatus();
    }
    return absl::DataLossError(absl::StrCat(
        path_, " is damaged: it has ", found.size, " bytes of checksum ",
        found.hash, ", want ", stamp_.size, " of checksum ", stamp_.hash));
  }

 private:
  std::size_t buffered() const { return block_.size() - at_; }

  absl::Status Read(std::span<std::byte> bytes) override {
    if (buffered() < bytes.size()) {
      const std::size_t have = buffered();
      if (have > 0) std::memcpy(bytes.data(), block_.data() + at_, have);
      bytes = bytes.subspan(have);
      block_.clear();
      at_ = 0;
      while (bytes.size() >= kFileBlockBytes) {
        ATTENDANT_RETURN_IF_ERROR(Fill(bytes.first(kFileBlockBytes)));
        bytes = bytes.subspan(kFileBlockBytes);
      }
      ATTENDANT_RETURN_IF_ERROR(FillBlock());
    }
    if (!bytes.empty()) {
      std::memcpy(bytes.data(), block_.data() + at_, bytes.size());
      at_ += bytes.size();
    }
    return absl::OkStatus();
  }

  absl::Status FillBlock() {
    at_ = 0;
    block_.resize(static_cast<std::size_t>(
        std::min<std::uint64_t>(left_, kFileBlockBytes)));
    return Fill(block_);
  }

  // Hashes exactly the bytes that are returned.
  absl::Status Fill(std::span<std::byte> bytes) {
    const absl::StatusOr<std::size_t> size = file_->Read(bytes);
    if (!size.ok()) {
      read_ = size.status();
    } else if (*size < bytes.size()) {
      read_ = absl::DataLossError(absl::StrCat(path_, " has become shorter"));
    }
    left_ -= bytes.size();
    hash_.Update({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    return read_;
  }

  const std::string path_;
  const std::unique_ptr<FileReader> file_;
  const std::uint64_t size_;
  const FileStamp stamp_;
  absl::Status read_;  // the first error
  StreamHash hash_;
  std::uint64_t left_;  // beyond the block
  std::vector<std::byte> block_;
  std::size_t at_ = 0;
};

}  // namespace

std::string SegmentDirectory::path_of(absl::string_view name) const {
  return absl::StrCat(path_, "/", name);
}

absl::StatusOr<std::unique_ptr<StampedFile>> SegmentDirectory::Create(
    const std::string& name, std::uint64_t byte_count,
    const std::atomic<bool>* cancelled) const {
  ATTENDANT_RETURN_IF_ERROR(CheckDiskSpace(path_, byte_count));
  ATTENDANT_RETURN_IF_ERROR(files_.MakeDirectory(path_));
  ATTENDANT_ASSIGN_OR_RETURN(std::unique_ptr<FileWriter> file,
                             files_.NewFile(path_of(name)));
  return std::make_unique<StampedFileWriter>(path_, std::move(file), cancelled);
}

absl::StatusOr<std::unique_ptr<StampedSource>> SegmentDirectory::Open(
    const std::string& name, const FileStamp& stamp) const {
  const std::string path = path_of(name);
  ATTENDANT_ASSIGN_OR_RETURN(const bool exists, files_.PathExists(path));
  if (!exists) return absl::DataLossError(absl::StrCat(path, " is missing"));
  ATTENDANT_ASSIGN_OR_RETURN(const std::int64_t size, files_.FileSize(path));
  ATTENDANT_ASSIGN_OR_RETURN(std::unique_ptr<FileReader> file,
                             files_.OpenToRead(path));
  return std::make_unique<FileSource>(path, std::move(file),
                                      static_cast<std::uint64_t>(size), stamp);
}

absl::Status SegmentDirectory::PutManifest(absl::string_view bytes) const {
  ATTENDANT_RETURN_IF_ERROR(CheckDiskSpace(path_, bytes.size()));
  ATTENDANT_RETURN_IF_ERROR(files_.MakeDirectory(path_));
  return files_.ReplaceFile(path_of(kManifest),
                            absl::StrCat(bytes, HashText(bytes)));
}

absl::StatusOr<std::optional<std::string>> SegmentDirectory::GetManifest()
    const {
  const std::string path = path_of(kManifest);
  ATTENDANT_ASSIGN_OR_RETURN(std::optional<std::string> bytes,
                             files_.ReadFile(path));
  if (!bytes.has_value()) return std::nullopt;
  if (bytes->size() >= kHashTextBytes) {
    const std::string hash = bytes->substr(bytes->size() - kHashTextBytes);
    bytes->resize(bytes->size() - kHashTextBytes);
    if (hash == HashText(*bytes)) return bytes;
  }
  return absl::DataLossError(absl::StrCat(path, " is damaged"));
}

std::int64_t SegmentDirectory::LastNumber() const {
  std::int64_t last = 0;
  const auto names = files_.ListDirectory(path_);
  if (!names.ok()) return last;
  for (const std::string& name : *names) {
    std::int64_t number = 0;
    const std::size_t dash = name.rfind('-');
    if (dash != std::string::npos &&
        absl::SimpleAtoi(name.substr(dash + 1), &number)) {
      last = std::max(last, number);
    }
  }
  return last;
}

void SegmentDirectory::RemoveOthers(const std::set<std::string>& kept) const {
  const auto names = files_.ListDirectory(path_);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    if (name == kManifest || kept.count(name) > 0) continue;
    files_.RemoveFile(path_of(name)).IgnoreError();
  }
}

absl::Status SegmentDirectory::Clear() const {
  // Removes the manifest first: files without a manifest mean nothing, but a
  // manifest without files is damage.
  ATTENDANT_ASSIGN_OR_RETURN(const bool exists, files_.PathExists(path_));
  if (!exists) return absl::OkStatus();
  ATTENDANT_RETURN_IF_ERROR(files_.RemoveFile(path_of(kManifest)));
  ATTENDANT_RETURN_IF_ERROR(files_.SyncDirectory(path_));
  return files_.RemoveTree(path_);
}

}  // namespace attendant
