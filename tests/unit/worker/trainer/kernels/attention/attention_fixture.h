// Attention problems with random data. Attention and its gradients are also computed in double by
// the formula, as a reference for the kernels.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/unit/worker/trainer/kernels/attention/attention_options_fixture.h"
#include "worker/trainer/kernels/attention/attention.h"

namespace pelab::trainer {

using Doubles = std::vector<double>;

// The expected results, or those of a kernel; all contiguous.
struct AttentionResults {
  Doubles out, log_sum_exp;                  // (B, T', H, d), (B, H, T')
  Doubles query, key, value;                 // gradients: (B, T' or T, H, w or d)
  Doubles query_bias, key_bias, value_bias;  // (H, w or d)
  Doubles diagonal;                          // (1 or H, 2T - 1)
  Doubles term;                              // (B, H, T', T)
  // Partial sums for the biases and the diagonal, one sequence after another.
  std::vector<Doubles> partials;
};

template <class Element>
Element Made(double x) {
  Element element;
  SetElement(&element, static_cast<float>(x));
  return element;
}

// (B, rows, H, columns) with any strides.
template <class Element>
struct HeadTensor {
  std::vector<Element> data;
  std::int64_t rows = 0, heads = 0, columns = 0, offset = 0, batch_stride = 0, row_stride = 0,
               head_stride = 0;

  HeadTensor() = default;
  HeadTensor(std::int64_t batch, std::int64_t rows_, std::int64_t heads_, std::int64_t columns_,
             bool padded)
      : rows(rows_), heads(heads_), columns(columns_) {
    head_stride = columns + (padded ? 3 : 0);
    row_stride = heads * head_stride + (padded ? 1 : 0);
    batch_stride = rows * row_stride;
    offset = padded ? 1 : 0;
    data.assign(batch * batch_stride + offset, Made<Element>(0));
  }
  std::int64_t At(std::int64_t b, std::int64_t row, std::int64_t h, std::int64_t c) const {
    return offset + b * batch_stride + row * row_stride + h * head_stride + c;
  }
  HeadRows<Element> View() { return {data.data() + offset, batch_stride, row_stride, head_stride}; }
  HeadRows<const Element> ConstView() const {
    return {data.data() + offset, batch_stride, row_stride, head_stride};
  }
  Doubles Contiguous() const {
    Doubles all;
    const std::int64_t batch =
        batch_stride == 0 ? 0 : static_cast<std::int64_t>(data.size()) / batch_stride;
    for (std::int64_t b = 0; b < batch; ++b) {
      for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t h = 0; h < heads; ++h) {
          for (std::int64_t c = 0; c < columns; ++c) all.push_back(ToFloat(data[At(b, row, h, c)]));
        }
      }
    }
    return all;
  }
};

template <class Element>
class AttentionCase {
 public:
  AttentionCase(const AttentionOptions& options, unsigned seed) : o(options), random_(seed) {
    MakeRows();
    if (o.biases) {
      query_bias_ = Floats(o.heads * o.width, 0.5);
      key_bias_ = Floats(o.heads * o.width, 0.5);
      value_bias_ = Floats(o.heads * o.value_width, 0.5);
    }
    if (o.turned) {
      const std::int64_t count = (o.keys + 2) * (o.rotations_by_head ? o.heads : 1) * o.width;
      query_rotations_ = Floats(count, 0.8);
      key_rotations_ = o.turned_apart ? Floats(count, 0.8) : query_rotations_;
    }
    if (o.lengths) {
      for (std::int64_t b = 0; b < o.batch; ++b) {
        lengths_.push_back(1 + static_cast<std::int64_t>(random_() % o.keys));
      }
    }
    if (o.diagonal != AttentionOptions::kNone) {
      diagonal_ = Floats(DiagonalHeads() * (2 * o.keys - 1), 1);
    }
    if (o.slopes) slopes_ = Floats(o.heads, 0.3);
    if (o.term == AttentionOptions::kWhole) {
      term_ = Floats(o.batch * o.heads * o.rows * o.keys, 1);
      // An additive mask, but never for key 0.
      for (std::size_t i = 0; i < term_.size(); i += 11) {
        if (i % o.keys != 0) term_[i] = -std::numeric_limits<float>::infinity();
      }
    } else if (o.term == AttentionOptions::kRepeated) {
      term_ = Floats(o.rows * o.keys, 1);
    }
    keys_[0] = random_();
    keys_[1] = random_();
    FillProblem();
  }

