// Fields that every job has: model.* and train.*.
#include "core/catalog/tables.h"

namespace pelab::catalog {
namespace {

Field DropoutSites() {
  Field field =
      MakeField("model.dropout_sites", "", FieldType::kChoiceSet,
                {{"published", "mla", "", std::vector<std::string>{"ffn_inner", "ffn"}},
                 {"", "", "", std::vector<std::string>{"attention", "output", "ffn"}}},
                "where dropout acts: attention weights, after the output projection, inside "
                "the feed-forward block, after it");
  field.choices = {"attention", "output", "ffn_inner", "ffn"};
  return Switch(std::move(field));
}

}  // namespace

std::vector<Field> ModelFields() {
  return {
      IntField("model.layers", "", 1, 64, Always(Whole(6)), "", "decoder layers"),
      IntField("model.heads", "", 1, 128, Always(Whole(16)), "", "attention heads in a layer"),
      IntField("model.d_model", "", 1, 8192, Always(Whole(256)), "",
               "width of the residual stream"),
      IntField("model.d_ff", "", 1, 32768, Always(Whole(512)), "",
               "inner width of the feed-forward block"),
      RealField("model.dropout", "", {0, 1, false, true}, Always(0.1), "fraction",
                "probability of dropping an activation at each of model.dropout_sites"),
      DropoutSites(),
      Switch(ChoiceField("model.activation", "", {"relu", "gelu"},
                         PublishedOr(Text("gelu"), Text("relu"), Text("relu")),
                         "non-linearity of the feed-forward block")),
      Switch(BoolField("model.attention_bias", "", PublishedOr(false, true, true),
                       "biases in the query, key, value and output projections")),
      RealField("model.layer_norm_eps", "", {0, 1, true, true}, Always(1e-5), "",
                "added to the variance in layer norms"),
      IntField("model.max_len", "", 2, 8192, Always(Whole(128)), "tokens",
               "positions that tables of positions have"),
      Switch(ChoiceField("model.mask", "", {"causal", "none"},
                         PublishedOr(Text("none"), Text("causal")),
                         "causal: a query sees keys up to its own position; none: all keys")),
      Switch(ChoiceField("model.key_padding", "", {"masked", "attended"},
                         PublishedOr(Text("masked"), Text("attended"), Text("masked")),
                         "whether padding can be attended to")),
      Switch(ChoiceField("model.kv_source", "", {"self", "input"},
                         PublishedOr(Text("self"), Text("input"), Text("self")),
                         "keys and values from the layer's normed input, or from the raw embedding "
                         "in every layer")),
      When({"task.targets", "position", /*unless=*/true},
           Switch(ChoiceField(
               "model.readout", "", {"masked_mean", "mean", "last"},
               {{"published", "mla", "", Text("masked_mean")},
                {"published", "", "", Text("mean")},
                {"matched", "", "", Text("last")},
                {"", "", "", Text("masked_mean")}},
               "what the classifier reads: mean without padding, mean with it, or the last "
               "token that is not padding"))),
      Switch(BoolField("model.final_norm", "", PublishedOr(true, false, true),
                       "a layer norm before the read-out")),
  };
}

std::vector<Field> TrainFields() {
  const Rules epochs = {{"published", "mla", "", Whole(150)},
                        {"published", "", "", Whole(100)},
                        {"", "", "counting", Whole(150)},
                        {"", "", "", Whole(100)}};
  return {
      IntField("train.epochs", "", 1, 100000, epochs, "epochs",
               "passes over the training examples"),
      IntField("train.batch_size", "", 1, 65536, PublishedOr(Whole(1024), Whole(512), Whole(512)),
               "examples",
               "examples in an optimizer step; the last one of an epoch may be smaller"),
      RealField("train.lr", "", {0, 1000, true, false}, Always(1e-4), "",
                "peak learning rate of AdamW"),
      RealField("train.beta1", "", {0, 1, false, true}, MatchedOr(0.9, 0.98), "",
                "AdamW's decay of the first moment"),
      RealField("train.beta2", "", {0, 1, false, true}, MatchedOr(0.999, 0.9), "",
                "AdamW's decay of the second moment"),
      RealField("train.epsilon", "", {0, 1, true, false}, Always(1e-8), "",
                "AdamW's addend to the root of the second moment"),
      RealField("train.weight_decay", "", {0, 1000, false, false}, Always(1e-5), "",
                "AdamW's decoupled weight decay, on every parameter"),
      RealField("train.warmup_fraction", "", {0, 1, false, false}, Always(0.06), "fraction",
                "share of the steps over which the learning rate rises linearly from 0"),
      ChoiceField("train.schedule", "", {"cosine", "constant"}, Always(Text("cosine")),
                  "learning rate after the warm-up: cosine to 0, or constant"),
      AddedLater(Text("float32"),
                 ChoiceField("train.precision", "", {"float32", "bf16"}, Always(Text("float32")),
                             "activations and products: float32, or bfloat16 with float32 sums, "
                             "norms, softmax and master weights")),
  };
}

}  // namespace pelab::catalog
