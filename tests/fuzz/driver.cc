// What libFuzzer does, in small: replays a corpus, then mutates it for some seconds from a fixed
// seed. A failing input is written to a file whose name is printed.
//
//   sweep_fuzz CORPUS_DIRECTORY|FILE [--seconds 2] [--seed 1]
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/random.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;

std::string current;  // the input that runs, for the signal handler

void SaveCurrent() {
  std::FILE* file = std::fopen("sweep_fuzz-failure", "wb");
  if (file == nullptr) return;
  std::fwrite(current.data(), 1, current.size(), file);
  std::fclose(file);
  std::fputs("the failing input is in ./sweep_fuzz-failure\n", stderr);
}

void OnAbort(int /*signal*/) {
  SaveCurrent();
  std::_Exit(1);
}

void RunOne(std::string input) {
  current = std::move(input);
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(current.data()), current.size());
}

std::vector<std::string> ReadCorpus(const fs::path& path) {
  std::vector<fs::path> files;
  if (fs::is_directory(path)) {
    for (const auto& entry : fs::directory_iterator(path)) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
  } else {
    files.push_back(path);
  }
  std::vector<std::string> corpus;
  for (const fs::path& file : files) {
    std::ifstream stream(file, std::ios::binary);
    std::stringstream text;
    text << stream.rdbuf();
    corpus.push_back(text.str());
  }
  return corpus;
}

const std::vector<std::string>& Words() {
  static const std::vector<std::string> words = {"[",
                                                 "]",
                                                 "{",
                                                 "}",
                                                 ": ",
                                                 ", ",
                                                 "\n",
                                                 "\n  ",
                                                 "\n- ",
                                                 "- ",
                                                 "\t",
                                                 "&a ",
                                                 "*a",
                                                 "!!int ",
                                                 "'",
                                                 "\"",
                                                 "#",
                                                 "|",
                                                 ">",
                                                 "? ",
                                                 "---\n",
                                                 "...\n",
                                                 "~",
                                                 "null",
                                                 "true",
                                                 "..",
                                                 "0",
                                                 "-1",
                                                 "1e-4",
                                                 "1e999",
                                                 ".nan",
                                                 "999999999999999999999",
                                                 "0..999999999999",
                                                 "pe: ",
                                                 "task: ",
                                                 "seed: ",
                                                 "axes: ",
                                                 "exclude: ",
                                                 "analyses: ",
                                                 "rope",
                                                 "relative",
                                                 "counting",
                                                 "model: ",
                                                 "model.layers",
                                                 "pe.base",
                                                 "pe.form",
                                                 "task.length",
                                                 "task.max_distance",
                                                 "published",
                                                 "name: ",
                                                 "name",
                                                 "\\x00",
                                                 "\xff",
                                                 "\xc3\xa9",
                                                 "\xef\xbb\xbf",
                                                 "%YAML 1.2\n",
                                                 "<<: "};
  return words;
}

std::string Mutate(std::string input, const std::vector<std::string>& corpus,
                   pelab::CounterRandom& random) {
  const auto below = [&](std::size_t bound) {
    return static_cast<std::size_t>(
        random.Below(static_cast<std::uint32_t>(std::max<std::size_t>(1, bound))));
  };
  for (std::size_t edits = 1 + below(4); edits > 0; --edits) {
    const std::size_t at = below(input.size() + 1);
    switch (below(6)) {
      case 0:
        input.insert(at, Words()[below(Words().size())]);
        break;
      case 1:
        input.erase(at, 1 + below(8));
        break;
      case 2:
        if (at < input.size()) input[at] = static_cast<char>(below(256));
        break;
      case 3: {  // a piece of itself again
        const std::string piece = input.substr(at, below(40));
        input.insert(below(input.size() + 1), piece);
        break;
      }
      case 4: {  // the tail of another
        const std::string& other = corpus[below(corpus.size())];
        input = input.substr(0, at) + other.substr(below(other.size() + 1));
        break;
      }
      default:
        if (at < input.size()) input.replace(at, 1, Words()[below(Words().size())]);
    }
  }
  constexpr std::size_t kLongest = 4096;
  if (input.size() > kLongest) input.resize(kLongest);
  return input;
}

}  // namespace

int main(int argc, char** argv) {
  double seconds = 2;
  std::uint64_t seed = 1;
  for (int i = 2; i + 1 < argc; i += 2) {
    if (std::string(argv[i]) == "--seconds") seconds = std::atof(argv[i + 1]);
    if (std::string(argv[i]) == "--seed") seed = std::strtoull(argv[i + 1], nullptr, 10);
  }
  const std::vector<std::string> corpus =
      argc > 1 ? ReadCorpus(argv[1]) : std::vector<std::string>();
  if (corpus.empty()) {
    std::cerr << "usage: " << argv[0] << " CORPUS_DIRECTORY|FILE [--seconds 2] [--seed 1]\n";
    return 2;
  }
  std::signal(SIGABRT, OnAbort);
  for (const std::string& input : corpus) RunOne(input);
  pelab::CounterRandom random(seed, "fuzz");
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  std::uint64_t runs = 0;
  while (std::chrono::steady_clock::now() < deadline) {
    RunOne(Mutate(corpus[runs % corpus.size()], corpus, random));
    ++runs;
  }
  std::cout << corpus.size() << " inputs of the corpus, " << runs << " mutations from seed " << seed
            << "\n";
  return runs > 0 ? 0 : 1;
}