  const FusedAttention<Element>& problem() const { return problem_; }
  const FusedAttentionGradients<Element>& gradients() const { return gradients_; }

  // Runs forward, backward and the reductions with the caller's functions; sum(partial, members,
  // rows, columns, sums).
  using Run = std::function<void(const FusedAttention<Element>&)>;
  using RunBack =
      std::function<void(const FusedAttention<Element>&, const FusedAttentionGradients<Element>&)>;
  using Sum = std::function<void(const float*, std::int64_t, std::int64_t, std::int64_t, float*)>;
  AttentionResults RunOn(const Run& forward, const RunBack& backward, const Sum& sum) {
    forward(problem_);
    backward(problem_, gradients_);
    AttentionResults results;
    results.out = out_.Contiguous();
    results.log_sum_exp.assign(log_sum_exp_.begin(), log_sum_exp_.end());
    results.query = to_query_.Contiguous();
    results.key = to_key_.Contiguous();
    results.value = to_value_.Contiguous();
    const std::int64_t members = problem_.members.count, batch = o.batch / members;
    const auto summed = [&](const std::vector<float>& partial, std::int64_t rows) {
      std::vector<float> sums(partial.size() / rows);
      if (!sums.empty()) {
        const auto columns = static_cast<std::int64_t>(sums.size()) / members;
        sum(partial.data(), members, rows, columns, sums.data());
      }
      results.partials.emplace_back(partial.begin(), partial.end());
      return Doubles(sums.begin(), sums.end());
    };
    results.query_bias = summed(query_bias_partial_, batch);
    results.key_bias = summed(key_bias_partial_, batch);
    results.value_bias = summed(value_bias_partial_, batch);
    if (o.biases && o.one_projection) {  // all three side by side
      const auto third = static_cast<std::ptrdiff_t>(o.heads * o.width);
      const Doubles all = std::exchange(results.query_bias, {});
      for (auto at = all.begin(); at != all.end(); at += third) {
        Doubles* const to[] = {&results.query_bias, &results.key_bias, &results.value_bias};
        Doubles* const own = to[(at - all.begin()) / third % 3];
        own->insert(own->end(), at, at + third);
      }
    }
    results.diagonal = summed(diagonal_partial_, batch * (o.heads / DiagonalHeads()));
    results.term.assign(term_gradient_.begin(), term_gradient_.end());
    return results;
  }

  AttentionResults Reference() const;

 private:
  std::vector<float> Floats(std::int64_t count, double size) {
    std::normal_distribution<double> normal(0, size);
    std::vector<float> values(count);
    for (float& x : values) x = static_cast<float>(normal(random_));
    return values;
  }
  void Fill(std::vector<Element>* data, double size) {
    std::normal_distribution<double> normal(0, size);
    for (Element& x : *data) x = Made<Element>(normal(random_));
  }
  std::int64_t DiagonalHeads() const {
    return o.diagonal == AttentionOptions::kByHead ? o.heads : 1;
  }

  void MakeRows() {
    const auto rows = [&](std::int64_t count, std::int64_t columns) {
      return HeadTensor<Element>(o.batch, count, o.heads, columns, o.padded_rows);
    };
    query_ = to_query_ = rows(o.rows, o.width);
    key_ = to_key_ = rows(o.keys, o.width);
    value_ = to_value_ = rows(o.keys, o.value_width);
    out_ = out_rest_ = out_gradient_ = rows(o.rows, o.value_width);
    if (o.one_projection) {
      for (HeadTensor<Element>* x : {&query_, &key_, &value_, &to_query_, &to_key_, &to_value_}) {
        x->row_stride = 3 * o.heads * o.width;
        x->batch_stride = o.keys * x->row_stride;
      }
      query_.data.assign(o.batch * query_.batch_stride, Made<Element>(0));
    }
    for (HeadTensor<Element>* x : {&query_, &key_, &value_, &out_gradient_}) Fill(&x->data, 1);
    if (o.one_projection) {
      key_.data = value_.data = to_query_.data = to_key_.data = to_value_.data = query_.data;
      key_.offset = to_key_.offset = o.heads * o.width;
      value_.offset = to_value_.offset = 2 * o.heads * o.width;
      for (HeadTensor<Element>* x : {&key_, &value_, &to_key_, &to_value_}) {
        x->data.resize(x->data.size() + x->offset);
      }
    }
    for (HeadTensor<Element>* x : {&out_, &out_rest_, &to_query_, &to_key_, &to_value_}) {
      for (Element& y : x->data) y = Made<Element>(std::nan(""));
    }
  }

