// A stand-in for NVIDIA's management library, with the functions that the worker loads. It reports
// two GPUs.
#include <cstring>

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

}  // extern "C"
