#include "worker/agent/spool.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "worker/agent/limits.h"

namespace pelab::agent {
namespace {

constexpr char kEventFrame = 1;
constexpr char kBaseFrame = 2;
constexpr std::size_t kHeaderBytes = 9;
// rewrite the file only for at least so many acknowledged bytes
constexpr std::uint64_t kCompactBytes = 1 << 20;
// The coordinator takes no larger number (CheckEnvelope), and numbers up to it cannot wrap to 0.
constexpr std::uint64_t kMostSequence = std::uint64_t{1} << 62;

// CRC-32C (Castagnoli), reflected polynomial 0x82F63B78, as in RFC 3720, appendix B.4.
constexpr std::array<std::uint32_t, 256> CrcTable() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0x82F63B78u : 0u);
    table[i] = value;
  }
  return table;
}

std::uint32_t Crc32c(absl::string_view data) {
  static constexpr std::array<std::uint32_t, 256> kTable = CrcTable();
  std::uint32_t crc = ~0u;
  for (const char c : data) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(c)) & 0xFF];
  return ~crc;
}

void PutNumber(std::uint64_t number, int bytes, std::string* out) {
  for (int i = 0; i < bytes; ++i) *out += static_cast<char>((number >> (8 * i)) & 0xFF);
}

std::uint64_t GetNumber(const char* at, int bytes) {
  std::uint64_t number = 0;
  for (int i = 0; i < bytes; ++i)
    number |= std::uint64_t{static_cast<unsigned char>(at[i])} << (8 * i);
  return number;
}

std::string Frame(char kind, const std::string& payload) {
  std::string body(1, kind);
  body += payload;
  std::string frame;
  PutNumber(payload.size(), 4, &frame);
  PutNumber(Crc32c(body), 4, &frame);
  return frame + body;
}

std::string BaseFrame(std::uint64_t sequence) {
  std::string payload;
  PutNumber(sequence, 8, &payload);
  return Frame(kBaseFrame, payload);
}

// Reads exactly `size` bytes at `offset`; false at the end of the file.
absl::StatusOr<bool> ReadAt(int fd, std::uint64_t offset, std::size_t size, std::string* data) {
  data->resize(size);
  std::size_t got = 0;
  while (got < size) {
    const ssize_t part =
        pread(fd, data->data() + got, size - got, static_cast<off_t>(offset + got));
    if (part < 0 && errno == EINTR) continue;
    if (part < 0) return ErrnoStatus(errno, "cannot read the spool");
    if (part == 0) return false;
    got += static_cast<std::size_t>(part);
  }
  return true;
}

struct LoadedFrame {
  char kind = 0;
  std::string payload;
};

// Reads the frame at `offset`; false if there is no complete and undamaged frame.
absl::StatusOr<bool> ReadFrame(int fd, std::uint64_t offset, LoadedFrame* frame) {
  std::string header;
  PELAB_ASSIGN_OR_RETURN(const bool has_header, ReadAt(fd, offset, kHeaderBytes, &header));
  if (!has_header) return false;
  const auto size = static_cast<std::uint32_t>(GetNumber(header.data(), 4));
  if (size > limits::kSpooledEventBytes) return false;
  std::string body;
  PELAB_ASSIGN_OR_RETURN(const bool has_body,
                         ReadAt(fd, offset + kHeaderBytes - 1, size + 1, &body));
  if (!has_body || Crc32c(body) != GetNumber(header.data() + 4, 4)) return false;
  frame->kind = body[0];
  frame->payload = body.substr(1);
  return true;
}

}  // namespace

Spool::Spool(std::string path, UniqueFd fd, SpoolQuota* quota)
    : path_(std::move(path)), quota_(quota), fd_(std::move(fd)) {}

Spool::~Spool() { quota_->Subtract(charged_); }

absl::StatusOr<std::unique_ptr<Spool>> Spool::Open(const std::string& path, SpoolQuota* quota) {
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd) return ErrnoStatus(errno, absl::StrCat("cannot open ", path));
  std::unique_ptr<Spool> spool(new Spool(path, std::move(fd), quota));
  MutexLock lock(&spool->mutex_);
  PELAB_RETURN_IF_ERROR(spool->Load());
  return spool;
}

absl::Status Spool::Load() {
  std::uint64_t offset = 0;
  LoadedFrame frame;
  while (true) {
    PELAB_ASSIGN_OR_RETURN(const bool whole, ReadFrame(fd_.get(), offset, &frame));
    if (!whole) break;
    v1::Event event;
    if (frame.kind == kBaseFrame && frame.payload.size() == 8) {
      const std::uint64_t base = GetNumber(frame.payload.data(), 8);
      if (base < LastLocked() || base > kMostSequence) break;
      base_ = base;
      offsets_.clear();
      finished_.reset();
    } else if (frame.kind == kEventFrame && event.ParseFromString(frame.payload) &&
               event.sequence() == LastLocked() + 1) {
      offsets_.push_back(offset);
      if (event.has_finished()) finished_ = event.finished();
    } else {
      break;
    }
    offset += kHeaderBytes + frame.payload.size();
  }
  acknowledged_ = base_;
  if (ftruncate(fd_.get(), static_cast<off_t>(offset)) != 0) {
    return ErrnoStatus(errno, absl::StrCat("cannot cut ", path_));
  }
  bytes_ = offset;
  Charge();
  return absl::OkStatus();
}