  void FillProblem();

  template <class>
  friend class AttentionMembers;

  AttentionOptions o;
  std::mt19937 random_;
  HeadTensor<Element> query_, key_, value_, out_, out_rest_, out_gradient_, to_query_, to_key_,
      to_value_;
  std::vector<float> query_bias_, key_bias_, value_bias_, query_rotations_, key_rotations_,
      diagonal_, slopes_, term_, log_sum_exp_;
  std::vector<float> query_bias_partial_, key_bias_partial_, value_bias_partial_, diagonal_partial_,
      term_gradient_;
  std::vector<std::int64_t> lengths_;
  std::uint32_t keys_[2] = {};
  std::vector<std::uint32_t> kept_;
  FusedAttention<Element> problem_;
  FusedAttentionGradients<Element> gradients_;
};

template <class Element>
void AttentionCase<Element>::FillProblem() {
  const auto or_null = [](const auto& x) { return x.empty() ? nullptr : x.data(); };
  const float nan = std::nanf("");
  FusedAttention<Element>& p = problem_;
  p.batch = o.batch;
  p.heads = o.heads;
  p.rows = o.rows;
  p.keys = o.keys;
  p.width = o.width;
  p.value_width = o.value_width;
  p.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(o.width)));
  p.query = query_.ConstView();
  p.key = key_.ConstView();
  p.value = value_.ConstView();
  p.query_bias = or_null(query_bias_);
  p.key_bias = or_null(key_bias_);
  p.value_bias = or_null(value_bias_);
  p.query_rotations = or_null(query_rotations_);
  p.key_rotations = or_null(key_rotations_);
  p.rotations_by_head = o.rotations_by_head;
  p.causal = o.causal;
  p.lengths = or_null(lengths_);
  p.diagonal = or_null(diagonal_);
  p.diagonal_by_head = o.diagonal == AttentionOptions::kByHead;
  p.slopes = or_null(slopes_);
  p.term.data = or_null(term_);
  p.term.row_stride = o.keys;
  p.term.key_stride = 1;
  if (o.term == AttentionOptions::kWhole) {
    p.term.head_stride = o.rows * o.keys;
    p.term.batch_stride = o.heads * p.term.head_stride;
  }
  if (o.dropout > 0) {
    p.dropout.threshold = static_cast<std::uint32_t>(o.dropout * 4294967296.0);
    p.dropout.kept = static_cast<float>(1 / (1 - o.dropout));
    p.dropout.first = o.first;
    SkipPositions(o.keys, o.skipped, &p.dropout);
    if (o.keys_in_memory) {
      p.dropout.keys = keys_;
    } else {
      p.dropout.key0 = keys_[0];
      p.dropout.key1 = keys_[1];
    }
  }
  p.out = out_.View();
  if (std::is_same_v<Element, Bf16>) p.out_rest = out_rest_.View();
  log_sum_exp_.assign(o.batch * o.heads * o.rows, nan);
  p.log_sum_exp = log_sum_exp_.data();
  kept_.assign(AttentionKeptWords(p), 0x5a5a5a5aU);
  p.kept = kept_.empty() ? nullptr : kept_.data();

  FusedAttentionGradients<Element>& g = gradients_;
  g.out = out_gradient_.ConstView();
  g.query = to_query_.View();
  g.key = to_key_.View();
  g.value = to_value_.View();
  if (o.biases && o.one_projection) {
    g.bias_batch_stride = 3 * o.heads * o.width;
    query_bias_partial_.assign(o.batch * g.bias_batch_stride, nan);
    g.query_bias = query_bias_partial_.data();
    g.key_bias = g.query_bias + o.heads * o.width;
    g.value_bias = g.key_bias + o.heads * o.width;
  } else if (o.biases) {
    query_bias_partial_.assign(o.batch * o.heads * o.width, nan);
    key_bias_partial_ = query_bias_partial_;
    value_bias_partial_.assign(o.batch * o.heads * o.value_width, nan);
    g.query_bias = query_bias_partial_.data();
    g.key_bias = key_bias_partial_.data();
    g.value_bias = value_bias_partial_.data();
  }
  if (o.diagonal != AttentionOptions::kNone) {
    diagonal_partial_.assign(o.batch * o.heads * (2 * o.keys - 1), nan);
    g.diagonal = diagonal_partial_.data();
  }
  if (o.term != AttentionOptions::kNoTerm) {
    term_gradient_.assign(o.batch * o.heads * o.rows * o.keys, nan);
    g.term = term_gradient_.data();
  }
}

