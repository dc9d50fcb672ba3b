// NCCL as far as src/cuda uses it, for the emulated GPUs (../nccl.cc). Signatures and meanings: NVIDIA, "NCCL User
// Guide", version 2.18 and later.
#ifndef CREMA_TESTS_CUDA_EMULATION_NCCL_H_
#define CREMA_TESTS_CUDA_EMULATION_NCCL_H_

#include <cuda_runtime.h>

// They are looked up by name.
#pragma GCC visibility push(default)
extern "C" {

struct ncclComm;
using ncclComm_t = ncclComm*;
struct ncclUniqueId {
  char internal[128];
};
enum ncclResult_t { ncclSuccess = 0, ncclSystemError = 2, ncclInvalidArgument = 4, ncclRemoteError = 6 };
enum ncclRedOp_t { ncclSum = 0 };
enum ncclDataType_t { ncclFloat32 = 7 };

const char* ncclGetLastError(ncclComm_t comm);
const char* ncclGetErrorString(ncclResult_t result);
ncclResult_t ncclCommInitAll(ncclComm_t* comms, int devices, const int* list);
ncclResult_t ncclGetUniqueId(ncclUniqueId* id);
ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank);
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t ncclCommAbort(ncclComm_t comm);
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error);
ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t operation,
                           ncclComm_t comm, cudaStream_t stream);

}  // extern "C"
#pragma GCC visibility pop

#endif  // CREMA_TESTS_CUDA_EMULATION_NCCL_H_
