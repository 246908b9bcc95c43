#include "tests/support/made_up_results.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace pelab {
namespace {

using Json = nlohmann::json;

struct Shape {
  double top;
  double rate;
};
// Roughly the results of real encodings. Pairs that are not listed get middling values.
Shape ShapeOf(const std::string& pe, const std::string& task) {
  static const auto& known = *new std::map<std::pair<std::string, std::string>, Shape>{
      {{"rope", "distance"}, {0.926, 9}},    {{"rope_abs", "distance"}, {0.93, 8}},
      {{"mla", "distance"}, {0.885, 6}},     {{"absolute", "distance"}, {0.62, 4}},
      {{"random", "distance"}, {0.45, 4}},   {{"alibi", "distance"}, {0.21, 5}},
      {{"relative", "distance"}, {0.09, 3}}, {{"nope", "distance"}, {0.035, 20}},
      {{"mla", "counting"}, {0.974, 7}},     {{"nope", "counting"}, {0.777, 6}},
      {{"relative", "counting"}, {0.77, 6}}, {{"rope", "counting"}, {0.694, 5}},
      {{"absolute", "counting"}, {0.66, 5}}, {{"alibi", "counting"}, {0.41, 5}},
      {{"random", "counting"}, {0.55, 4}}};
  const auto found = known.find({pe, task});
  return found == known.end() ? Shape{0.8, 6} : found->second;
}

std::int64_t Count(double share, std::int64_t total) {
  return std::clamp<std::int64_t>(std::llround(share * static_cast<double>(total)), 0, total);
}

}  // namespace

MadeUpJob::MadeUpJob(const std::string& spec_json, std::uint64_t seed)
    : random_(seed, "made up", PurposeId(spec_json)) {
  const Json spec = Json::parse(spec_json);
  pe_ = spec["pe"]["name"];
  task_ = spec["task"]["name"];
  epochs_ = spec["train"]["epochs"];
  layers_ = spec["model"]["layers"];
  heads_ = spec["model"]["heads"];
  train_ = spec["task"]["train_examples"];
  test_ = spec["task"]["test_examples"];
  learning_rate_ = spec["train"]["lr"];
  real_entries_ = pe_ == "mla" ? (heads_ + 1) / 2 : heads_;
  const bool distance = task_ == "distance";
  chance_ = distance ? 1.0 / 70 : 1.0 / 101;
  Shape shape = ShapeOf(pe_, task_);
  if (pe_ == "partial_rope" && distance) {
    const double rotated = spec["pe"].value("heads", 1);
    shape = {0.93 - 0.09 * std::exp(-rotated / 2), 7};
  }
  top_ = std::clamp(shape.top + 0.02 * Noise(0), 0.0, 0.998);
  rate_ = shape.rate * (1 + 0.1 * Noise(1));
  if (distance && (pe_ == "rope" || pe_ == "partial_rope")) deposit_layer_ = 0;
  if (distance && pe_ == "rope_abs") deposit_layer_ = 1;
  if (deposit_layer_ >= layers_) deposit_layer_ = layers_ - 1;
  deposit_head_ = static_cast<int>(random_.At(2) % static_cast<std::uint64_t>(heads_));
}

double MadeUpJob::Noise(std::uint64_t index) const {
  return 2 * (static_cast<double>(random_.At(index) >> 11) / 9007199254740992.0) - 1;
}

double MadeUpJob::Accuracy(int epoch) const {
  const double done = (epoch + 1) / static_cast<double>(epochs_);
  const double wobble = 0.015 * (1 - done) * Noise(100 + static_cast<std::uint64_t>(epoch));
  return std::clamp(top_ * (1 - std::exp(-rate_ * done)) + wobble, 0.0, 1.0);
}

v1::Epoch MadeUpJob::EpochAt(int epoch) const {
  const double test = Accuracy(epoch);
  const double train = std::min(1.0, test + 0.05 * (1 - test) + (pe_ == "random" ? 0.2 : 0.0));
  v1::Epoch made;
  made.set_epoch(epoch);
  made.set_train_loss(-std::log(std::max(train, 1e-3)));
  made.set_train_correct(Count(train, train_));
  made.set_train_total(train_);
  made.set_train_eval_correct(Count(train + 0.1 * (1 - train), train_ / 10));
  made.set_train_eval_total(train_ / 10);
  made.set_test_loss(-std::log(std::max(test, 1e-3)));
  made.set_test_correct(Count(test, test_));
  made.set_test_total(test_);
  made.set_learning_rate(learning_rate_);
  made.set_seconds(2 + 0.1 * Noise(50));
  return made;
}

