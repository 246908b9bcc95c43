#include "worker/agent/nvml.h"

#include <dlfcn.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace pelab::agent {
namespace {

// Declarations from nvml.h of the NVML API reference. These functions keep their signatures across
// driver versions.
using NvmlReturn = int;
using NvmlHandle = void*;
struct NvmlMemory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};
struct NvmlUtilization {
  unsigned gpu;     // percent of the time in which a kernel ran
  unsigned memory;  // percent of the time in which memory was read or written
};
struct NvmlEventData {
  NvmlHandle device;
  unsigned long long type;
  unsigned long long data;  // the Xid error's number
  unsigned gpu_instance;
  unsigned compute_instance;
};
constexpr unsigned long long kDoubleBitError = 0x2;
constexpr unsigned long long kXidError = 0x8;
constexpr NvmlReturn kTimeout = 10;
constexpr unsigned kTextBytes =
    96;  // NVML_DEVICE_UUID_V2_BUFFER_SIZE, NVML_DEVICE_NAME_V2_BUFFER_SIZE

struct Functions {
  NvmlReturn (*init)() = nullptr;
  NvmlReturn (*shutdown)() = nullptr;
  const char* (*error_string)(NvmlReturn) = nullptr;
  NvmlReturn (*count)(unsigned*) = nullptr;
  NvmlReturn (*handle_by_index)(unsigned, NvmlHandle*) = nullptr;
  NvmlReturn (*handle_by_uuid)(const char*, NvmlHandle*) = nullptr;
  NvmlReturn (*uuid)(NvmlHandle, char*, unsigned) = nullptr;
  NvmlReturn (*name)(NvmlHandle, char*, unsigned) = nullptr;
  NvmlReturn (*memory)(NvmlHandle, NvmlMemory*) = nullptr;
  NvmlReturn (*utilization)(NvmlHandle, NvmlUtilization*) = nullptr;
  // What follows is missing in old drivers.
  NvmlReturn (*energy)(NvmlHandle, unsigned long long*) = nullptr;  // millijoules
  NvmlReturn (*create_events)(NvmlHandle*) = nullptr;
  NvmlReturn (*register_events)(NvmlHandle, unsigned long long, NvmlHandle) = nullptr;
  NvmlReturn (*wait_for_event)(NvmlHandle, NvmlEventData*, unsigned) = nullptr;
  NvmlReturn (*free_events)(NvmlHandle) = nullptr;
};

template <typename Function>
bool Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

bool LoadAll(void* library, Functions* functions) {
  Find(library, "nvmlDeviceGetTotalEnergyConsumption", &functions->energy);
  Find(library, "nvmlEventSetCreate", &functions->create_events);
  Find(library, "nvmlDeviceRegisterEvents", &functions->register_events);
  Find(library, "nvmlEventSetWait_v2", &functions->wait_for_event);
  Find(library, "nvmlEventSetFree", &functions->free_events);
  return Find(library, "nvmlInit_v2", &functions->init) &&
         Find(library, "nvmlShutdown", &functions->shutdown) &&
         Find(library, "nvmlErrorString", &functions->error_string) &&
         Find(library, "nvmlDeviceGetCount_v2", &functions->count) &&
         Find(library, "nvmlDeviceGetHandleByIndex_v2", &functions->handle_by_index) &&
         Find(library, "nvmlDeviceGetHandleByUUID", &functions->handle_by_uuid) &&
         Find(library, "nvmlDeviceGetUUID", &functions->uuid) &&
         Find(library, "nvmlDeviceGetName", &functions->name) &&
         Find(library, "nvmlDeviceGetMemoryInfo", &functions->memory) &&
         Find(library, "nvmlDeviceGetUtilizationRates", &functions->utilization);
}

class LoadedEvents final : public NvmlEvents {
 public:
  LoadedEvents(NvmlHandle events, const Functions& functions)
      : events_(events), functions_(functions) {}
  ~LoadedEvents() override { functions_.free_events(events_); }

  absl::StatusOr<std::optional<GpuEvent>> Wait(absl::Duration timeout) override {
    NvmlEventData data{};
    const auto ms = static_cast<unsigned>(absl::ToInt64Milliseconds(timeout));
    const NvmlReturn code = functions_.wait_for_event(events_, &data, ms);
    if (code == kTimeout) return std::nullopt;
    if (code != 0) return absl::UnavailableError(functions_.error_string(code));
    char uuid[kTextBytes] = {};
    if (functions_.uuid(data.device, uuid, kTextBytes) != 0) return std::nullopt;
    return GpuEvent{uuid, data.type == kXidError ? data.data : 0};
  }

 private:
  const NvmlHandle events_;
  const Functions functions_;
};

