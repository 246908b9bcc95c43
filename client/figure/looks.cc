#include "client/figure/looks.h"

#include <algorithm>
#include <set>

#include "client/report/html_data.h"
#include "core/base/json_text.h"
#include "core/pages/assets.h"
#include "core/render/json.h"

namespace pelab::client {
namespace {

using render::Json;

struct Palette {
  std::vector<std::string> encodings;  // these own the first colors
  std::vector<std::string> colors;
  std::vector<std::vector<double>> dashes;
  std::vector<std::string> markers;
};

const Palette& File() {
  static const auto& palette = *new Palette([] {
    const Json file = ParseJson<Json>(pages::FindAsset("looks.json")->bytes);
    return Palette{.encodings = file["encodings"],
                   .colors = file["light"],
                   .dashes = file["dashes"],
                   .markers = file["markers"]};
  }());
  return palette;
}

void AddNew(const std::string& word, std::vector<std::string>& words) {
  if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
}

std::size_t IndexOf(const std::string& word, const std::vector<std::string>& words) {
  return static_cast<std::size_t>(std::find(words.begin(), words.end(), word) - words.begin());
}

}  // namespace

Looks::Looks(const results::CellTable& cells) : cells_(cells) {
  const std::vector<std::string>& known = File().encodings;
  std::vector<std::string> others;
  for (const results::Cell& cell : cells.cells) {
    const Kind kind = KindOf(cell);
    AddNew(kind.axis, axes_);
    AddNew(kind.own, owns_[kind.encoding]);
    if (IndexOf(kind.encoding, known) < known.size()) {
      TakeSlot(kind.encoding);
    } else {
      AddNew(kind.encoding, others);
    }
  }
  for (const std::string& encoding : others) TakeSlot(encoding);
}

// The catalog's encodings have their own color slots. Any other encoding takes the first free slot:
// first those that belong to no catalog encoding, then unused ones, then a repeated color.
void Looks::TakeSlot(const std::string& encoding) {
  if (slots_.count(encoding) > 0) return;
  const std::size_t known = File().encodings.size(), count = File().colors.size();
  const std::size_t own = IndexOf(encoding, File().encodings);
  if (own < known) {
    slots_[encoding] = own;
    return;
  }
  std::set<std::size_t> taken;
  for (const auto& [name, slot] : slots_) taken.insert(slot);
  std::vector<std::size_t> candidates;
  for (std::size_t slot = known; slot < count; ++slot) candidates.push_back(slot);
  for (std::size_t slot = 0; slot < known; ++slot) candidates.push_back(slot);
  for (std::size_t slot = count; slot <= count + taken.size(); ++slot) candidates.push_back(slot);
  slots_[encoding] = *std::find_if(candidates.begin(), candidates.end(),
                                   [&](std::size_t slot) { return taken.count(slot) == 0; });
}

Looks::Kind Looks::KindOf(const results::Cell& cell) const {
  const report::CellName name = report::NameOf(cells_, cell);
  return {name.encoding, name.own, name.axis};
}

Look Looks::Of(const results::Cell& cell) const {
  const Palette& palette = File();
  const Kind kind = KindOf(cell);
  const std::vector<std::string>& owns = owns_.at(kind.encoding);
  const std::size_t slot = slots_.at(kind.encoding), again = slot / palette.colors.size();
  const std::size_t axis = IndexOf(kind.axis, axes_), own = IndexOf(kind.own, owns);
  const std::size_t dash = again + (axes_.size() > 1 ? axis : own);
  const std::size_t marker = again + (owns.size() > 1 ? own : axis);
  return {.color = palette.colors[slot % palette.colors.size()],
          .dash = palette.dashes[dash % palette.dashes.size()],
          .marker = palette.markers[marker % palette.markers.size()],
          .varied = axes_.size() > 1 || owns.size() > 1};
}

}  // namespace pelab::client
