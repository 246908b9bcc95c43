// Stands in for libFuzzer in builds without clang: gives a target each input of its corpus once.
//
//   fuzz_replay where tests/fuzz/corpus/where    or    fuzz_replay where FILE…
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz.h"

namespace pelab::fuzz {
namespace {

namespace fs = std::filesystem;

std::map<std::string, InputFunction>& Targets() {
  static auto& targets = *new std::map<std::string, InputFunction>;
  return targets;
}

std::vector<fs::path> Inputs(int argc, char** argv) {
  std::vector<fs::path> inputs;
  for (int i = 2; i < argc; ++i) {
    if (!fs::is_directory(argv[i])) {
      inputs.emplace_back(argv[i]);
      continue;
    }
    for (const auto& entry : fs::directory_iterator(argv[i])) inputs.push_back(entry.path());
  }
  std::sort(inputs.begin(), inputs.end());
  return inputs;
}

}  // namespace

bool AddTarget(const char* name, InputFunction function) {
  return Targets().emplace(name, function).second;
}

int Replay(int argc, char** argv) {
  const std::vector<fs::path> inputs = Inputs(argc, argv);
  const auto target = argc > 1 ? Targets().find(argv[1]) : Targets().end();
  if (target == Targets().end() || inputs.empty()) {
    std::cerr << "usage: " << argv[0] << " TARGET DIRECTORY|FILE…, with at least one input\n"
              << "targets:";
    for (const auto& [name, function] : Targets()) std::cerr << " " << name;
    std::cerr << "\n";
    return 2;
  }
  for (const fs::path& path : inputs) {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
      std::cerr << path << " cannot be read\n";
      return 1;
    }
    const std::string input{std::istreambuf_iterator<char>(file), {}};
    // The last line before a crash names the input.
    std::cout << path.filename().string() << std::endl;
    target->second(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
  }
  return 0;
}

}  // namespace pelab::fuzz

int main(int argc, char** argv) { return pelab::fuzz::Replay(argc, argv); }
