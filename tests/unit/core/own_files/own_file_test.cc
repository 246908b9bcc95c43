// Files that documents name: encodings, data, and what is neither.
#include "core/own_files/own_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <variant>

#include "core/base/sha256.h"
#include "core/own_files/npz.h"
#include "tests/support/data_file.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/core/own_files/npz_fixture.h"

namespace pelab::own_files {
namespace {

using experiment::OwnEncoding;
using experiment::OwnTask;
using testing::HasSubstr;
using testing::StartsWith;

class OwnFileTest : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder_ / name; }
  std::string Write(const std::string& name, const std::string& bytes) const {
    return WriteBytes(Path(name), bytes);
  }
  std::string Encoding(const std::string& name = "mine.pt") const {
    return WriteZip(
        Path(name),
        {{"archive/code/__torch__.py", "class A: pass"},
         {"archive/extra/pelab.json",
          R"({"format":1,"kind":"encoding","name":"decay","methods":["angles"],"options":[]})"}});
  }
  std::string Npz(const std::string& name = "mine.npz") const {
    return WriteZip(
        Path(name),
        {{"tokens.npy", Npy("<i4", "(6, 4)", SmallData().tensors.at("tokens").bytes)},
         {"targets.npy", Npy("<i4", "(6,)", SmallData().tensors.at("targets").bytes)},
         {"split.npy",
          Npy("<U5", "(6,)", Utf32({U"train", U"test", U"train", U"train", U"test", U"test"}, 5))},
         {"name.npy", Npy("<U6", "()", Utf32({U"parity"}, 6))}});
  }
  static std::string SaidOfData(const std::string& path) {
    return std::string(ReadOwnData(path).status().message());
  }
  static std::string SaidOfCheck(const std::string& path) {
    return std::string(CheckOwnFile(path).status().message());
  }

  const TempDir folder_;
};

TEST_F(OwnFileTest, DataIsReadWithItsHashAndSize) {
  const std::string bytes = SmallData().Bytes();
  const std::string path = Write("mine.safetensors", bytes);
  const auto read = ReadOwnData(path);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->file.path, path);
  EXPECT_EQ(read->file.folder, nullptr);
  const OwnTask& task = std::get<OwnTask>(read->file.declaration);
  EXPECT_EQ(task.sha256, Sha256Hex(bytes));
  EXPECT_EQ(task.bytes, bytes.size());
  EXPECT_EQ(task.length, 4);
  EXPECT_EQ(task.splits.size(), 2u);
  EXPECT_EQ(read->data.examples(), 6);
  EXPECT_THAT(read->data.targets, testing::ElementsAre(1, 0, 1, 0, 1, 0));
}

TEST_F(OwnFileTest, ANumpyArchiveIsConvertedIntoACopy) {
  std::string copy;
  {
    const auto read = ReadOwnData(Npz());
    ASSERT_TRUE(read.ok()) << read.status();
    copy = read->file.path;
    EXPECT_NE(copy, Path("mine.npz"));
    ASSERT_NE(read->file.folder, nullptr);
    DataFile expected = SmallData();
    expected.Set<std::uint8_t>("split", {6}, {0, 1, 0, 0, 1, 1});
    expected.metadata = {{"name", "parity"}, {"splits", R"(["train","test"])"}};
    EXPECT_EQ(BytesIn(copy), expected.Bytes());
    const OwnTask& task = std::get<OwnTask>(read->file.declaration);
    EXPECT_EQ(task.name, "parity");
    EXPECT_EQ(task.sha256, Sha256Hex(expected.Bytes()));
    EXPECT_EQ(task.bytes, expected.Bytes().size());
    EXPECT_EQ(read->data.examples(), 6);
  }
  EXPECT_FALSE(std::filesystem::exists(copy)) << "it goes with the last that reads it";
}

TEST_F(OwnFileTest, LinksAreFollowed) {
  Write("mine.safetensors", SmallData().Bytes());
  std::filesystem::create_symlink("mine.safetensors", Path("link.safetensors"));
  EXPECT_TRUE(ReadOwnData(Path("link.safetensors")).ok());
  EXPECT_TRUE(CheckOwnFile(Path("link.safetensors")).ok());
  EXPECT_TRUE(LooksLikeData(Path("link.safetensors")));
}

TEST_F(OwnFileTest, WhatIsNoDataIsNamed) {
  EXPECT_TRUE(absl::IsNotFound(ReadOwnData(Path("none.safetensors")).status()));
  EXPECT_THAT(SaidOfData(Path("none.safetensors")), HasSubstr("none.safetensors"));
  const std::string archive =
      ": this is an archive, not a safetensors file; the name of a NumPy archive ends in .npz, and "
      "an encoding stands under pe";
  EXPECT_EQ(SaidOfData(Encoding()), Path("mine.pt") + archive);
  EXPECT_EQ(SaidOfData(Npz("mine.zip")), Path("mine.zip") + archive);
  EXPECT_EQ(
      SaidOfData(Write("empty.safetensors", "")),
      Path("empty.safetensors") + ": this is no safetensors file: shorter than its header size");
  EXPECT_EQ(SaidOfData(Write("text.npz", "tokens,targets")),
            Path("text.npz") + ": this is no safetensors file: shorter than its header");
  DataFile wrong = SmallData();
  wrong.metadata["chance"] = "2";
  EXPECT_EQ(SaidOfData(Write("wrong.safetensors", wrong.Bytes())),
            Path("wrong.safetensors") + ": metadata chance must be a number from 0 to 1");
  EXPECT_TRUE(absl::IsInvalidArgument(ReadOwnData(Path("wrong.safetensors")).status()));
  const std::string damaged = BytesIn(Npz());
  EXPECT_EQ(SaidOfData(Write("cut.npz", damaged.substr(0, damaged.size() / 2))),
            Path("cut.npz") + ": this is no NumPy archive, or a damaged one");
  EXPECT_EQ(SaidOfData(WriteZip(Path("half.npz"), {{"tokens.npy", Npy("<i4", "(1,)", "abcd")}})),
            Path("half.npz") +
                ": tokens has the shape (1); allowed: (N, T), a row for each "
                "example");
}

