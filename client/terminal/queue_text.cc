#include "client/terminal/queue_text.h"

#include <algorithm>

#include "client/terminal/table.h"
#include "core/base/json_text.h"
#include "core/base/strings.h"
#include "core/render/text.h"

namespace pelab::client {
namespace {

using render::Json;
using RightOrLeft = render::Column::Align;

int CountOf(const v1::QueueRow& queue, std::string_view phase) {
  return static_cast<int>(
      std::count_if(queue.allocations().begin(), queue.allocations().end(),
                    [phase](const v1::Allocation& one) { return one.phase() == phase; }));
}

Json SettingsOf(const v1::QueueRow& queue) { return ParseJsonOrNull<Json>(queue.settings_json()); }

// "8" of {"max_allocations":8}; its default if it is not set.
std::string MostAllocations(const v1::QueueRow& queue) {
  const Json settings = SettingsOf(queue);
  if (!settings.is_object() || !settings.contains("max_allocations")) return "1";
  return settings["max_allocations"].dump();
}

Json TimeOrNull(std::int64_t unix_ms) { return unix_ms == 0 ? Json(nullptr) : Json(unix_ms); }

std::string WhyHeld(const v1::QueueRow& queue) {
  if (queue.removing()) return "it is being removed";
  return queue.paused_reason().empty() ? "" : Concat("paused: ", queue.paused_reason());
}

}  // namespace

const std::vector<std::string> kQueueColumns = {"name",         "state",   "paused_reason",
                                                "paused_at_ms", "waiting", "starting",
                                                "running",      "ending",  "reported_at_ms"};

const std::vector<std::string> kWishColumns = {"name",         "device",       "waiting_jobs",
                                               "free_slots",   "coming_slots", "wanted",
                                               "would_submit", "why"};

std::string QueueState(const v1::QueueRow& queue) {
  if (queue.removing()) return "removing";
  return queue.paused_reason().empty() ? "active" : "paused";
}

Json QueueJson(const v1::QueueRow& queue) {
  Json allocations = Json::array();
  for (const v1::Allocation& one : queue.allocations()) {
    allocations.push_back({{"id", one.id()},
                           {"phase", one.phase()},
                           {"state", one.state()},
                           {"reason", one.reason()}});
  }
  const bool paused = !queue.paused_reason().empty();
  return {{"name", queue.name()},
          {"state", QueueState(queue)},
          {"paused_reason", paused ? Json(queue.paused_reason()) : Json(nullptr)},
          {"paused_at_ms", TimeOrNull(queue.paused_at_ms())},
          {"waiting", CountOf(queue, "waiting")},
          {"starting", CountOf(queue, "starting")},
          {"running", CountOf(queue, "running")},
          {"ending", CountOf(queue, "ending")},
          {"reported_at_ms", TimeOrNull(queue.reported_at_ms())},
          {"settings", SettingsOf(queue)},
          {"allocations", allocations}};
}

std::string QueueTable(const std::vector<v1::QueueRow>& queues, const render::Style& style) {
  if (queues.empty()) return "no queues; `pelab alloc add FILE.toml` adds some\n";
  render::Table table({{"queue", RightOrLeft::kLeft, true},
                       {"state"},
                       {"waiting", RightOrLeft::kRight},
                       {"starting", RightOrLeft::kRight},
                       {"running", RightOrLeft::kRight},
                       {"ending", RightOrLeft::kRight},
                       {"at most", RightOrLeft::kRight},
                       {"reported"}});
  std::string notes;
  for (const v1::QueueRow& queue : queues) {
    const std::string state = QueueState(queue);
    table.AddRow(
        {queue.name(), state, Concat(CountOf(queue, "waiting")), Concat(CountOf(queue, "starting")),
         Concat(CountOf(queue, "running")), Concat(CountOf(queue, "ending")),
         MostAllocations(queue),
         queue.reported_at_ms() == 0 ? "not yet" : render::FormatTime(queue.reported_at_ms())},
        state == "active" ? "" : "2");
    if (queue.removing()) {
      notes += Concat("queue ", render::Escape(queue.name()),
                      " goes when pelab-scale has cancelled its waiting allocations\n");
    } else if (!queue.paused_reason().empty()) {
      notes += Concat("queue ", render::Escape(queue.name()), " is paused since ",
                      render::FormatTime(queue.paused_at_ms()), ": ",
                      render::Escape(queue.paused_reason()), "\n");
    }
  }
  return table.Render(style) + notes;
}

std::string AllocationTable(const v1::QueueRow& queue, const render::Style& style) {
  if (queue.allocations().empty()) {
    return Concat("queue ", render::Escape(queue.name()), " has no allocations\n");
  }
  render::Table table({{"allocation"}, {"phase"}, {"state"}, {"reason", RightOrLeft::kLeft, true}});
  for (const v1::Allocation& one : queue.allocations()) {
    table.AddRow({one.id(), one.phase(), one.state(), one.reason()});
  }
  return table.Render(style);
}

std::vector<QueueWish> WishesOf(const std::vector<v1::QueueRow>& rows,
                                const std::vector<queues::Queue>& queues,
                                const std::vector<queues::Demand>& demands) {
  std::vector<QueueWish> wishes;
  for (std::size_t i = 0; i < queues.size(); ++i) {
    QueueWish& wish = wishes.emplace_back();
    wish.queue = queues[i];
    wish.demand = demands[i];
    for (std::size_t j = 0; j < queues.size(); ++j) {
      if (queues[j].device != queues[i].device) continue;
      wish.coming += (CountOf(rows[j], "waiting") + CountOf(rows[j], "starting")) * queues[j].slots;
    }
    wish.wants = queues::Wanted(wish.queue, wish.demand, wish.coming);
    const int waiting = CountOf(rows[i], "waiting");
    wish.submits = queues::MaySubmit(wish.queue, wish.wants, waiting, rows[i].allocations_size());
    wish.why = WhyHeld(rows[i]);
    if (!wish.why.empty()) {
      wish.submits = 0;
    } else if (rows[i].reported_at_ms() == 0) {
      wish.why = "pelab-scale has not reported yet";
    } else if (wish.submits < wish.wants) {
      wish.why =
          waiting + wish.submits >= wish.queue.max_waiting ? "max_waiting" : "max_allocations";
    }
  }
  return wishes;
}

Json WishJson(const QueueWish& wish) {
  return {{"name", wish.queue.name},
          {"device", wish.queue.device},
          {"waiting_jobs", wish.demand.waiting_jobs},
          {"free_slots", wish.demand.free_slots},
          {"coming_slots", wish.coming},
          {"wanted", wish.wants},
          {"would_submit", wish.submits},
          {"why", wish.why.empty() ? Json(nullptr) : Json(wish.why)}};
}

std::string WishTable(const std::vector<QueueWish>& wishes, const render::Style& style) {
  if (wishes.empty()) return "no queues; `pelab alloc add FILE.toml` adds some\n";
  render::Table table({{"queue", RightOrLeft::kLeft, true},
                       {"device"},
                       {"jobs wait", RightOrLeft::kRight},
                       {"free slots", RightOrLeft::kRight},
                       {"coming", RightOrLeft::kRight},
                       {"wanted", RightOrLeft::kRight},
                       {"submits", RightOrLeft::kRight},
                       {"why not all", RightOrLeft::kLeft, true}});
  for (const QueueWish& wish : wishes) {
    table.AddRow({wish.queue.name, wish.queue.device, Concat(wish.demand.waiting_jobs),
                  Concat(wish.demand.free_slots), Concat(wish.coming), Concat(wish.wants),
                  Concat(wish.submits), wish.why});
  }
  return table.Render(style);
}

}  // namespace pelab::client
