/* A libcuda.so.1 of CUDA 12.0 for tests: one device, whose memory is the host's; it counts what is not freed. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define API(name, ...) __attribute__((visibility("default"))) int name(__VA_ARGS__)
#define CURRENT if (!depth) return 201 /* CUDA_ERROR_INVALID_CONTEXT */

typedef void* Handle;
typedef uint64_t Address;

static __thread Handle stack[8];
static __thread int depth;
static int set[2]; /* the last attribute of a function */
static int number(const char* name, int usual) { const char* text = getenv(name); return text ? atoi(text) : usual; }

__attribute__((visibility("default"))) int stub_retained, stub_memory, stub_pinned, stub_streams, stub_events, stub_modules;
__attribute__((visibility("default"))) char stub_launch[1024];

API(cuInit, unsigned flags) { return number("STUB_INIT", 0); }
API(cuDriverGetVersion, int* version) { *version = number("STUB_VERSION", 12000); return 0; }
API(cuDeviceGetCount, int* count) { *count = number("STUB_COUNT", 1); return 0; }
API(cuDeviceGet, int* device, int index) { *device = index; return 0; }
API(cuDeviceGetName, char* text, int size, int device) { snprintf(text, size, "Stub"); return 0; }
API(cuDeviceGetPCIBusId, char* text, int size, int device) { snprintf(text, size, "0000:01:00.0"); return 0; }
API(cuDeviceTotalMem_v2, size_t* size, int device) { *size = 1ull << 33; return 0; }
API(cuDeviceGetAttribute, int* value, int attribute, int device) {
    switch (attribute) {
        case 13: *value = 1980000; return 0;   /* clock rate */
        case 16: *value = 132; return 0;       /* multiprocessors */
        case 75: *value = 9; return 0;         /* compute capability, major */
        case 76: *value = 0; return 0;         /* and minor */
        case 97: *value = 227 << 10; return 0; /* shared memory of a block, opt-in */
    }
    return 1;
}
API(cuDevicePrimaryCtxRetain, Handle* context, int device) { *context = (Handle)4096; stub_retained++; return 0; }
API(cuDevicePrimaryCtxRelease_v2, int device) { stub_retained--; return 0; }
API(cuCtxPushCurrent_v2, Handle context) { stack[depth++] = context; return 0; }
API(cuCtxPopCurrent_v2, Handle* context) { CURRENT; *context = stack[--depth]; return 0; }
API(cuCtxGetCurrent, Handle* context) { *context = depth ? stack[depth - 1] : 0; return 0; }
API(cuMemGetInfo_v2, size_t* free, size_t* total) { CURRENT; *free = 1 << 30; *total = 1ull << 33; return 0; }
API(cuMemAlloc_v2, Address* address, size_t size) {
    CURRENT;
    if (size > 1 << 28) return 2; /* CUDA_ERROR_OUT_OF_MEMORY */
    *address = (Address)malloc(size); stub_memory++;
    return 0;
}
API(cuMemFree_v2, Address address) { CURRENT; free((void*)address); stub_memory--; return 0; }
API(cuMemHostAlloc, void** memory, size_t size, unsigned flags) { CURRENT; *memory = malloc(size); stub_pinned++; return 0; }
API(cuMemFreeHost, void* memory) { CURRENT; free(memory); stub_pinned--; return 0; }
API(cuMemcpyHtoDAsync_v2, Address to, const void* from, size_t size, Handle stream) { CURRENT; memcpy((void*)to, from, size); return 0; }
API(cuMemcpyDtoHAsync_v2, void* to, Address from, size_t size, Handle stream) { CURRENT; memcpy(to, (void*)from, size); return 0; }
API(cuMemcpyDtoH_v2, void* to, Address from, size_t size) { CURRENT; memcpy(to, (void*)from, size); return 0; }
API(cuMemsetD32Async, Address to, unsigned value, size_t count, Handle stream) {
    CURRENT;
    for (size_t i = 0; i < count; i++) ((unsigned*)to)[i] = value;
    return 0;
}
API(cuStreamCreate, Handle* stream, unsigned flags) { CURRENT; *stream = malloc(1); stub_streams++; return flags != 1; }
API(cuStreamDestroy_v2, Handle stream) { CURRENT; free(stream); stub_streams--; return 0; }
API(cuStreamSynchronize, Handle stream) { CURRENT; usleep(number("STUB_SLEEP", 0)); return number("STUB_SYNCHRONIZE", 0); }
API(cuStreamWaitEvent, Handle stream, Handle event, unsigned flags) { CURRENT; return 0; }
API(cuEventCreate, Handle* event, unsigned flags) { CURRENT; *event = malloc(1); stub_events++; return flags & ~2; }
API(cuEventDestroy_v2, Handle event) { CURRENT; free(event); stub_events--; return 0; }
API(cuEventRecord, Handle event, Handle stream) { CURRENT; return 0; }
API(cuEventQuery, Handle event) { CURRENT; return number("STUB_QUERY", 0); }
API(cuEventSynchronize, Handle event) { CURRENT; return 0; }
API(cuEventElapsedTime, float* time, Handle from, Handle to) { CURRENT; *time = 1.5f; return 0; }
API(cuModuleLoadData, Handle* module, const void* image) {
    CURRENT;
    if (memcmp(image, "cubin", 5)) return 200; /* CUDA_ERROR_INVALID_IMAGE */
    *module = malloc(1); stub_modules++;
    return 0;
}
API(cuModuleUnload, Handle module) { CURRENT; free(module); stub_modules--; return 0; }
API(cuModuleGetFunction, Handle* function, Handle module, const char* name) { CURRENT; *function = (Handle)1; return strcmp(name, "kernel") ? 500 : 0; }
API(cuFuncSetAttribute, Handle function, int attribute, int value) { CURRENT; set[0] = attribute; set[1] = value; return 0; }
API(cuLaunchKernel, Handle function, unsigned x, unsigned y, unsigned z, unsigned a, unsigned b, unsigned c, unsigned shared,
    Handle stream, void** each, void** packed) {
    CURRENT;
    if (each || packed[0] != (void*)1 || packed[2] != (void*)2 || packed[4]) return 1;
    char* text = stub_launch;
    text += sprintf(text, "%d=%d %u,%u,%u %u,%u,%u %u ", set[0], set[1], x, y, z, a, b, c, shared);
    for (size_t i = 0; i < *(size_t*)packed[3]; i++) text += sprintf(text, "%02x", ((unsigned char*)packed[1])[i]);
    return 0;
}
API(cuGetErrorString, int status, const char** text) {
    *text = status == 2 ? "out of memory" : status == 700 ? "an illegal memory access was encountered" : "another error";
    return 0;
}
API(cuGetProcAddress_v2, const char* name, void** address, int version, uint64_t flags, int* status) {
    char second[128];
    snprintf(second, sizeof second, "%s_v2", name);
    if (!(*address = dlsym(RTLD_DEFAULT, second))) *address = dlsym(RTLD_DEFAULT, name);
    return *address ? 0 : 500;
}
