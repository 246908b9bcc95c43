// A stand-in for NVIDIA's management library, with the functions that the worker loads. It reports
// two GPUs. If PELAB_FAKE_XIDS names a file, the second GPU has the Xid errors whose numbers are in
// it, one after the other: "13 79". "ecc" stands for a memory error that was not corrected, and
// "79@0" is of the first GPU. If PELAB_FAKE_ENERGY names a file, the first GPU has used as many
// millijoules as the file says, and cannot be read if the file has no number.
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

extern "C" {

namespace {
int devices[2];
const char* const kUuids[2] = {"GPU-11111111-0000", "GPU-22222222-0000"};
int IndexOf(void* device) { return device == &devices[0] ? 0 : 1; }
struct Memory {
  unsigned long long total, free, used;
};
struct Utilization {
  unsigned gpu, memory;
};
struct Event {
  void* device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
};
int next_event = 0;
}  // namespace

int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
const char* nvmlErrorString(int) { return "as the test wants it"; }
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (index >= 2) return 2;
  *device = &devices[index];
  return 0;
}
int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  for (int index = 0; index < 2; ++index) {
    if (std::strcmp(uuid, kUuids[index]) != 0) continue;
    *device = &devices[index];
    return 0;
  }
  return 6;
}
int nvmlDeviceGetUUID(void* device, char* uuid, unsigned length) {
  std::strncpy(uuid, kUuids[IndexOf(device)], length);
  return 0;
}
int nvmlDeviceGetName(void* device, char* name, unsigned length) {
  std::strncpy(name, IndexOf(device) == 0 ? "Fake A" : "Fake B", length);
  return 0;
}
int nvmlDeviceGetMemoryInfo(void* device, Memory* memory) {
  if (IndexOf(device) == 1) return 3;  // not supported
  *memory = {1000, 900, 100};
  return 0;
}
int nvmlDeviceGetUtilizationRates(void* device, Utilization* rates) {
  if (IndexOf(device) == 0) return 3;  // not supported
  *rates = {87, 12};
  return 0;
}
int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* millijoules) {
  if (IndexOf(device) == 1) return 3;  // not supported
  *millijoules = 12500;
  const char* const name = std::getenv("PELAB_FAKE_ENERGY");
  return name == nullptr || std::ifstream(name) >> *millijoules ? 0 : 999;
}
int nvmlEventSetCreate(void** events) {
  next_event = 0;
  *events = devices;
  return 0;
}
int nvmlEventSetFree(void*) { return 0; }
int nvmlDeviceRegisterEvents(void* device, unsigned long long types, void*) {
  return IndexOf(device) == 0 && types != 0x8 ? 3 : 0;  // the first GPU has no ECC memory
}
int nvmlEventSetWait_v2(void*, Event* event, unsigned) {
  const char* const name = std::getenv("PELAB_FAKE_XIDS");
  std::ifstream file(name == nullptr ? "" : name);
  std::string word;
  for (int i = 0; i <= next_event; ++i) {
    if (!(file >> word)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return 10;  // timeout
    }
  }
  ++next_event;
  const bool memory = word == "ecc";
  *event = Event();
  event->device = &devices[word.find("@0") == std::string::npos ? 1 : 0];
  event->type = memory ? 0x2 : 0x8;
  event->data = memory ? 0 : std::strtoull(word.c_str(), nullptr, 10);
  return 0;
}

}  // extern "C"