class LoadedNvml final : public Nvml {
 public:
  LoadedNvml(void* library, const Functions& functions)
      : library_(library), functions_(functions) {}
  ~LoadedNvml() override {
    functions_.shutdown();
    dlclose(library_);
  }

  absl::StatusOr<int> Count() override {
    unsigned count = 0;
    PELAB_RETURN_IF_ERROR(Check(functions_.count(&count), "cannot count GPUs"));
    return static_cast<int>(count);
  }
  absl::StatusOr<GpuInfo> Device(int index) override {
    NvmlHandle handle = nullptr;
    PELAB_RETURN_IF_ERROR(Check(functions_.handle_by_index(static_cast<unsigned>(index), &handle),
                                absl::StrCat("cannot open GPU ", index)));
    return Describe(handle);
  }
  absl::StatusOr<GpuInfo> DeviceByUuid(const std::string& uuid) override {
    NvmlHandle handle = nullptr;
    if (functions_.handle_by_uuid(uuid.c_str(), &handle) != 0) {
      return absl::NotFoundError(absl::StrCat("no GPU has the UUID ", uuid));
    }
    return Describe(handle);
  }
  absl::StatusOr<GpuLoad> Load(const std::string& uuid) override {
    NvmlHandle handle = nullptr;
    if (functions_.handle_by_uuid(uuid.c_str(), &handle) != 0) {
      return absl::NotFoundError(absl::StrCat("no GPU has the UUID ", uuid));
    }
    GpuLoad load;
    NvmlUtilization rates{};
    if (functions_.utilization(handle, &rates) == 0) {
      load.busy_percent = static_cast<int>(rates.gpu);
    }
    NvmlMemory memory{};
    if (functions_.memory(handle, &memory) == 0) {
      load.memory_used = memory.used;
      load.memory_total = memory.total;
    }
    unsigned long long millijoules = 0;
    if (functions_.energy != nullptr && functions_.energy(handle, &millijoules) == 0) {
      load.energy_joules = static_cast<double>(millijoules) / 1000;
    }
    return load;
  }
  absl::StatusOr<std::unique_ptr<NvmlEvents>> Watch(
      const std::vector<std::string>& uuids) override {
    const auto& f = functions_;
    if (f.create_events == nullptr || f.register_events == nullptr || f.wait_for_event == nullptr ||
        f.free_events == nullptr) {
      return absl::UnimplementedError("the NVIDIA driver is too old");
    }
    NvmlHandle events = nullptr;
    PELAB_RETURN_IF_ERROR(Check(f.create_events(&events), "cannot ask for events"));
    auto watch = std::make_unique<LoadedEvents>(events, f);
    bool any = false;
    for (const std::string& uuid : uuids) {
      NvmlHandle device = nullptr;
      if (f.handle_by_uuid(uuid.c_str(), &device) != 0) continue;
      any |= f.register_events(device, kXidError | kDoubleBitError, events) == 0 ||
             f.register_events(device, kXidError, events) == 0;  // without ECC memory
    }
    if (!any) return absl::UnimplementedError("no GPU reports them");
    return watch;
  }

 private:
  absl::Status Check(NvmlReturn code, const std::string& what) const {
    if (code == 0) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat(what, ": ", functions_.error_string(code)));
  }
  absl::StatusOr<GpuInfo> Describe(NvmlHandle handle) const {
    char uuid[kTextBytes] = {};
    char name[kTextBytes] = {};
    NvmlMemory memory{};
    PELAB_RETURN_IF_ERROR(
        Check(functions_.uuid(handle, uuid, kTextBytes), "cannot read a GPU's UUID"));
    PELAB_RETURN_IF_ERROR(
        Check(functions_.name(handle, name, kTextBytes), "cannot read a GPU's name"));
    // Some integrated devices do not report how much memory they have.
    if (functions_.memory(handle, &memory) != 0) memory.total = 0;
    return GpuInfo{uuid, name, memory.total};
  }

  void* const library_;
  const Functions functions_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Nvml>> LoadNvml(const std::string& library) {
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return absl::NotFoundError(absl::StrCat("there is no ", library));
  Functions functions;
  if (!LoadAll(handle, &functions)) {
    dlclose(handle);
    return absl::NotFoundError(absl::StrCat(library, " lacks a function that this program needs"));
  }
  if (const NvmlReturn code = functions.init(); code != 0) {
    const std::string reason = functions.error_string(code);
    dlclose(handle);
    return absl::NotFoundError(absl::StrCat("the NVIDIA driver does not answer: ", reason));
  }
  return std::unique_ptr<Nvml>(new LoadedNvml(handle, functions));
}

}  // namespace pelab::agent