TEST_F(OwnFileTest, OnlyRegularFilesAreOpened) {
  std::filesystem::create_directory(Path("folder.safetensors"));
  EXPECT_THAT(SaidOfData(Path("folder.safetensors")), HasSubstr("is a directory"));
  const std::string pipe = Path("pipe.safetensors");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(SaidOfData(pipe), HasSubstr("is a pipe")) << "it never waits for a writer";
  EXPECT_FALSE(CheckOwnFile(pipe).ok());
  EXPECT_TRUE(LooksLikeData(pipe)) << "by its name";
}

TEST_F(OwnFileTest, LooksLikeDataByItsNameOrItsFirstBytes) {
  EXPECT_TRUE(LooksLikeData(Path("none.safetensors")));
  EXPECT_TRUE(LooksLikeData(Path("none.npz")));
  EXPECT_FALSE(LooksLikeData(Path("none.pt")));
  EXPECT_FALSE(LooksLikeData(Path("")));
  EXPECT_FALSE(LooksLikeData(Encoding()));
  EXPECT_FALSE(LooksLikeData(Npz("mine.zip")));
  EXPECT_TRUE(LooksLikeData(Npz("mine.npz")));
  EXPECT_TRUE(LooksLikeData(Write("mine.data", SmallData().Bytes())));
  EXPECT_TRUE(LooksLikeData(Write("short", "PK")));
}

TEST_F(OwnFileTest, AnEncodingIsRead) {
  const std::string path = Encoding();
  const auto read = ReadOwnEncoding(path);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->path, path);
  EXPECT_EQ(read->folder, nullptr);
  const OwnEncoding& encoding = std::get<OwnEncoding>(read->declaration);
  EXPECT_EQ(encoding.name, "decay");
  EXPECT_EQ(encoding.sha256, Sha256Hex(BytesIn(path)));
  EXPECT_TRUE(absl::IsNotFound(ReadOwnEncoding(Path("none.pt")).status()));
  const auto data = ReadOwnEncoding(Write("mine.safetensors", SmallData().Bytes()));
  EXPECT_THAT(std::string(data.status().message()),
              StartsWith(Path("mine.safetensors") + ": this is no TorchScript file"));
}

TEST_F(OwnFileTest, CheckGivesTheHashOfEncodingsAndData) {
  for (const std::string& path : {Encoding(), Write("mine.safetensors", SmallData().Bytes()),
                                  Write("positions", SmallDataByPosition().Bytes())}) {
    const auto hash = CheckOwnFile(path);
    ASSERT_TRUE(hash.ok()) << hash.status();
    EXPECT_EQ(hash->sha256, Sha256Hex(BytesIn(path)));
    EXPECT_EQ(hash->bytes, BytesIn(path).size());
  }
}

// The check is for a coordinator that stores the file; a trainer reads all of it.
TEST_F(OwnFileTest, CheckReadsNoTensor) {
  DataFile wrong = SmallData();
  wrong.Set<float>("tokens", {1}, {1});
  EXPECT_TRUE(CheckOwnFile(Write("wrong.safetensors", wrong.Bytes())).ok());
}

TEST_F(OwnFileTest, CheckRefusesWhatIsNeither) {
  EXPECT_TRUE(absl::IsNotFound(CheckOwnFile(Path("none")).status()));
  EXPECT_EQ(SaidOfCheck(Write("short", "1234567")),
            Path("short") + ": a file of data has 7 bytes; allowed: 8 to 1073741824");
  EXPECT_EQ(SaidOfCheck(Write("empty", "")),
            Path("empty") + ": a file of data has 0 bytes; allowed: 8 to 1073741824");
  EXPECT_EQ(SaidOfCheck(Write("text", "def f(): pass")),
            Path("text") +
                ": this is neither a TorchScript nor a safetensors file: shorter than "
                "its header");
  for (const char* missing : {"tokens", "targets"}) {
    DataFile file = SmallData();
    file.tensors.erase(missing);
    const std::string path = Write("other.safetensors", file.Bytes());
    EXPECT_EQ(SaidOfCheck(path), path + ": the file has no tensors tokens and targets");
    EXPECT_TRUE(absl::IsInvalidArgument(CheckOwnFile(path).status()));
  }
  EXPECT_THAT(SaidOfCheck(Npz()), StartsWith(Path("mine.npz") + ": "))
      << "an archive without code is no encoding";
  EXPECT_FALSE(CheckOwnFile(Path("mine.npz")).ok());
}

}  // namespace
}  // namespace pelab::own_files
