// Reads a document's tree and the command line's overrides into a SweepPlan. Reads everything that
// can be read, and reports every part that cannot. SweepChecker then decides whether the jobs are
// valid. Private to core/experiment.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/experiment/declaration.h"
#include "core/experiment/sweep_plan.h"
#include "core/experiment/yaml_value.h"

namespace pelab::experiment {

class SweepReader {
 public:
  // `root` is null if the document is not valid YAML; the overrides are read nevertheless.
  SweepReader(const YamlNode* root, const std::vector<Override>& overrides, Violations* violations);

  SweepPlan Read();
  // Fields whose value could not be read. Rules that depend on them cannot be checked.
  const std::set<std::string, std::less<>>& unread_fields() const { return unread_fields_; }

 private:
  // A node and the path that names it in messages.
  struct Source {
    const YamlNode* node = nullptr;
    std::string path;
  };
  using FieldRows = std::vector<const catalog::Field*>;

  // The document's top level: defined in sweep_reader.cc.
  void ReadOverride(const Override& override);
  void ReadFieldOverride(const Override& override, const Source& source);
  void CheckKeys();
  Source Find(std::string_view key) const;  // the override's node if there is one
  void ReadName();
  void ReadProtocols();
  void ReadProtocol(const Source& source);
  void ReadSeeds(const Source& source, SeedSet* seeds);
  void ReadItems(const std::string& kind, const std::vector<catalog::Entry>& entries,
                 std::vector<Item>* items);
  void ReadItem(const std::string& kind, const std::vector<catalog::Entry>& entries,
                const Source& source, std::vector<Item>* items);
  void ReadItemFields(const std::string& kind, const Source& source, Item item,
                      std::vector<Item>* items);
  // Encodings and data from files: defined in sweep_own.cc.
  void ReadFileOverride(const Override& override);
  void ReadFiles();  // `files`: the same as these overrides, within the document
  void TakeFile(const std::string& path, std::string_view declaration, const Place& place);
  void ReadOwn(const std::string& kind, const Source& source, std::vector<Item>* items);
  void ReadOwnEncoding(const OwnEncoding& encoding, const Source& source, std::vector<Item>* items);
  void ReadOwnTask(const OwnTask& task, const Source& source, std::vector<Item>* items);
  // The splits that the item tests on: those it names, or `test`.
  std::vector<const OwnSplit*> TestsOf(const OwnTask& task, const Source& source);
  // One entry for each combination of the other fields that the item sets.
  std::vector<std::vector<Setting>> SettingsOf(const OwnTask& task, const Source& source);
  // Adds a violation and returns true if the field is one that a file declares.
  bool RefuseDeclared(const catalog::Field& field, const Source& source);
  // Adds a violation for each override of a field whose value follows from a file.
  void RefuseOverriddenFiles();
  // Returns the declaration of the item's file. Null after a violation, now or earlier.
  const Declaration* FileOf(const std::string& kind, const Source& source);
  // One entry for each combination of the options that the item lists, by option.
  std::vector<catalog::Values> ReadOwnOptions(const OwnEncoding& encoding, const Source& source);
  void ReadSection(const std::string& section);
  void ReadResources();
  void ReadOrder();
  void ReadMemory(const Source& source);

  // Axes, exclude rules and analyses: defined in sweep_lists.cc.
  void ReadAxes();
  void ReadAxis(const YamlMember& member);
  void RefuseSetAndSwept(const Axis& axis);
  void ReadExclude();
  void ReadRule(const Source& source);
  void ReadRuleNames(const std::string& kind, const std::vector<catalog::Entry>& entries,
                     const Source& source, std::set<std::string, std::less<>>* names);
  void ReadRuleField(const YamlMember& member, const Source& source, ExcludeRule* rule);
  void ReadAnalyses();
  void ReadAnalysis(const Source& source);
  void AddAnalysis(const std::string& name, const catalog::Values& set, const Source& source);

  // Shared helpers.
  // The items of a list, or the node itself if it is not a list. Adds a violation if the list is
  // empty.
  std::vector<Source> Elements(const Source& source);
  // The values given for a field: one value, or those of a list.
  std::vector<Source> ValuesIn(const catalog::Field& field, const Source& source);
  // The catalog's rows for a job field that the document names in full; empty after a violation.
  FieldRows RowsOf(const YamlMember& member, const std::string& path);
  // The value read by the first row that accepts it; adds a violation if none does.
  std::optional<Setting> ReadSetting(const FieldRows& rows, const Source& source);
  std::string UnknownField(const YamlNode& key) const;
  void Say(const Source& source, std::string allowed, std::string message);

  const YamlNode* root_;
  Violations& violations_;
  SweepPlan plan_;
  std::set<std::string, std::less<>> unread_fields_;
  std::map<std::string, YamlPointer, std::less<>> top_overrides_;  // name, protocol, seed
  std::vector<Setting> analysis_overrides_;
  // By the path that the document names; nullopt: its declaration was reported as wrong.
  std::map<std::string, std::optional<Declaration>, std::less<>> files_;
};

}  // namespace pelab::experiment
