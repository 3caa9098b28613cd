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
  // In `directory`; given up once `cancelled`, if not null, is true.
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

  // A block or less. Others may have filled the disk since the file was begun.
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

class FileSource : public ByteSource {
 public:
  FileSource(std::string path, std::unique_ptr<FileReader> file,
             std::uint64_t size)
      : path_(std::move(path)), file_(std::move(file)), left_(size) {}

  std::uint64_t left() const override { return left_ + buffered(); }

 private:
  std::size_t buffered() const { return block_.size() - at_; }

  absl::Status Read(std::span<std::byte> bytes) override {
    if (buffered() < bytes.size()) {
      const std::size_t have = buffered();
      if (have > 0) std::memcpy(bytes.data(), block_.data() + at_, have);
      bytes = bytes.subspan(have);
      block_.clear();
      at_ = 0;
      if (bytes.size() >= kFileBlockBytes) {
        left_ -= bytes.size();
        return Fill(bytes);
      }
      block_.resize(static_cast<std::size_t>(
          std::min<std::uint64_t>(left_, kFileBlockBytes)));
      left_ -= block_.size();
      ATTENDANT_RETURN_IF_ERROR(Fill(block_));
    }
    if (!bytes.empty()) {
      std::memcpy(bytes.data(), block_.data() + at_, bytes.size());
      at_ += bytes.size();
    }
    return absl::OkStatus();
  }

  absl::Status Fill(std::span<std::byte> bytes) {
    ATTENDANT_ASSIGN_OR_RETURN(const std::size_t size, file_->Read(bytes));
    if (size == bytes.size()) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat(path_, " has become shorter"));
  }

  const std::string path_;
  const std::unique_ptr<FileReader> file_;
  std::uint64_t left_;  // beyond the block
  std::vector<std::byte> block_;
  std::size_t at_ = 0;
};

absl::StatusOr<FileStamp> StampOf(FileReader& file) {
  FileStamp stamp;
  StreamHash hash;
  while (true) {
    ATTENDANT_ASSIGN_OR_RETURN(const std::string block,
                               file.Read(kFileBlockBytes));
    hash.Update(block);
    stamp.size += block.size();
    if (block.size() < kFileBlockBytes) break;
  }
  stamp.hash = hash.Text();
  return stamp;
}

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

absl::StatusOr<std::unique_ptr<ByteSource>> SegmentDirectory::Open(
    const std::string& name, const FileStamp& stamp) const {
  const std::string path = path_of(name);
  ATTENDANT_ASSIGN_OR_RETURN(const bool exists, files_.PathExists(path));
  if (!exists) return absl::DataLossError(absl::StrCat(path, " is missing"));
  ATTENDANT_ASSIGN_OR_RETURN(std::unique_ptr<FileReader> file,
                             files_.OpenToRead(path));
  ATTENDANT_ASSIGN_OR_RETURN(const FileStamp found, StampOf(*file));
  if (found != stamp && !ATTENDANT_PLANTED_BUG("skip_segment_checksum")) {
    return absl::DataLossError(absl::StrCat(
        path, " is damaged: it has ", found.size, " bytes of checksum ",
        found.hash, ", want ", stamp.size, " of checksum ", stamp.hash));
  }
  ATTENDANT_ASSIGN_OR_RETURN(file, files_.OpenToRead(path));
  return std::make_unique<FileSource>(path, std::move(file), found.size);
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
  // Files without a manifest mean nothing; a manifest without files is damage.
  ATTENDANT_RETURN_IF_ERROR(files_.RemoveFile(path_of(kManifest)));
  return files_.RemoveTree(path_);
}

}  // namespace attendant
