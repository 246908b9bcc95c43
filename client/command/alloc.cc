// alloc: the queues in which pelab-scale starts workers.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "client/command/commands.h"
#include "client/source/connect.h"
#include "client/terminal/put.h"
#include "client/terminal/queue_text.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/queues/queues_file.h"
#include "core/queues/settings.h"
#include "core/render/text.h"

namespace pelab::client {
namespace {

struct AllocOptions {
  std::string queue;
  std::string file;
  std::string reason;
  bool cancel_waiting = false;
};

absl::StatusOr<std::vector<v1::QueueRow>> AllQueues(Coordinator& coordinator) {
  PELAB_ASSIGN_OR_RETURN(const v1::ListQueuesResponse answer, coordinator.ListQueues());
  return std::vector<v1::QueueRow>(answer.queues().begin(), answer.queues().end());
}

int PutQueues(const Context& context, const std::vector<v1::QueueRow>& queues,
              const std::function<std::string()>& text) {
  return Put(context, {.json =
                           [&] {
                             render::Json rows = render::Json::array();
                             for (const v1::QueueRow& one : queues) rows.push_back(QueueJson(one));
                             return render::Json{{"queues", rows}};
                           },
                       .text = text,
                       .rows = "queues",
                       .columns = kQueueColumns});
}

absl::StatusOr<int> ListAllocQueues(const Context& context, const AllocOptions& options) {
  PELAB_ASSIGN_OR_RETURN(const auto coordinator, FindCoordinator(context.options));
  PELAB_ASSIGN_OR_RETURN(std::vector<v1::QueueRow> queues, AllQueues(*coordinator));
  const bool one = !options.queue.empty();
  if (one) {
    std::erase_if(queues, [&](const v1::QueueRow& queue) { return queue.name() != options.queue; });
    if (queues.empty()) {
      return absl::NotFoundError(
          Concat("no queue \"", options.queue, "\"; `pelab alloc list` lists them"));
    }
  }
  return PutQueues(context, queues, [&] {
    return QueueTable(queues, context.style) +
           (one ? AllocationTable(queues.front(), context.style) : "");
  });
}

absl::StatusOr<int> AddAllocQueues(const Context& context, const AllocOptions& options) {
  PELAB_ASSIGN_OR_RETURN(const std::vector<queues::Queue> queues, queues::ReadQueues(options.file));
  PELAB_ASSIGN_OR_RETURN(const auto coordinator, FindCoordinator(context.options));
  std::vector<v1::QueueRow> stored;
  std::string text;
  for (const queues::Queue& queue : queues) {
    v1::PutQueueRequest request;
    request.set_name(queue.name);
    request.set_settings_json(queues::SettingsJson(queue));
    PELAB_ASSIGN_OR_RETURN(stored.emplace_back(), coordinator->PutQueue(request));
    text += Concat("queue ", queue.name, " is stored",
                   stored.back().paused_reason().empty() ? "" : ", and paused as before", "\n");
  }
  return PutQueues(context, stored, [&] { return text; });
}

int PutAllocQueue(const Context& context, const v1::QueueRow& queue, const std::string& says) {
  return PutRow(context, QueueJson(queue),
                Concat("queue ", render::Escape(queue.name()), ": ", says, "\n"), kQueueColumns);
}

absl::StatusOr<int> RemoveAllocQueue(const Context& context, const AllocOptions& options) {
  PELAB_ASSIGN_OR_RETURN(const auto coordinator, FindCoordinator(context.options));
  v1::RemoveQueueRequest request;
  request.set_name(options.queue);
  request.set_cancel_waiting(options.cancel_waiting);
  PELAB_ASSIGN_OR_RETURN(const v1::QueueRow queue, coordinator->RemoveQueue(request));
  return PutAllocQueue(context, queue,
                       options.cancel_waiting
                           ? "goes when pelab-scale has cancelled its waiting allocations"
                           : "removed; its allocations go on");
}

absl::StatusOr<int> PauseAllocQueue(const Context& context, const AllocOptions& options) {
  PELAB_ASSIGN_OR_RETURN(const auto coordinator, FindCoordinator(context.options));
  v1::PauseQueueRequest request;
  request.set_name(options.queue);
  request.set_reason(options.reason);
  PELAB_ASSIGN_OR_RETURN(const v1::QueueRow queue, coordinator->PauseQueue(request));
  return PutAllocQueue(context, queue, "paused; its allocations go on");
}

absl::StatusOr<int> ResumeAllocQueue(const Context& context, const AllocOptions& options) {
  PELAB_ASSIGN_OR_RETURN(const auto coordinator, FindCoordinator(context.options));
  v1::ResumeQueueRequest request;
  request.set_name(options.queue);
  PELAB_ASSIGN_OR_RETURN(const v1::QueueRow queue, coordinator->ResumeQueue(request));
  return PutAllocQueue(context, queue, "not paused");
}

absl::StatusOr<queues::Demand> DemandOf(Coordinator& coordinator, const queues::Queue& queue) {
  v1::DemandRequest request;
  request.set_device_kind(queue.device);
  request.set_memory_bytes(queue.memory_bytes);
  PELAB_ASSIGN_OR_RETURN(const v1::DemandResponse answer, coordinator.Demand(request));
  return queues::Demand{answer.waiting_jobs(), answer.free_slots()};
}

absl::StatusOr<int> DryRunAlloc(const Context& context, const AllocOptions&) {
  PELAB_ASSIGN_OR_RETURN(const auto coordinator, FindCoordinator(context.options));
  PELAB_ASSIGN_OR_RETURN(const std::vector<v1::QueueRow> rows, AllQueues(*coordinator));
  std::vector<queues::Queue> queues;
  std::vector<queues::Demand> demands;
  for (const v1::QueueRow& row : rows) {
    PELAB_ASSIGN_OR_RETURN(queues.emplace_back(),
                           queues::ParseSettings(row.name(), row.settings_json()));
    PELAB_ASSIGN_OR_RETURN(demands.emplace_back(), DemandOf(*coordinator, queues.back()));
  }
  const std::vector<QueueWish> wishes = WishesOf(rows, queues, demands);
  return Put(context, {.json =
                           [&] {
                             render::Json all = render::Json::array();
                             for (const QueueWish& one : wishes) all.push_back(WishJson(one));
                             return render::Json{{"queues", all}};
                           },
                       .text = [&] { return WishTable(wishes, context.style); },
                       .rows = "queues",
                       .columns = kWishColumns});
}

using AllocVerb = absl::StatusOr<int> (*)(const Context&, const AllocOptions&);

}  // namespace

void AddAlloc(Commands& commands) {
  CLI::App* app = AddCommand(
      commands, "alloc", "queues of a cluster, in which pelab-scale starts workers",
      "  pelab alloc add queues.toml\n"
      "  pelab alloc list\n"
      "  pelab alloc pause gpu --reason \"maintenance on Friday\"\n"
      "  pelab alloc resume gpu\n"
      "  pelab alloc dry-run\n"
      "  pelab alloc remove gpu --cancel-waiting\n"
      "A pelab-scale that was started without a file takes these queues from the coordinator, and "
      "reports what it submitted. Pauses last until they are ended.");
  app->require_subcommand(1);
  app->fallthrough();
  auto options = std::make_shared<AllocOptions>();
  const auto add_verb = [&](const char* name, const char* help, AllocVerb verb) {
    CLI::App* command = app->add_subcommand(name, help);
    command->callback([&commands, verb, options] {
      commands.chosen = [&commands, verb, options] { return verb(*commands.context, *options); };
    });
    return command;
  };
  const auto add_queue = [&](CLI::App* command, const char* help) {
    return command->add_option("QUEUE", options->queue, help);
  };
  add_queue(add_verb("list", "the queues, and their allocations as last reported", ListAllocQueues),
            "one queue, with each of its allocations");
  add_verb("add", "add the queues of a file, or replace their settings", AddAllocQueues)
      ->add_option("FILE", options->file, "TOML file with a table for each queue: [queue.gpu]")
      ->required();
  CLI::App* remove = add_verb("remove", "remove a queue; its workers go on", RemoveAllocQueue);
  add_queue(remove, "its name")->required();
  remove->add_flag("--cancel-waiting", options->cancel_waiting,
                   "first let pelab-scale cancel its allocations that wait");
  CLI::App* pause = add_verb("pause",
                             "submit nothing to a queue until it resumes; its "
                             "allocations go on",
                             PauseAllocQueue);
  add_queue(pause, "its name")->required();
  pause->add_option("--reason", options->reason, "why, for others")->required()->type_name("TEXT");
  add_queue(add_verb("resume", "end a pause", ResumeAllocQueue), "its name")->required();
  add_verb("dry-run",
           "what each queue would get now; `pelab-scale --dry-run` also asks Slurm whether it "
           "would accept that",
           DryRunAlloc);
}

}  // namespace pelab::client
