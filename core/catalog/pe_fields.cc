// Fields pe.*: each row belongs to one PE.
#include <algorithm>
#include <cstdint>

#include "core/catalog/own.h"
#include "core/catalog/tables.h"

namespace pelab::catalog {
namespace {

std::int64_t IntOf(const Values& values, std::string_view field) {
  return std::get<std::int64_t>(values.find(field)->second);
}

// These derived defaults are valid for every width, even one that a constraint refuses.
Value LongestDistance(const Values& values) {
  return std::max<std::int64_t>(1, IntOf(values, "model.max_len") - 1);
}
Value HalfWidth(const Values& values) {
  return std::max<std::int64_t>(1, IntOf(values, "model.d_model") / 2);
}
Value HeadSize(const Values& values) {
  const std::int64_t heads = std::max<std::int64_t>(1, IntOf(values, "model.heads"));
  return std::max<std::int64_t>(1, IntOf(values, "model.d_model") / heads);
}

Field Base(std::string_view owner, std::string_view help) {
  return RealField("pe.base", owner, {1, 1e12, true, false}, Always(10000.0), "", help);
}
constexpr std::string_view kHeadBase = "pair t of a head rotates by base^(-2t/head size) per token";

// Vectors added to the input, and biases or vectors added to the attention logits.
std::vector<Field> AddedFields() {
  return {
      ChoiceField("pe.form", "absolute", {"sinusoidal", "learned"}, Always(Text("sinusoidal")),
                  "sines and cosines, or a trained table"),
      When({"pe.form", "learned"},
           RealField("pe.init_std", "absolute", {0, 100, true, false}, Always(1.0), "",
                     "standard deviation of the table at the start")),

      Switch(BoolField("pe.trainable", "random", PublishedOr(true, false),
                       "whether training changes the random table")),
      RealField("pe.init_std", "random", {0, 100, true, false}, Always(1.0), "",
                "standard deviation of the table at the start"),

      Switch(ChoiceField(
          "pe.form", "relative", {"t5", "table"}, PublishedOr(Text("table"), Text("t5")),
          "logarithmic buckets shared by the layers, or one entry per signed distance "
          "in each layer")),
      When({"pe.form", "t5"}, IntField("pe.buckets", "relative", 2, 1024, Always(Whole(32)), "",
                                       "buckets of distances")),
      When({"pe.form", "t5"}, IntField("pe.max_distance", "relative", 2, 65536, Always(Whole(128)),
                                       "tokens", "distances from here on share the last bucket")),
      RealField("pe.init_std", "relative", {0, 100, false, false}, Always(0.02), "",
                "standard deviation of the biases at the start"),

      Derived(IntField("pe.max_distance", "shaw", 1, 8191, {}, "tokens",
                       "longer distances, of either sign, share this one's vectors; "
                       "model.max_len - 1 by default, which is beyond all"),
              LongestDistance),
      BoolField("pe.values", "shaw", Always(false),
                "vectors per distance are added to the values as well as to the keys"),
      RealField("pe.init_std", "shaw", {0, 100, false, false}, Always(0.02), "",
                "standard deviation of the vectors at the start"),

      Switch(ChoiceField("pe.slopes", "alibi", {"geometric", "exponential"},
                         PublishedOr(Text("exponential"), Text("geometric")),
                         "penalty per token of head h: 2^(-8(h+1)/heads), or e^(-h/heads)")),
  };
}

// Rotations of queries and keys.
std::vector<Field> RotationFields() {
  return {
      Base("rope", kHeadBase),
      Switch(BoolField("pe.input_sinusoid", "rope", PublishedOr(true, false),
                       "a sinusoid is added to the token embeddings as well")),

      Base("xpos", kHeadBase),
      RealField("pe.scale_base", "xpos", {0, 1e12, true, false}, Always(512.0), "tokens",
                "pair t of a head decays by ((2t + 0.4 head size)/(1.4 head size))^(1/scale_base) "
                "per token of distance"),

      Base("partial_rope", kHeadBase),
      ChoiceField("pe.select", "partial_rope", {"first", "list"}, Always(Text("first")),
                  "which heads are rotated: the first pe.heads, or those of pe.head_list"),
      When({"pe.select", "first"},
           IntField("pe.heads", "partial_rope", 0, 128, Always(Whole(1)), "heads",
                    "heads 0 to this less 1 are rotated, in every layer")),
      When({"pe.select", "list"},
           IntSetField("pe.head_list", "partial_rope", 0, 127,
                       "the heads that are rotated, in every layer, counted from 0")),

      Base("rope_abs", kHeadBase),
  };
}

std::vector<Field> LatentFields() {
  return {
      Base("mla", "pair t of the rotary channels rotates by base^(-2t/pe.rotary) per token"),
      Derived(IntField("pe.latent", "mla", 1, 8192, {}, "",
                       "width of the latents of queries and of keys and values; half of "
                       "model.d_model by default"),
              HalfWidth),
      Derived(IntField("pe.rotary", "mla", 1, 8192, {}, "",
                       "rotary channels beside a head's content channels, even; the head size by "
                       "default"),
              HeadSize),
      Switch(ChoiceField("pe.rotary_query", "mla", {"per_head", "shared"},
                         PublishedOr(Text("shared"), Text("per_head")),
                         "rotary queries: each head its own, or one for all heads, whose rotary "
                         "logits then are the same")),
      Switch(ChoiceField("pe.rotation", "mla", {"rope", "sliced"},
                         PublishedOr(Text("sliced"), Text("rope")),
                         "rope: rotary channels turn in pairs; sliced: the authors' table, whose "
                         "sines and cosines are mixed up so that nothing is rotated")),
      Switch(BoolField("pe.latent_norm", "mla", PublishedOr(false, true),
                       "root-mean-square norms on both latents")),
      Switch(BoolField("pe.input_table", "mla", PublishedOr(true, false),
                       "a trained vector per position, zero at the start, is added to the token "
                       "embeddings")),
  };
}

// These fields repeat the declaration of an encoding's file (core/experiment/own_encoding.h), so
// that a job can be checked without the file. None of them can be set by itself.
std::vector<Field> OwnFields() {
  Field methods = MakeField("pe.methods", "own", FieldType::kChoiceSet,
                            Always(std::vector<std::string>{"distance_bias"}),
                            "the methods of the file's module that the model calls");
  methods.choices = {kOwnMethods.begin(), kOwnMethods.end()};
  return {
      TextField("pe.encoding", "own", IsOwnName, kOwnNameRule, Always(Text("encoding")),
                "the name that the file declares"),
      TextField("pe.file", "own", IsHash, "64 hexadecimal digits in lower case",
                Always(Text(kNoFile)), "the SHA-256 of the file"),
      std::move(methods),
      BoolField("pe.causal_only", "own", Always(false),
                "whether the file declares that it needs model.mask causal"),
      TextField("pe.options", "own", IsOptionsText,
                "name=value, in the order of the names, such as alpha=0.5,form=log",
                Always(Text("")), "the values of the options that the file declares"),
  };
}

}  // namespace

std::vector<Field> PeFields() {
  std::vector<Field> fields = AddedFields();
  for (auto* group : {RotationFields, LatentFields, OwnFields}) {
    for (Field& field : group()) fields.push_back(std::move(field));
  }
  return fields;
}

}  // namespace pelab::catalog
