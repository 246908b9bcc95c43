// Any bytes as the file of a spool: it opens, holds a run of events that reads back, and takes
// further events.
#include <cstdio>
#include <fstream>

#include "tests/fuzz/fuzz.h"
#include "tests/support/temp_dir.h"
#include "worker/agent/spool.h"

namespace pelab::spool_fuzz {
namespace {

using fuzz::Require;

// CRC-32C bit by bit, from its definition in RFC 3720, appendix B.4.
std::uint32_t Crc32c(std::string_view data) {
  std::uint32_t crc = ~0U;
  for (const char c : data) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78U : 0U);
  }
  return ~crc;
}

void Append(std::uint32_t number, std::string& file) {
  for (int shift = 0; shift < 32; shift += 8) file += static_cast<char>((number >> shift) & 0xff);
}

// A change of one bit breaks a checksum, and then nothing behind it is read. So most inputs are
// frames without their headers (kind and payload), which are put together here.
std::string FileOf(fuzz::Input input) {
  const bool raw = input.Number(1) == 0;
  if (raw) return std::string(input.Rest());
  std::string file;
  while (!input.empty()) {
    std::string body(input.Bytes(1));
    body += input.Piece();
    Append(static_cast<std::uint32_t>(body.size() - 1), file);
    Append(Crc32c(body), file);
    file += body;
  }
  return file;
}

// Everything after `after`, in order.
std::uint64_t ReadAll(const agent::Spool& spool, std::uint64_t after) {
  v1::EventBatch batch;
  const auto last = spool.Read(after, std::size_t{1} << 30, &batch);
  Require(last.ok(), "what a spool has accepted reads back", last.status().ToString());
  for (const v1::Event& event : batch.events()) {
    Require(event.sequence() == ++after, "events have the numbers of their places");
  }
  return *last;
}

}  // namespace

PELAB_FUZZ_TARGET(spool) {
  static const TempDir directory;
  const std::string path = directory / "spool";
  std::ofstream(path, std::ios::binary | std::ios::trunc) << FileOf(fuzz::Input(data, size));
  agent::SpoolQuota quota(1 << 20);
  {
    auto spool = agent::Spool::Open(path, &quota);
    Require(spool.ok(), "any file opens", spool.status().ToString());
    const std::uint64_t last = (*spool)->last();
    Require(last >= (*spool)->acknowledged(), "the last event is not before the acknowledged one");
    Require(ReadAll(**spool, (*spool)->acknowledged()) == last,
            "a spool reads up to its last event");
    v1::Event event;
    event.mutable_epoch()->set_epoch(3);
    const absl::Status appended = (*spool)->Append(event);
    Require(appended.ok() != (*spool)->finished().has_value(), "an open attempt takes events",
            appended.ToString());
    Require((*spool)->last() == last + (appended.ok() ? 1 : 0), "an event has the next number");
    (*spool)->Acknowledge(last);
    Require(ReadAll(**spool, last) == (*spool)->last(), "a further event reads back");
    (*spool)->Acknowledge(last + 1);
    Require(quota.used() == 0, "what is acknowledged is not charged");
    (*spool)->ContinueAfter(last + 5).IgnoreError();
  }
  const auto again = agent::Spool::Open(path, &quota);
  Require(again.ok(), "what a spool has written opens");
  Require((*again)->file_bytes() == std::filesystem::file_size(path), "nothing of it is cut off");
  return 0;
}

}  // namespace pelab::spool_fuzz
