#include "server/steady_poller.h"

namespace pelab {

SteadyPoller::SteadyPoller()
    : thread_([this] {
        void* tag = nullptr;
        bool ok = false;
        while (queue_.Next(&tag, &ok)) continue;
      }) {}

SteadyPoller::~SteadyPoller() {
  queue_.Shutdown();
  thread_.join();
}

}  // namespace pelab