// One row as it enters a product, with the way back for its gradient.
struct TurnedRow {
  Doubles channels;
  const float* rotations = nullptr;  // (w/2) complex

  void Turn(const float* by) {
    rotations = by;
    for (std::size_t c = 0; c + 1 < channels.size(); c += 2) {
      const double x = channels[c], y = channels[c + 1], re = by[c], im = by[c + 1];
      channels[c] = x * re - y * im;
      channels[c + 1] = x * im + y * re;
    }
  }
  Doubles Back(Doubles gradient) const {
    for (std::size_t c = 0; rotations != nullptr && c + 1 < gradient.size(); c += 2) {
      const double x = gradient[c], y = gradient[c + 1], re = rotations[c], im = rotations[c + 1];
      gradient[c] = x * re + y * im;
      gradient[c + 1] = y * re - x * im;
    }
    return gradient;
  }
};

template <class Element>
AttentionResults AttentionCase<Element>::Reference() const {
  const std::int64_t B = o.batch, H = o.heads, R = o.rows, T = o.keys, w = o.width,
                     d = o.value_width;
  AttentionResults results;
  results.out.assign(B * R * H * d, 0);
  results.log_sum_exp.assign(B * H * R, 0);
  results.query.assign(B * R * H * w, 0);
  results.key.assign(B * T * H * w, 0);
  results.value.assign(B * T * H * d, 0);
  if (o.biases) {
    results.query_bias.assign(H * w, 0);
    results.key_bias.assign(H * w, 0);
    results.value_bias.assign(H * d, 0);
  }
  if (!diagonal_.empty()) results.diagonal.assign(diagonal_.size(), 0);
  if (!term_.empty()) results.term.assign(B * H * R * T, 0);
  const auto row_of = [](const HeadTensor<Element>& x, std::int64_t b, std::int64_t row,
                         std::int64_t h, const std::vector<float>& bias) {
    TurnedRow made;
    for (std::int64_t c = 0; c < x.columns; ++c) {
      made.channels.push_back(static_cast<double>(ToFloat(x.data[x.At(b, row, h, c)])) +
                              (bias.empty() ? 0 : bias[h * x.columns + c]));
    }
    return made;
  };
  const auto rotations_at = [&](const std::vector<float>& rotations, std::int64_t at,
                                std::int64_t h) {
    return rotations.data() + (o.rotations_by_head ? at * H + h : at) * w;
  };
  for (std::int64_t b = 0; b < B; ++b) {
    for (std::int64_t h = 0; h < H; ++h) {
      std::vector<TurnedRow> queries, keys, values;
      for (std::int64_t i = 0; i < R; ++i) {
        queries.push_back(row_of(query_, b, i, h, query_bias_));
        if (o.turned) queries[i].Turn(rotations_at(query_rotations_, i + T - R, h));
      }
      for (std::int64_t j = 0; j < T; ++j) {
        keys.push_back(row_of(key_, b, j, h, key_bias_));
        if (o.turned) keys[j].Turn(rotations_at(key_rotations_, j, h));
        values.push_back(row_of(value_, b, j, h, value_bias_));
      }
      std::vector<Doubles> to_keys(T, Doubles(w)), to_values(T, Doubles(d));
      for (std::int64_t i = 0; i < R; ++i) {
        const std::int64_t position = i + T - R;
        Doubles logits(T), weights(T), factors(T, 1);
        double most = -std::numeric_limits<double>::infinity();
        for (std::int64_t j = 0; j < T; ++j) {
          double logit = 0;
          for (std::int64_t c = 0; c < w; ++c)
            logit += queries[i].channels[c] * keys[j].channels[c];
          logit *= problem_.scale;
          if (!diagonal_.empty()) {
            logit +=
                diagonal_[(problem_.diagonal_by_head ? h * (2 * T - 1) : 0) + j - position + T - 1];
          }
          if (o.slopes) logit -= slopes_[h] * static_cast<double>(std::abs(j - position));
          if (!term_.empty()) {
            logit +=
                term_[b * problem_.term.batch_stride + h * problem_.term.head_stride + i * T + j];
          }
          const bool hidden = (o.causal && j > position) || (o.lengths && j >= lengths_[b]);
          logits[j] = hidden ? -std::numeric_limits<double>::infinity() : logit;
          most = std::max(most, logits[j]);
        }
        double sum = 0;
        for (std::int64_t j = 0; j < T; ++j) sum += weights[j] = std::exp(logits[j] - most);
        for (double& x : weights) x /= sum;
        results.log_sum_exp[(b * H + h) * R + i] = most + std::log(sum);
        for (std::int64_t j = 0; j < T && o.dropout > 0; ++j) {
          DropoutStream stream = problem_.dropout;
          stream.key0 = keys_[0];
          stream.key1 = keys_[1];
          const std::int64_t row = (b * H + h) * (R + o.skipped) + i;
          factors[j] = DropoutFactor(stream, static_cast<std::uint32_t>(row * (T + o.skipped) + j));
        }
        Doubles slopes(T);  // gradients of the loss with respect to the weights after dropout
        double mean = 0;
        for (std::int64_t j = 0; j < T; ++j) {
          for (std::int64_t c = 0; c < d; ++c) {
            const double gradient = ToFloat(out_gradient_.data[out_gradient_.At(b, i, h, c)]);
            results.out[((b * R + i) * H + h) * d + c] +=
                weights[j] * factors[j] * values[j].channels[c];
            to_values[j][c] += weights[j] * factors[j] * gradient;
            slopes[j] += gradient * values[j].channels[c] * factors[j];
          }
          mean += weights[j] * slopes[j];
        }
        Doubles to_query(w);
        for (std::int64_t j = 0; j < T; ++j) {
          const double slope = weights[j] * (slopes[j] - mean);
          for (std::int64_t c = 0; c < w; ++c) {
            to_query[c] += problem_.scale * slope * keys[j].channels[c];
            to_keys[j][c] += problem_.scale * slope * queries[i].channels[c];
          }
          if (!diagonal_.empty()) {
            results.diagonal[(problem_.diagonal_by_head ? h * (2 * T - 1) : 0) + j - position + T -
                             1] += slope;
          }
          if (!term_.empty()) results.term[((b * H + h) * R + i) * T + j] = slope;
        }
        to_query = queries[i].Back(to_query);
        for (std::int64_t c = 0; c < w; ++c) {
          results.query[((b * R + i) * H + h) * w + c] = to_query[c];
          if (o.biases) results.query_bias[h * w + c] += to_query[c];
        }
      }
      for (std::int64_t j = 0; j < T; ++j) {
        const Doubles to_key = keys[j].Back(to_keys[j]);
        for (std::int64_t c = 0; c < w; ++c) {
          results.key[((b * T + j) * H + h) * w + c] = to_key[c];
          if (o.biases) results.key_bias[h * w + c] += to_key[c];
        }
        for (std::int64_t c = 0; c < d; ++c) {
          results.value[((b * T + j) * H + h) * d + c] = to_values[j][c];
          if (o.biases) results.value_bias[h * d + c] += to_values[j][c];
        }
      }
    }
  }
  return results;
}

}  // namespace pelab::trainer
