// One binary for every x86-64 machine that still uses the vector instructions of the one it runs on.
#ifndef CREMA_BASE_MULTIVERSION_H_
#define CREMA_BASE_MULTIVERSION_H_

#include <cstdlib>  // defines __GLIBC__ where that is the C library

// Before a function: compile it for baseline x86-64, AVX2 and AVX-512, and choose when the program is loaded. What the
// function calls is compiled with it only when inlined: mark that CREMA_INLINE. Keep OpenMP parallel regions outside.
// Empty where the toolchain cannot do it: the choice needs ifunc, which sanitizers and other C libraries do not take.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// By feature level: "arch=haswell" would be chosen on that one processor model only, not on newer ones.
#if __GNUC__ >= 12
#define CREMA_MULTIVERSION __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define CREMA_MULTIVERSION __attribute__((target_clones("default", "avx2", "avx512f")))
#endif
#else
#define CREMA_MULTIVERSION
#endif

// For the small functions inside such loops: compilers do not otherwise promise to inline across instruction sets.
#define CREMA_INLINE inline __attribute__((always_inline))

// Before a function that kernels of a GPU call, too.
#if defined(__CUDACC__)
#define CREMA_HOST_DEVICE __host__ __device__
// The same for templates that call what they are given, be it for the host or for a GPU only.
#define CREMA_HOST_DEVICE_TEMPLATE _Pragma("nv_exec_check_disable")
#else
#define CREMA_HOST_DEVICE
#define CREMA_HOST_DEVICE_TEMPLATE
#endif

#endif  // CREMA_BASE_MULTIVERSION_H_
