// Declarations of encodings from a file, and sweeps that name them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/experiment/sweep.h"
#include "tests/unit/core/experiment/declared_json.h"

namespace pelab::experiment {

inline const std::string kEncodingHash(64, 'a');

// A valid declaration with these members replaced by JSON; an empty text removes one.
inline std::string DeclaredEncodingWith(const std::map<std::string, std::string>& set) {
  std::map<std::string, std::string> members = {
      {"format", "1"},
      {"kind", R"("encoding")"},
      {"name", R"("decay")"},
      {"sha256", "\"" + kEncodingHash + "\""},
      {"bytes", "1234"},
      {"methods", R"(["distance_bias","input_term"])"},
      {"causal_only", "false"},
      {"options", R"([{"name":"beta","type":"int","default":2,"min":1,"max":9},
                      {"name":"alpha","type":"real","default":0.5,"min":0,"max":10,"help":"a"},
                      {"name":"on","type":"bool","default":true}])"},
      {"help", R"("decays")"}};
  for (const auto& [member, text] : set) members[member] = text;
  return ObjectOf(members);
}

inline std::string DeclaredEncoding(const std::string& member = "", const std::string& text = "") {
  return member.empty() ? DeclaredEncodingWith({}) : DeclaredEncodingWith({{member, text}});
}

// The messages of the violations, each with its place.
inline std::vector<std::string> Complaints(const SweepResult& result) {
  std::vector<std::string> messages;
  for (const Violation& violation : result.violations) {
    messages.push_back(Format(violation, "a.yaml"));
  }
  return messages;
}

}  // namespace pelab::experiment
