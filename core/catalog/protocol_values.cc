#include "core/catalog/protocol_values.h"

#include <algorithm>

#include "core/catalog/tables.h"

namespace pelab::catalog {
namespace {

constexpr std::string_view kClean = "clean";
constexpr std::string_view kPublished = "published";
constexpr std::string_view kMatched = "matched";
constexpr std::string_view kBeta1 = "train.beta1";
constexpr std::string_view kBeta2 = "train.beta2";

struct Reasons {
  std::string_view field;
  std::string_view owner;
  std::string_view clean;
  std::string_view published;
  std::string_view matched = {};  // empty if it is the same as that of `clean`
};

constexpr std::string_view kBetasKept =
    "the authors', kept so that stored jobs keep their keys: the mean of gradients remembers five "
    "times as long as their scale, which decides RoPE against MLA (docs/reproduction.md)";
constexpr std::string_view kBetasPublished =
    "written so in the authors' scripts; the usual order is the other way round";
constexpr std::string_view kBetasMatched =
    "the usual value (Kingma & Ba 2015; PyTorch's default): with the authors' betas MLA falls "
    "behind RoPE, with the two exchanged it does not (docs/reproduction.md)";

constexpr Reasons kReasons[] = {
    {"model.dropout_sites", "", "the same places for every encoding",
     "trans.py drops attention weights and both blocks' outputs; the MLA script only drops in the "
     "feed-forward block"},
    {"model.activation", "", "the same for every encoding",
     "ReLU in trans.py; the MLA script has GELU"},
    {"model.attention_bias", "", "the same for every encoding",
     "trans.py has biases in attention; the MLA script has none"},
    {"model.mask", "", "a decoder, as the paper says: without a mask NoPE sees a set of tokens",
     "the authors' code has no causal mask, though the paper says decoder"},
    {"model.key_padding", "", "padding cannot be attended to, so it does not tell the length",
     "trans.py lets tokens attend to padding, which tells a sequence's length; the MLA script "
     "masks it"},
    {"model.kv_source", "", "ordinary self-attention: every layer sees the one before it",
     "trans.py makes keys and values of the raw embeddings in every layer; the MLA script does "
     "not"},
    {"model.readout", "", "a mean over tokens that are no padding, as in the authors' MLA script",
     "trans.py takes the mean over all places, padding too; the MLA script leaves padding out",
     "under a causal mask a mean over places can count those that have seen a token, so that a "
     "model without any encoding reads distances off it; the last token cannot"},
    {"model.final_norm", "", "the usual norm of a pre-norm decoder",
     "trans.py has no norm before the classifier; the MLA script has one"},
    {"train.epochs", "", "by task, as in the paper: as long for every encoding",
     "trans.py trains 100 epochs on both tasks, the MLA script 150"},
    {"train.batch_size", "", "the same for every encoding",
     "512 in trans.py, 1024 in the MLA script"},
    {kBeta1, "", kBetasKept, kBetasPublished, kBetasMatched},
    {kBeta2, "", kBetasKept, kBetasPublished, kBetasMatched},
    {"pe.trainable", "random", "fixed, as the paper says", "the authors' code trains the table"},
    {"pe.form", "relative", "T5's buckets, shared by the layers, as the paper says",
     "trans.py has one bias a signed distance, head and layer"},
    {"pe.slopes", "alibi", "the slopes of ALiBi's own paper", "trans.py has slopes e^(-h/heads)"},
    {"pe.input_sinusoid", "rope", "rotation alone; rope_abs has both",
     "trans.py adds a sinusoid to the embeddings, so its rope knows absolute places too"},
    {"pe.rotary_query", "mla", "one a head, as DeepSeek has it",
     "the authors' MLA has one for all heads, so all have the same rotary logits"},
    {"pe.rotation", "mla", "RoPE's rotation: rotary logits depend on the distance alone",
     "the authors' rotary table is cut so that nothing rotates: logits depend on both places"},
    {"pe.latent_norm", "mla", "norms on both latents, as DeepSeek has them",
     "the authors' MLA has none"},
    {"pe.input_table", "mla", "no second encoding beside the rotary one",
     "the authors' MLA adds a trained table of places to the embeddings"},
    {"task.definition", "", "no chance triggers, no padding, lengths that tell nothing",
     "the authors' generator: triggers also occur by chance (a perfect reader reaches 97.5 % on "
     "distance), and the length alone gives 5.4 %"},
    {"task.split", "", "no test sequence is a training sequence",
     "a random split of one pool with seed 42"},
    {"task.label_space", "", "one class a label", "one class a token id, 574"},
    {"task.scored_classes", "", "every example counts",
     "trans.py leaves label 0 out of loss and accuracy; the MLA script counts all"},
    {"head_ablation.target", "head_ablation", "a head's own output",
     "the authors' code cuts slices of MLA's latents, which all heads share"},
    {"head_ablation.hygiene", "head_ablation", "one head is away at a time",
     "the authors' code does not put a layer's last head back before the next layer"},
    {"head_ablation.data", "head_ablation", "examples that training did not see",
     "the authors' code measures on training and test examples"},
    {"layer_ablation.data", "layer_ablation", "examples that training did not see",
     "as for head_ablation: training and test examples"},
};

std::string_view ReasonFor(const Field& field, std::string_view protocol) {
  for (const Reasons& row : kReasons) {
    if (row.field != field.name || row.owner != field.owner) continue;
    if (protocol == kPublished) return row.published;
    return protocol == kMatched && !row.matched.empty() ? row.matched : row.clean;
  }
  return "";
}

bool DependsOnProtocol(const Field& field) {
  return std::any_of(field.defaults.begin(), field.defaults.end(),
                     [](const DefaultRule& rule) { return !rule.protocol.empty(); });
}

// "100; counting: 150": the general value first, then the exceptions.
std::string ValueUnder(const Field& field, std::string_view protocol) {
  std::string general, others;
  for (const DefaultRule& rule : field.defaults) {
    if (!rule.protocol.empty() && rule.protocol != protocol) continue;
    const std::string value = ToText(rule.value);
    if (rule.pe.empty() && rule.task.empty()) {
      general = value;
      break;  // no later rule is reached
    }
    others += "; " + std::string(rule.pe) + (rule.pe.empty() || rule.task.empty() ? "" : " with ") +
              std::string(rule.task) + ": " + value;
  }
  return general + others;
}

}  // namespace

bool DecidesLabel(const Field& field, std::string_view protocol) {
  // From the start, jobs got the labels `clean` and `published` whatever their betas were.
  const bool beta = field.name == kBeta1 || field.name == kBeta2;
  return field.is_switch || (beta && protocol == kMatched);
}

std::vector<ProtocolValue> ProtocolValues(std::string_view protocol) {
  std::vector<ProtocolValue> values;
  for (const Field& field : Fields()) {
    if (!DependsOnProtocol(field)) continue;
    values.push_back(
        {field.name, field.owner, ValueUnder(field, protocol), ReasonFor(field, protocol)});
  }
  return values;
}

std::string NoteOnComparison(const std::vector<ComparedJob>& jobs) {
  const auto kept = [](std::string_view name) {
    return std::get<double>(DefaultOf(*FindField(name, ""), kClean, "", "", {}));
  };
  const double beta1 = kept(kBeta1), beta2 = kept(kBeta2);
  const ComparedJob* first = nullptr;
  for (const ComparedJob& job : jobs) {
    if (job.protocol != kClean || job.beta1 != beta1 || job.beta2 != beta2) continue;
    if (first == nullptr) first = &job;
    if (job.pe == first->pe) continue;
    return "protocol clean keeps the authors' AdamW betas (" + NumberToText(beta1) + ", " +
           NumberToText(beta2) +
           "), which decide some orders of encodings (MLA against RoPE: docs/reproduction.md); "
           "protocol matched has the usual ones";
  }
  return "";
}

}  // namespace pelab::catalog
