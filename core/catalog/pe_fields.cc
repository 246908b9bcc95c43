// pe.*: each row belongs to one PE.
#include "core/catalog/tables.h"

namespace pelab::catalog {

std::vector<Field> PeFields() {
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

      Switch(ChoiceField("pe.slopes", "alibi", {"geometric", "exponential"},
                         PublishedOr(Text("exponential"), Text("geometric")),
                         "penalty per token of head h: 2^(-8(h+1)/heads), or e^(-h/heads)")),

      RealField("pe.base", "rope", {1, 1e12, true, false}, Always(10000.0), "",
                "pair t of a head turns by base^(-2t/head size) per token"),
      Switch(BoolField("pe.input_sinusoid", "rope", PublishedOr(true, false),
                       "a sinusoid is added to the token embeddings as well")),
  };
}

}  // namespace pelab::catalog
