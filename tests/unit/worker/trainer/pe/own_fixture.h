// Files of own encodings, made from TorchScript code, and the jobs that name them.
#pragma once

#include <ATen/ATen.h>
#include <torch/csrc/jit/api/module.h>

#include <cstdint>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/base/sha256.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/worker/trainer/model_fixture.h"
#include "worker/trainer/pe/own_source.h"

namespace pelab::trainer {

// The content of one file, with its declaration.
struct OwnText {
  std::string code;  // the methods
  std::vector<std::string> methods;
  std::map<std::string, at::Tensor> parameters = {};
  std::map<std::string, at::Tensor> buffers = {};
  std::map<std::string, std::int64_t> numbers = {};  // attributes that `configure` sets
  std::string options = "[]";                        // JSON
  std::string needs = "{}";                          // likewise
};

inline std::string Declaration(const OwnText& text) {
  return nlohmann::json{{"format", 1},
                        {"kind", "encoding"},
                        {"name", "test"},
                        {"methods", text.methods},
                        {"causal_only", false},
                        {"options", nlohmann::json::parse(text.options)},
                        {"needs", nlohmann::json::parse(text.needs)}}
      .dump();
}

inline torch::jit::Module ModuleOf(const OwnText& text) {
  torch::jit::Module module("Own");
  for (const auto& [name, value] : text.parameters) module.register_parameter(name, value, false);
  for (const auto& [name, value] : text.buffers) module.register_buffer(name, value);
  for (const auto& [name, value] : text.numbers) {
    module.register_attribute(name, c10::IntType::get(), value);
  }
  module.define(text.code);
  return module;
}

inline std::string BytesOf(const torch::jit::Module& module, const std::string& declaration) {
  std::ostringstream out;
  module.save(out, {{"pelab.json", declaration}});
  return out.str();
}

// A folder of files, which is the one of --files as long as the object lives.
class OwnFiles {
 public:
  OwnFiles() { UseFilesIn(folder_.path()); }
  ~OwnFiles() { UseFilesIn(""); }
  OwnFiles(const OwnFiles&) = delete;
  OwnFiles& operator=(const OwnFiles&) = delete;

  // Writes the file and returns its SHA-256.
  std::string Write(const std::string& bytes) const {
    std::string sha256 = Sha256Hex(bytes);
    WriteAs(sha256, bytes);
    return sha256;
  }
  void WriteAs(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
  std::string Write(const OwnText& text) const {
    return Write(BytesOf(ModuleOf(text), Declaration(text)));
  }

  // The fields of a job that names this file.
  static catalog::Values Fields(const OwnText& text, const std::string& sha256,
                                const std::string& options = "") {
    return {{"pe.encoding", std::string("test")},
            {"pe.file", sha256},
            {"pe.methods", text.methods},
            {"pe.causal_only", false},
            {"pe.options", options}};
  }
  experiment::Job Job(const char* protocol, const OwnText& text, const catalog::Values& set = {},
                      const std::string& options = "") const {
    catalog::Values values = Fields(text, Write(text), options);
    for (const auto& [field, value] : set) values[field] = value;
    return SmallJob(protocol, "own", "distance", values);
  }

 private:
  TempDir folder_;
};

// A decoder with members of these seeds.
struct OwnMembers {
  OwnMembers(const experiment::Job& job, const std::vector<std::int64_t>& seeds,
             at::ScalarType type)
      : decoder(job, ModelConfigFrom(job, 4), &parameters) {
    const bool rounded = type == at::kBFloat16;
    parameters.Materialize(seeds, at::kCPU, rounded ? at::kFloat : type, rounded);
  }
  ParameterSet parameters;
  Decoder decoder;
};

}  // namespace pelab::trainer
