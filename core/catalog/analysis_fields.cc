// The parameters of analyses. Each is named ANALYSIS.PARAMETER and belongs to its analysis.
#include <cstdint>

#include "core/catalog/tables.h"

namespace pelab::catalog {

namespace {

Field Method(std::string_view name, std::string_view owner, std::string_view help) {
  return ChoiceField(name, owner, {"zero", "mean", "resample"}, Always(Text("zero")), help);
}

Field Data(std::string_view name, std::string_view owner) {
  return ChoiceField(name, owner, {"test", "all"}, PublishedOr(Text("all"), Text("test")),
                     "examples to evaluate on: the test set, or training and test set");
}

Field MaxExamples(std::string_view name, std::string_view owner, std::int64_t standard) {
  return IntField(name, owner, 0, 1e9, Always(Whole(standard)), "examples",
                  "evaluate on the first so many examples; 0 for all");
}

}  // namespace

std::vector<Field> AnalysisFields() {
  return {
      Method("head_ablation.method", "head_ablation",
             "what a head's output becomes, before the output projection: zero, its mean over the "
             "training set at the position, or its value in another example"),
      ChoiceField("head_ablation.target", "head_ablation", {"head", "authors"},
                  PublishedOr(Text("authors"), Text("head")),
                  "head: a head's output; authors: with mla a head-wide slice of the latents, as "
                  "the authors' code does (null beyond the latents); the same as head otherwise"),
      ChoiceField(
          "head_ablation.hygiene", "head_ablation", {"clean", "authors"},
          PublishedOr(Text("authors"), Text("clean")),
          "clean: every head is restored before the next; authors: a layer's last head stays "
          "ablated"),
      Data("head_ablation.data", "head_ablation"),
      MaxExamples("head_ablation.max_examples", "head_ablation", 0),

      Method("layer_ablation.method", "layer_ablation",
             "what the outputs of a layer's heads become, before the output projection: zero, "
             "means over the training set, or values in another example"),
      Data("layer_ablation.data", "layer_ablation"),
      MaxExamples("layer_ablation.max_examples", "layer_ablation", 0),

      Method("cumulative_ablation.method", "cumulative_ablation",
             "what the outputs of the heads that are removed become, before the output "
             "projection: zero, means over the training set, or values in another example"),
      IntField("cumulative_ablation.steps", "cumulative_ablation", 1, 8192, Always(Whole(16)),
               "heads", "heads that are removed one after another; at most all there are"),
      IntField("cumulative_ablation.orders", "cumulative_ablation", 0, 1000, Always(Whole(5)), "",
               "random orders beside the greedy one"),
      MaxExamples("cumulative_ablation.max_examples", "cumulative_ablation", 2000),

      MaxExamples("example_correctness.max_examples", "example_correctness", 0),

      IntField("split_accuracy.max_examples", "split_accuracy", 0, 1e9, Always(Whole(0)),
               "examples", "evaluate on the first so many examples of each split; 0 for all"),
  };
}

}  // namespace pelab::catalog
