#include "core/base/hashing.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

namespace pelab {
namespace {

// FIPS 180-2, appendix B.
constexpr char kAbc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr char kMillionA[] = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";
constexpr char kEmpty[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

TEST(Hashing, KnownAnswers) {
  EXPECT_EQ(Sha256Hex(""), kEmpty);
  EXPECT_EQ(Sha256Hex("abc"), kAbc);
  EXPECT_EQ(Sha256Hex(std::string(1000000, 'a')), kMillionA);
}

TEST(Hashing, PiecesAndWholeAgreeAndFinishStartsAnew) {
  Sha256 hash;
  for (int i = 0; i < 1000; ++i) hash.Update(std::string(1000, 'a'));
  EXPECT_EQ(hash.FinishHex(), kMillionA);
  hash.Update("a");
  hash.Update("bc");
  EXPECT_EQ(hash.FinishHex(), kAbc);
  EXPECT_EQ(hash.FinishHex(), kEmpty);
}

TEST(Hashing, MovedHashGoesOn) {
  Sha256 first;
  first.Update("ab");
  Sha256 second = std::move(first);
  second.Update("c");
  EXPECT_EQ(second.FinishHex(), kAbc);
}

TEST(Hashing, OnlyAHashHasAPlace) {
  EXPECT_EQ(PlaceOfHash(kAbc), std::string(kAbc).substr(0, 2) + "/" + std::string(kAbc));
  for (const char* text : {"", "ab", "./../victim", "../../victim", "/etc/passwd"}) {
    EXPECT_EQ(PlaceOfHash(text), std::nullopt) << text;
  }
  EXPECT_EQ(PlaceOfHash(std::string(64, 'A')), std::nullopt);
  EXPECT_EQ(PlaceOfHash(std::string(kAbc) + '\0'), std::nullopt);
}

TEST(Hashing, File) {
  const std::string path = testing::TempDir() + "hashing_test_" + std::to_string(getpid());
  std::ofstream(path, std::ios::binary) << std::string(1000000, 'a');
  const auto hash = Sha256File(path);
  ASSERT_TRUE(hash.ok()) << hash.status();
  EXPECT_EQ(hash->sha256, kMillionA);
  EXPECT_EQ(hash->bytes, 1000000u);
  std::remove(path.c_str());
}

TEST(Hashing, FileErrorsNameThePath) {
  const auto missing = Sha256File("/nonexistent/file");
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(missing.status().message().find("/nonexistent/file"), std::string::npos);
  EXPECT_EQ(Sha256File(testing::TempDir()).status().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace pelab
