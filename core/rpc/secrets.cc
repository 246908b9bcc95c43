#include "core/rpc/secrets.h"

#include <openssl/crypto.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status.h"

namespace pelab::rpc {
namespace {

constexpr std::size_t kMinTokenBytes = 16;
constexpr std::size_t kMaxTokenBytes = 4096;
constexpr absl::Duration kLookAgain = absl::Seconds(1);
constexpr absl::Duration kSayAgain = absl::Seconds(10);

// Differs if the file was replaced or written to; empty if there is no file.
std::string MarkOf(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return "";
  return absl::StrCat(info.st_dev, " ", info.st_ino, " ", info.st_size, " ", info.st_mtim.tv_sec,
                      ".", info.st_mtim.tv_nsec);
}

}  // namespace

bool SameSecret(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

absl::StatusOr<std::string> CheckToken(std::string token, absl::string_view source) {
  const bool printable = std::all_of(token.begin(), token.end(), [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c));
  });
  if (!printable || token.size() < kMinTokenBytes || token.size() > kMaxTokenBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "invalid token in ", source, " (", token.size(), " characters); allowed: ", kMinTokenBytes,
        " to ", kMaxTokenBytes, " printable characters without spaces, on one line"));
  }
  return token;
}

void WarnIfOthersCanRead(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode) || (info.st_mode & S_IROTH) == 0) {
    return;
  }
  spdlog::warn("every user of this host can read {}: chmod o-r {}", path, path);
}

absl::StatusOr<std::string> ReadTokenFile(const std::string& path) {
  PELAB_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxTokenBytes + 2));
  return CheckToken(std::string(absl::StripTrailingAsciiWhitespace(text)), path);
}

absl::StatusOr<std::shared_ptr<TokenFile>> TokenFile::Open(const std::string& path) {
  // A change between these two is then seen as one.
  std::string mark = MarkOf(path);
  PELAB_ASSIGN_OR_RETURN(std::string token, ReadTokenFile(path));
  WarnIfOthersCanRead(path);
  return std::shared_ptr<TokenFile>(new TokenFile(path, std::move(mark), std::move(token)));
}

std::shared_ptr<TokenFile> TokenFile::Fixed(std::string token) {
  return std::shared_ptr<TokenFile>(new TokenFile("", "", std::move(token)));
}

TokenFile::TokenFile(std::string path, std::string mark, std::string token)
    : path_(std::move(path)),
      token_(std::move(token)),
      mark_(std::move(mark)),
      looked_(absl::Now()) {}

bool TokenFile::Is(std::string_view given) {
  MutexLock lock(&mutex_);
  Look();
  return SameSecret(given, token_);
}

std::string TokenFile::Current() {
  MutexLock lock(&mutex_);
  Look();
  return token_;
}

std::uint64_t TokenFile::Version() {
  MutexLock lock(&mutex_);
  Look();
  return version_;
}

void TokenFile::Look() {
  const absl::Time now = absl::Now();
  if (now - looked_ < kLookAgain && now >= looked_) return;
  looked_ = now;
  ReadAgain();
}

void TokenFile::ReadAgain() {
  if (path_.empty()) return;
  std::string mark = MarkOf(path_);
  if (mark.empty() || mark == mark_) return;  // the token of a file that has gone stays
  mark_ = std::move(mark);
  absl::StatusOr<std::string> token = ReadTokenFile(path_);
  if (!token.ok()) {
    spdlog::warn("the token stays as it was: {}", std::string{token.status().message()});
    return;
  }
  if (*token == token_) return;
  token_ = *std::move(token);
  ++version_;
  spdlog::info("a new token was read from {}", path_);
}

void WrongTokens::Add() {
  MutexLock lock(&mutex_);
  ++wrong_;
  const absl::Time now = absl::Now();
  if (now - said_ < kSayAgain && now >= said_) return;
  said_ = now;
  spdlog::warn("{}: {} wrong tokens so far", where_, wrong_);
}

}  // namespace pelab::rpc
