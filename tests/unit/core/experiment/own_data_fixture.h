// Declarations of data from a file.
#pragma once

#include <map>
#include <string>

#include "tests/unit/core/experiment/declared_json.h"

namespace pelab::experiment {

inline const std::string kDataHash(64, 'd');

inline std::map<std::string, std::string> DataMembers() {
  return {{"format", "1"},
          {"kind", R"("task")"},
          {"name", R"("parity")"},
          {"sha256", "\"" + kDataHash + "\""},
          {"bytes", "5000"},
          {"length", "64"},
          {"vocabulary", "20"},
          {"classes", "2"},
          {"first_label", "0"},
          {"targets", R"("sequence")"},
          {"padded", "true"},
          {"splits", R"([{"name":"train","examples":2000,"targets":2000,"chance":0.505,"repeats":0},
               {"name":"test","examples":500,"targets":500,"chance":0.5,"repeats":0},
               {"name":"long","examples":300,"targets":300,"chance":0.25,"repeats":12}])"},
          {"help", R"("odd or even")"}};
}

// A valid declaration with one member replaced by `text` (JSON); an empty text removes it.
inline std::string DeclaredData(const std::string& member = "", const std::string& text = "") {
  std::map<std::string, std::string> members = DataMembers();
  if (!member.empty()) members[member] = text;
  return ObjectOf(members);
}

// The same with a target for each position.
inline std::string DeclaredByPosition() {
  std::string json = DeclaredData("targets", R"("position")");
  json.replace(json.find("\"targets\":2000"), 14, "\"targets\":90000");
  json.replace(json.find("\"targets\":500"), 13, "\"targets\":20000");
  return json;
}

}  // namespace pelab::experiment
