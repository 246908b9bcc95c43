// Where an export has the files of own encodings and data, and how sweep.yaml names them.
#include "client/export/own_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

#include "client/options/own_files.h"
#include "core/base/strings.h"
#include "core/experiment/declaration.h"
#include "tests/unit/core/experiment/own_data_fixture.h"

namespace pelab::client {
namespace {

using testing::ElementsAre;
using testing::Pair;
using testing::UnorderedElementsAre;

const std::vector<std::string> kReserved = {"sweep.yaml", "jobs.csv"};

std::string Declared(char digit) {
  return experiment::DeclaredData("sha256", Concat("\"", std::string(64, digit), "\""));
}

// A sweep with these paths, each with a file whose hash consists of this digit.
v1::Sweep SweepOf(const std::string& document, const std::map<std::string, char>& files) {
  v1::Sweep sweep;
  sweep.set_document(document);
  for (const auto& [path, digit] : files) {
    v1::Override& override = *sweep.add_overrides();
    override.set_field(Concat(experiment::kFileOverride, path));
    override.set_value(Declared(digit));
  }
  return sweep;
}

std::map<std::string, std::string> NamesOf(const ExportedDocument& document) {
  std::map<std::string, std::string> names;
  for (const ExportedFile& file : document.files) names[file.path] = file.name;
  return names;
}

TEST(OwnNamesTest, PathsInTheFolderStay) {
  const std::string text = "task: {name: own, file: data/./a.npz}  # mine\n";
  const auto placed = PlaceOwnFiles(SweepOf(text, {{"data/./a.npz", 'a'}, {"b", 'b'}}), kReserved);
  EXPECT_THAT(NamesOf(placed), ElementsAre(Pair("b", "b"), Pair("data/./a.npz", "data/a.npz")));
  EXPECT_EQ(placed.text, text);
}

TEST(OwnNamesTest, OthersAreInAFolderOfTheirOwn) {
  const std::string text = R"(# by hand
task:
  - {name: own, file: /data/a.npz, test: long}   # here
  - {name: own, file: '../a.npz'}
  - {file: "/other/a.npz", name: own}
  - {name: own, file: jobs.csv}
  - {name: own, file: jobs.csv/a}
  - {name: own, file: a.npz}
  - {name: distance, note: /data/a.npz}
)";
  const auto placed = PlaceOwnFiles(SweepOf(text, {{"/data/a.npz", 'a'},
                                                   {"../a.npz", 'b'},
                                                   {"/other/a.npz", 'a'},
                                                   {"jobs.csv", 'c'},
                                                   {"jobs.csv/a", 'd'},
                                                   {"a.npz", 'e'}}),
                                    kReserved);
  EXPECT_THAT(NamesOf(placed),
              UnorderedElementsAre(Pair("/data/a.npz", "files/aaaaaaaa-a.npz"),
                                   Pair("../a.npz", "files/bbbbbbbb-a.npz"),
                                   Pair("/other/a.npz", "files/aaaaaaaa-a.npz"),
                                   Pair("jobs.csv", "files/cccccccc-jobs.csv"),
                                   Pair("jobs.csv/a", "files/dddddddd-a"), Pair("a.npz", "a.npz")));
  EXPECT_EQ(placed.text, R"(# by hand
task:
  - {name: own, file: "files/aaaaaaaa-a.npz", test: long}   # here
  - {name: own, file: "files/bbbbbbbb-a.npz"}
  - {file: "files/aaaaaaaa-a.npz", name: own}
  - {name: own, file: "files/cccccccc-jobs.csv"}
  - {name: own, file: "files/dddddddd-a"}
  - {name: own, file: a.npz}
  - {name: distance, note: /data/a.npz}
)");
}

TEST(OwnNamesTest, NoNameIsThatOfAnotherFile) {
  const std::string text = "pe: rope\n";
  const auto placed = PlaceOwnFiles(
      SweepOf(
          text,
          {{"files/aaaaaaaa-x", 'b'}, {"/x", 'a'}, {"a.npz", 'c'}, {"./a.npz", 'd'}, {"..", 'e'}}),
      kReserved);
  EXPECT_THAT(
      NamesOf(placed),
      UnorderedElementsAre(Pair("files/aaaaaaaa-x", "files/aaaaaaaa-x"),
                           Pair("/x", "files/aaaaaaaaa-x"), Pair("./a.npz", "a.npz"),
                           Pair("a.npz", "files/cccccccc-a.npz"), Pair("..", "files/eeeeeeee")));
}

TEST(OwnNamesTest, ASheetsSweepDeclaresItsFilesItself) {
  const std::string text =
      Concat("task: {name: own, file: /data/a}\nfiles:\n  /data/a: ", Declared('a'), "\n");
  const auto placed = PlaceOwnFiles(SweepOf(text, {}), kReserved);
  EXPECT_THAT(NamesOf(placed), ElementsAre(Pair("/data/a", "files/aaaaaaaa-a")));
  EXPECT_THAT(placed.text, testing::StartsWith("task: {name: own, file: \"files/aaaaaaaa-a\"}\n"));
}

TEST(RenameOwnFilesTest, WhatCannotBeReplacedInPlaceIsWrittenAnew) {
  for (const char* path : {"\"/data/\\u0061\"", "&file /data/a", "'/data/''a'"}) {
    const std::string quote = std::string(path).starts_with("'") ? "'" : "";
    const std::string document =
        RenameOwnFiles(Concat("name: t\npe: [rope, {name: own, file: ", path, "}]\nseed: 0..4\n"),
                       {{Concat("/data/", quote, "a"), "files/a"}});
    EXPECT_THAT(document, testing::HasSubstr("files/a")) << path;
    EXPECT_THAT(document, testing::Not(testing::HasSubstr("/data/"))) << path;
    EXPECT_THAT(document, testing::HasSubstr("0..4")) << path;
  }
}

}  // namespace
}  // namespace pelab::client
