// Where the GPU library and what it needs are.
#ifndef CREMA_DEVICE_GPU_LIBRARY_H_
#define CREMA_DEVICE_GPU_LIBRARY_H_

#include <string>

namespace crema {

// libcrema_cuda.so beside the library that this function is in; CREMA_GPU_LIBRARY names another one.
std::string GpuLibraryPath();
bool NamesGpuLibrary();
// Whether CUDA_HOME says where CUDA's libraries are.
bool NamesCuda();

// Loads the libraries of CUDA, of the versions that the GPU library in that file links: those in CUDA_HOME; else those
// that the system's own search finds (LD_LIBRARY_PATH, ld.so.conf); else those of Python's nvidia packages in
// VIRTUAL_ENV, CONDA_PREFIX, the environment of the python3 on PATH, ~/.local or /usr/local, or in /usr/local/cuda.
// What is nowhere is left out: loading the GPU library then says which it is. Returns, for people, what was there
// instead and why it was passed over; empty where nothing was, or all was found.
std::string LoadCudaLibraries(const std::string& gpu_library);

}  // namespace crema

#endif  // CREMA_DEVICE_GPU_LIBRARY_H_
