#include "core/torchscript/archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zip.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "core/base/sha256.h"

namespace pelab::torchscript {
namespace {

using testing::HasSubstr;

constexpr char kDeclaration[] =
    R"({"format":1,"kind":"encoding","name":"decay","methods":["angles"],"options":[]})";

using Entries = std::vector<std::pair<std::string, std::string>>;

class ArchiveTest : public testing::Test {
 protected:
  ArchiveTest() { std::filesystem::create_directories(folder_); }
  ~ArchiveTest() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ / name; }
  std::string Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(Path(name), std::ios::binary) << bytes;
    return Path(name);
  }
  // A zip archive with these entries.
  std::string Zip(const std::string& name, const Entries& entries, bool deflated = false) const {
    int code = 0;
    zip_t* archive = zip_open(Path(name).c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code);
    for (const auto& [entry, text] : entries) {
      const zip_int64_t at = zip_file_add(
          archive, entry.c_str(), zip_source_buffer(archive, text.data(), text.size(), 0), 0);
      zip_set_file_compression(archive, static_cast<zip_uint64_t>(at),
                               deflated ? ZIP_CM_DEFLATE : ZIP_CM_STORE, /*level=*/1);
    }
    EXPECT_EQ(zip_close(archive), 0);
    return Path(name);
  }
  static std::string Said(const std::string& path) {
    return std::string(ReadEncodingFile(path).status().message());
  }
  static std::string Bytes(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) /
      ("archive_test_" + std::to_string(getpid()) + "_" +
       testing::UnitTest::GetInstance()->current_test_info()->name());
};

const Entries kWhole = {{"archive/code/__torch__.py", "class A: pass"},
                        {"archive/extra/pelab.json", kDeclaration}};

TEST_F(ArchiveTest, HasTheDeclarationAndTheHash) {
  for (const bool deflated : {false, true}) {
    const std::string path = Zip("mine.pt", kWhole, deflated);
    const auto encoding = ReadEncodingFile(path);
    ASSERT_TRUE(encoding.ok()) << encoding.status();
    EXPECT_EQ(encoding->name, "decay");
    EXPECT_EQ(encoding->sha256, Sha256Hex(Bytes(path)));
    EXPECT_EQ(encoding->bytes, Bytes(path).size());
  }
}

TEST_F(ArchiveTest, WhatIsNoEncodingIsNamed) {
  EXPECT_TRUE(absl::IsNotFound(ReadEncodingFile(Path("none.pt")).status()));
  EXPECT_THAT(Said(Write("empty.pt", "")), HasSubstr("empty.pt: this is no TorchScript file"));
  EXPECT_THAT(Said(Write("text.pt", "def f(): pass")), HasSubstr("no zip archive"));
  EXPECT_THAT(Said(Write("pickle.pt", "\x80\x02}q\x01.")), HasSubstr("no zip archive"));
  EXPECT_THAT(Said(Zip("weights.pt", {{"archive/data.pkl", "x"}})),
              HasSubstr("has no code, so it is no TorchScript file; pelab.save_encoding"));
  EXPECT_THAT(Said(Zip("bare.pt", {{"a/code/__torch__.py", "x"}})),
              HasSubstr("has no declaration (pelab.json)"));
  EXPECT_THAT(Said(Zip("broken.pt", {kWhole[0], {"archive/extra/pelab.json", "{"}})),
              HasSubstr("the declaration is not a JSON object"));
  EXPECT_THAT(Said(Zip("two.pt", {kWhole[0], kWhole[1], {"b/extra/pelab.json", kDeclaration}})),
              HasSubstr("two declarations"));
  EXPECT_THAT(Said(Path("")), HasSubstr("is a directory"));
  const std::string pipe = Path("pipe.pt");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(Said(pipe), HasSubstr("is a pipe")) << "it never waits for a writer";
}

TEST_F(ArchiveTest, IsBounded) {
  EXPECT_THAT(Said(Zip("long.pt", {kWhole[0], {"a/extra/pelab.json", std::string(70'000, ' ')}})),
              HasSubstr("the declaration has 70000 bytes; at most 65536"));
  const std::string zeros(kMaxUnpackedBytes / 4 + 1, '\0');
  EXPECT_THAT(
      Said(Zip(
          "bomb.pt",
          {kWhole[0], kWhole[1], {"a/1", zeros}, {"a/2", zeros}, {"a/3", zeros}, {"a/4", zeros}},
          /*deflated=*/true)),
      HasSubstr("unpacks to more than 268435456 bytes"));
  Entries many = kWhole;
  for (int i = 0; i < kMaxEntries; ++i) many.emplace_back("a/" + std::to_string(i), "");
  EXPECT_THAT(Said(Zip("many.pt", many)), HasSubstr("has 10002 entries; at most 10000"));
}

TEST_F(ArchiveTest, EveryDamageIsAnErrorOrLeavesTheDeclaration) {
  const std::string whole = Bytes(Zip("mine.pt", kWhole));
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const char flip : {'\x01', '\x80'}) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      const auto read = ReadEncodingFile(Write("damaged.pt", damaged));
      if (!read.ok()) {
        EXPECT_TRUE(absl::IsInvalidArgument(read.status())) << i << ": " << read.status();
      }
    }
  }
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(ReadEncodingFile(Write("cut.pt", whole.substr(0, size))).ok()) << size;
  }
}

}  // namespace
}  // namespace pelab::torchscript