std::uint64_t Spool::FirstUnacknowledged() const {
  return acknowledged_ < LastLocked() ? offsets_[acknowledged_ - base_] : bytes_;
}

void Spool::Charge() {
  const std::uint64_t unacknowledged = bytes_ - FirstUnacknowledged();
  quota_->Add(unacknowledged);
  quota_->Subtract(charged_);
  charged_ = unacknowledged;
}

absl::Status Spool::AppendFrame(char kind, const std::string& payload) {
  if (payload.size() > limits::kSpooledEventBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("an event of ", payload.size(), " bytes is longer than ",
                     limits::kSpooledEventBytes, ", the most allowed"));
  }
  const std::string frame = Frame(kind, payload);
  if (lseek(fd_.get(), static_cast<off_t>(bytes_), SEEK_SET) < 0) {
    return ErrnoStatus(errno, absl::StrCat("cannot write ", path_));
  }
  absl::Status written = WriteAll(fd_.get(), frame, path_);
  if (!written.ok()) {
    // A half-written frame would hide all events that are appended after it.
    [[maybe_unused]] const int cut = ftruncate(fd_.get(), static_cast<off_t>(bytes_));
    return written;
  }
  bytes_ += frame.size();
  return absl::OkStatus();
}

absl::Status Spool::Append(v1::Event event) {
  MutexLock lock(&mutex_);
  if (finished_.has_value())
    return absl::FailedPreconditionError("the attempt has ended; nothing may follow");
  event.set_sequence(LastLocked() + 1);
  const std::uint64_t offset = bytes_;
  PELAB_RETURN_IF_ERROR(AppendFrame(kEventFrame, event.SerializeAsString()));
  offsets_.push_back(offset);
  Charge();
  if (event.has_finished()) finished_ = event.finished();
  // If the sync fails, the event is still written, as safe as the other events.
  if (finished_.has_value()) fdatasync(fd_.get());
  return absl::OkStatus();
}

absl::StatusOr<std::uint64_t> Spool::Read(std::uint64_t after, std::size_t max_bytes,
                                          v1::EventBatch* batch) const {
  MutexLock lock(&mutex_);
  std::uint64_t sequence = std::max(after, base_);
  std::size_t bytes = 0;
  LoadedFrame frame;
  while (sequence < LastLocked() && bytes < max_bytes) {
    PELAB_ASSIGN_OR_RETURN(const bool whole,
                           ReadFrame(fd_.get(), offsets_[sequence - base_], &frame));
    const bool read = whole && batch->add_events()->ParseFromString(frame.payload);
    if (!read) {
      // What was read before may be sent; half an event may not.
      if (whole) batch->mutable_events()->RemoveLast();
      return absl::DataLossError(
          absl::StrCat(path_, ": event ", sequence + 1, " cannot be read back"));
    }
    bytes += frame.payload.size();
    ++sequence;
  }
  return sequence;
}

void Spool::Acknowledge(std::uint64_t sequence) {
  MutexLock lock(&mutex_);
  sequence = std::min(sequence, LastLocked());
  if (sequence <= acknowledged_) return;
  acknowledged_ = sequence;
  Charge();
  const std::uint64_t passed = FirstUnacknowledged();
  // A failed rewrite costs only disk space.
  if (passed >= kCompactBytes && passed >= bytes_ / 2) Compact().IgnoreError();
}

absl::Status Spool::Compact() {
  const std::uint64_t start = FirstUnacknowledged();
  std::string data = BaseFrame(acknowledged_);
  const std::uint64_t shift = start - data.size();
  std::string rest;
  PELAB_ASSIGN_OR_RETURN(const bool whole, ReadAt(fd_.get(), start, bytes_ - start, &rest));
  if (!whole) return absl::DataLossError(absl::StrCat(path_, " is shorter than what was written"));
  data += rest;
  PELAB_RETURN_IF_ERROR(WriteFileAtomically(path_, data, 0600));
  UniqueFd fd(open(path_.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd) return ErrnoStatus(errno, absl::StrCat("cannot open ", path_));
  fd_ = std::move(fd);
  offsets_.erase(offsets_.begin(),
                 offsets_.begin() + static_cast<std::ptrdiff_t>(acknowledged_ - base_));
  for (std::uint64_t& offset : offsets_) offset -= shift;
  base_ = acknowledged_;
  bytes_ = data.size();
  return absl::OkStatus();
}

absl::Status Spool::ContinueAfter(std::uint64_t sequence) {
  MutexLock lock(&mutex_);
  if (sequence <= LastLocked()) return absl::OkStatus();
  if (sequence > kMostSequence) {
    return absl::InvalidArgumentError(absl::StrCat("the coordinator says that it has event ",
                                                   sequence, "; allowed: at most ", kMostSequence));
  }
  std::string payload;
  PutNumber(sequence, 8, &payload);
  PELAB_RETURN_IF_ERROR(AppendFrame(kBaseFrame, payload));
  offsets_.clear();
  base_ = acknowledged_ = sequence;
  Charge();
  finished_.reset();
  return absl::OkStatus();
}

std::uint64_t Spool::last() const {
  MutexLock lock(&mutex_);
  return LastLocked();
}

std::uint64_t Spool::acknowledged() const {
  MutexLock lock(&mutex_);
  return acknowledged_;
}

std::optional<v1::Finished> Spool::finished() const {
  MutexLock lock(&mutex_);
  return finished_;
}

std::uint64_t Spool::file_bytes() const {
  MutexLock lock(&mutex_);
  return bytes_;
}

}  // namespace pelab::agent
