#include "core/storage/snapshots/snapshot_stream.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/storage/files/disk_space.h"
#include "core/storage/files/files.h"
#include "core/storage/rocks/database.h"

namespace attendant {
namespace {

constexpr absl::string_view kStreamMagic = "ATTNSNP1";
constexpr std::size_t kStreamHeaderBytes =
    kStreamMagic.size() + sizeof(std::uint64_t);

std::string Header(const SnapshotManifest& manifest) {
  const std::string text = EncodeSnapshotManifest(manifest);
  const std::uint64_t size = text.size();
  return absl::StrCat(
      kStreamMagic,
      absl::string_view(reinterpret_cast<const char*>(&size), sizeof(size)),
      text);
}

absl::Status DamagedStream(absl::string_view part, absl::string_view what) {
  return StatusWithReason(
      absl::StatusCode::kDataLoss,
      absl::StrCat("the snapshot is damaged: ", part, ": ", what),
      kSnapshotDamaged);
}

constexpr absl::string_view kOtherChecksum = "its checksum does not match";
constexpr absl::string_view kEndsEarly = "the stream ends early";

}  // namespace

SnapshotExport::SnapshotExport(const SnapshotFiles* snapshots,
                               std::unique_ptr<SnapshotFiles::Lease> lease)
    : snapshots_(snapshots),
      lease_(std::move(lease)),
      header_(Header(lease_->manifest())) {}

SnapshotExport::~SnapshotExport() = default;

std::int64_t SnapshotExport::byte_count() const {
  return static_cast<std::int64_t>(header_.size() + kHashTextBytes) +
         manifest().byte_count();
}

absl::StatusOr<std::string> SnapshotExport::Next(std::size_t size) {
  std::string bytes;
  if (header_bytes_ < header_.size()) {
    bytes = header_.substr(header_bytes_, size);
    header_bytes_ += bytes.size();
  } else {
    while (bytes.empty() && part_ < manifest().parts.size()) {
      ATTENDANT_ASSIGN_OR_RETURN(bytes, NextOfPart(size));
    }
    if (bytes.empty() && !ended_) {
      ended_ = true;
      return hash_.Text();
    }
  }
  hash_.Update(bytes);
  return bytes;
}

absl::StatusOr<std::string> SnapshotExport::NextOfPart(std::size_t size) {
  const SnapshotPart& part = manifest().parts[part_];
  if (reader_ == nullptr) {
    absl::StatusOr<std::unique_ptr<FileReader>> reader =
        snapshots_->resources().files.OpenToRead(
            absl::StrCat(lease_->path(), "/", part.path));
    if (absl::IsInternal(reader.status())) {
      return DamagedStream(part.path, reader.status().message());
    }
    ATTENDANT_RETURN_IF_ERROR(reader.status());
    reader_ = *std::move(reader);
    part_bytes_ = 0;
    part_hash_ = std::make_unique<StreamHash>();
  }
  const absl::StatusOr<std::string> bytes = reader_->Read(size);
  if (absl::IsInternal(bytes.status())) {
    return DamagedStream(part.path, bytes.status().message());
  }
  ATTENDANT_RETURN_IF_ERROR(bytes.status());
  part_hash_->Update(*bytes);
  part_bytes_ += static_cast<std::int64_t>(bytes->size());
  if (bytes->size() == size && part_bytes_ <= part.size) return *bytes;
  if (part_bytes_ != part.size || part_hash_->Text() != part.hash) {
    return DamagedStream(part.path, kOtherChecksum);
  }
  reader_ = nullptr;
  ++part_;
  return *bytes;
}

SnapshotImport::SnapshotImport(SnapshotFiles* snapshots)
    : snapshots_(snapshots) {}

SnapshotImport::~SnapshotImport() = default;

bool SnapshotImport::Fill(absl::string_view& rest, std::size_t size) {
  const std::size_t count = std::min(size - buffer_.size(), rest.size());
  buffer_.append(rest.data(), count);
  rest.remove_prefix(count);
  return buffer_.size() == size;
}

absl::Status SnapshotImport::Name(absl::string_view catalog,
                                  absl::string_view name) {
  for (const auto& [text, field] :
       {std::pair(catalog, "catalog"), std::pair(name, "name")}) {
    if (text.empty()) continue;
    ATTENDANT_RETURN_IF_ERROR(ValidateCatalogName(text, field));
  }
  catalog_ = std::string(catalog);
  name_ = std::string(name);
  return absl::OkStatus();
}

absl::Status SnapshotImport::Append(absl::string_view bytes) {
  while (status_.ok() && !bytes.empty()) status_ = Take(bytes);
  return status_;
}

absl::Status SnapshotImport::Take(absl::string_view& rest) {
  switch (step_) {
    case Step::kHeader: {
      if (!Fill(rest, kStreamHeaderBytes)) return absl::OkStatus();
      std::uint64_t size = 0;
      std::memcpy(&size, buffer_.data() + kStreamMagic.size(), sizeof(size));
      if (absl::string_view(buffer_).substr(0, kStreamMagic.size()) !=
          kStreamMagic) {
        return InvalidField("bytes", "other bytes",
                            "an exported snapshot, which begins with ATTNSNP1");
      }
      if (size > static_cast<std::uint64_t>(kMaxSnapshotManifestBytes)) {
        return DamagedStream(
            kSnapshotManifest,
            absl::StrCat(size, " bytes are more than the ",
                         kMaxSnapshotManifestBytes, " allowed"));
      }
      manifest_bytes_ = size;
      hash_.Update(buffer_);
      buffer_.clear();
      step_ = Step::kManifest;
      return absl::OkStatus();
    }
    case Step::kManifest:
      if (!Fill(rest, manifest_bytes_)) return absl::OkStatus();
      return TakeManifest();
    case Step::kParts:
      return TakePart(rest);
    case Step::kChecksum:
      if (!Fill(rest, kHashTextBytes)) return absl::OkStatus();
      if (buffer_ != hash_.Text()) {
        return DamagedStream("the whole", kOtherChecksum);
      }
      step_ = Step::kEnd;
      return absl::OkStatus();
    case Step::kEnd:
      return DamagedStream("the whole", "bytes follow its end");
  }
  return absl::InternalError("no step");
}

absl::Status SnapshotImport::TakeManifest() {
  absl::StatusOr<SnapshotManifest> manifest = DecodeSnapshotManifest(buffer_);
  if (!manifest.ok()) {
    return StatusWithReason(
        absl::StatusCode::kDataLoss,
        absl::StrCat("the snapshot is damaged: ", manifest.status().message()),
        kSnapshotDamaged);
  }
  hash_.Update(buffer_);
  buffer_ = std::string();
  manifest_ = *std::move(manifest);
  if (!catalog_.empty()) manifest_->catalog = catalog_;
  if (!name_.empty()) manifest_->name = name_;
  ATTENDANT_ASSIGN_OR_RETURN(
      draft_, snapshots_->NewDraft({manifest_->catalog, manifest_->name}));
  ATTENDANT_RETURN_IF_ERROR(CheckDiskSpace(
      draft_->path(), static_cast<std::uint64_t>(manifest_->byte_count())));
  step_ = Step::kParts;
  return NextPart();
}

// Opens the next part; completes empty parts at once.
absl::Status SnapshotImport::NextPart() {
  const Files& files = snapshots_->resources().files;
  while (true) {
    if (writer_ != nullptr) {
      const SnapshotPart& done = manifest_->parts[part_];
      if (part_hash_->Text() != done.hash) {
        return DamagedStream(done.path, kOtherChecksum);
      }
      ATTENDANT_RETURN_IF_ERROR(writer_->Commit());
      writer_ = nullptr;
      ++part_;
    }
    if (part_ == manifest_->parts.size()) {
      step_ = Step::kChecksum;
      return absl::OkStatus();
    }
    const SnapshotPart& part = manifest_->parts[part_];
    const std::string path = absl::StrCat(draft_->path(), "/", part.path);
    ATTENDANT_RETURN_IF_ERROR(files.MakeDirectory(
        std::filesystem::path(path).parent_path().string()));
    ATTENDANT_ASSIGN_OR_RETURN(writer_, files.NewFile(path));
    part_hash_ = std::make_unique<StreamHash>();
    if (part.size > 0) return absl::OkStatus();
  }
}

absl::Status SnapshotImport::TakePart(absl::string_view& rest) {
  const SnapshotPart& part = manifest_->parts[part_];
  const auto size = static_cast<std::uint64_t>(part.size);
  const absl::string_view bytes = rest.substr(
      0, std::min<std::uint64_t>(rest.size(), size - writer_->size()));
  // Others may have filled the disk since.
  ATTENDANT_RETURN_IF_ERROR(CheckDiskSpace(draft_->path(), bytes.size()));
  ATTENDANT_RETURN_IF_ERROR(writer_->Append(bytes));
  part_hash_->Update(bytes);
  hash_.Update(bytes);
  rest.remove_prefix(bytes.size());
  return writer_->size() == size ? NextPart() : absl::OkStatus();
}

absl::StatusOr<SnapshotManifest> SnapshotImport::Finish(LongWork& work) {
  ATTENDANT_RETURN_IF_ERROR(status_);
  switch (step_) {
    case Step::kHeader:
      return DamagedStream("the beginning", kEndsEarly);
    case Step::kManifest:
      return DamagedStream(kSnapshotManifest, kEndsEarly);
    case Step::kParts:
      return DamagedStream(manifest_->parts[part_].path, kEndsEarly);
    case Step::kChecksum:
      return DamagedStream("the whole", kEndsEarly);
    case Step::kEnd:
      break;
  }
  ATTENDANT_RETURN_IF_ERROR(snapshots_->Adopt(*draft_, *manifest_, work));
  return *manifest_;
}

}  // namespace attendant