double MadeUpJob::DropOf(int layer, int head, const std::string& method) const {
  const auto place = static_cast<std::uint64_t>(layer * heads_ + head);
  const double intact = Accuracy(epochs_ - 1);
  if (layer == deposit_layer_ && head == deposit_head_) {
    return intact * (method == "zero" ? 0.65 : 0.5) * (1 + 0.1 * Noise(3));
  }
  const double small = Noise(10'000 + place);
  return intact * 0.03 * small * small * (small > -0.7 ? 1 : -0.5);
}

v1::HeadAblation MadeUpJob::Matrix(const store::Analysis& analysis) const {
  const Json parameters = Json::parse(analysis.parameters_json);
  const std::int64_t total = parameters.value("data", "test") == "all" ? train_ + test_ : test_;
  const double intact = Accuracy(epochs_ - 1);
  v1::HeadAblation matrix;
  matrix.set_version(analysis.version);
  matrix.set_parameters_json(analysis.parameters_json);
  matrix.set_layers(layers_);
  matrix.set_heads(heads_);
  matrix.set_total(total);
  matrix.set_intact_correct(Count(intact, total));
  matrix.set_intact_nll(-std::log(std::max(intact, 1e-3)));
  matrix.set_chance(chance_);
  matrix.set_seconds(1.5);
  const bool slices = parameters.value("target", "head") == "authors";
  for (int layer = 0; layer < layers_; ++layer) {
    for (int head = 0; head < heads_; ++head) {
      const bool missing = slices && head >= real_entries_;
      const double drop = DropOf(layer, head, parameters.value("method", "zero"));
      std::int64_t gained = total / 200;
      const std::int64_t correct = std::clamp<std::int64_t>(
          matrix.intact_correct() - Count(std::abs(drop), total) * (drop < 0 ? -1 : 1), gained,
          total);
      std::int64_t lost = matrix.intact_correct() - correct + gained;
      if (lost < 0) {  // better without the head: move the difference to `gained`
        gained -= lost;
        lost = 0;
      }
      if (slices) matrix.add_missing(missing);
      matrix.add_correct(missing ? 0 : correct);
      matrix.add_lost(missing ? 0 : lost);
      matrix.add_gained(missing ? 0 : gained);
      matrix.add_nll(missing ? 0 : matrix.intact_nll() + std::max(0.0, drop) * 4);
      matrix.add_nll_standard_error(missing ? 0 : 0.01);
    }
  }
  return matrix;
}

v1::AnalysisResult MadeUpJob::Result(const store::Analysis& analysis) const {
  const double intact = Accuracy(epochs_ - 1);
  Json result = Json::object();
  if (analysis.name == "layer_ablation") {
    Json correct = Json::array(), lost = Json::array(), gained = Json::array(), nll = Json::array(),
         error = Json::array();
    for (int layer = 0; layer < layers_; ++layer) {
      const double left = intact * (layer == deposit_layer_ ? 0.1 : 0.8 - 0.05 * layer);
      correct.push_back(Count(left, test_));
      lost.push_back(Count(intact, test_) - Count(left, test_));
      gained.push_back(0);
      nll.push_back(2.0);
      error.push_back(0.01);
    }
    result = {{"total", test_},
              {"intact_correct", Count(intact, test_)},
              {"intact_nll", 1.0},
              {"chance", chance_},
              {"correct", correct},
              {"lost", lost},
              {"gained", gained},
              {"nll", nll},
              {"nll_standard_error", error}};
  } else if (analysis.name == "cumulative_ablation") {
    Json heads = Json::array(), correct = Json::array();
    for (int place = 0; place < layers_ * heads_; ++place) {
      heads.push_back(Json::array({place / heads_, place % heads_}));
      correct.push_back(Count(intact / (place + 2.0), test_));
    }
    const Json order = {{"heads", heads}, {"correct", correct}};
    result = {{"total", test_},    {"intact_correct", Count(intact, test_)},
              {"intact_nll", 1.0}, {"chance", chance_},
              {"greedy", order},   {"random", Json::array({order})}};
  } else if (analysis.name == "split_accuracy") {
    result = {{"total", test_},
              {"intact_correct", Count(intact, test_)},
              {"intact_nll", 1.0},
              {"chance", chance_},
              {"splits", Json::array()}};
    for (const auto& [name, share] : {std::pair("train", 1.02), {"test", 1.0}, {"long", 0.8}}) {
      result["splits"].push_back({{"name", name},
                                  {"total", test_},
                                  {"correct", Count(std::min(1.0, share * intact), test_)},
                                  {"nll", 1.0},
                                  {"chance", chance_}});
    }
  }
  v1::AnalysisResult made;
  made.set_name(analysis.name);
  made.set_version(analysis.version);
  made.set_parameters_json(analysis.parameters_json);
  made.set_result_json(result.dump());
  made.set_seconds(0.5);
  return made;
}

}  // namespace pelab
