// Loops whose iterations do not depend on each other.
#ifndef CREMA_BASE_INDEPENDENT_LOOP_H_
#define CREMA_BASE_INDEPENDENT_LOOP_H_

// Before a loop: its iterations may run in any order or together. Unlike `omp simd` it leaves to the compiler whether
// they do, and GCC keeps structs that are made within in registers.
#if defined(__clang__)
#define CREMA_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define CREMA_INDEPENDENT _Pragma("GCC ivdep")
#endif

#endif  // CREMA_BASE_INDEPENDENT_LOOP_H_
