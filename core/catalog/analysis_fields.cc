// The analyses' parameters: named ANALYSIS.PARAMETER and owned by their analysis.
#include "core/catalog/tables.h"

namespace pelab::catalog {

std::vector<Field> AnalysisFields() {
  return {
      ChoiceField("head_ablation.method", "head_ablation", {"zero"}, Always(Text("zero")),
                  "what a head's output is replaced with, before the output projection"),
      ChoiceField(
          "head_ablation.hygiene", "head_ablation", {"clean", "authors"},
          PublishedOr(Text("authors"), Text("clean")),
          "clean: every head is restored before the next; authors: a layer's last head stays "
          "ablated"),
      ChoiceField("head_ablation.data", "head_ablation", {"test", "all"},
                  PublishedOr(Text("all"), Text("test")),
                  "examples to evaluate on: the test set, or training and test set"),
      IntField("head_ablation.max_examples", "head_ablation", 0, 1e9, Always(Whole(0)), "examples",
               "evaluate on the first so many examples; 0 for all"),
  };
}

}  // namespace pelab::catalog
