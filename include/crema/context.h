// What a computation needs to know of its surroundings. Passed down explicitly: crema has no global state, so several
// ranks, or a train and a test net, can live in one process.
#ifndef CREMA_CONTEXT_H_
#define CREMA_CONTEXT_H_

#include <cstdint>

namespace crema {

class Device;

struct Context {
  Device* device = nullptr;  // of crema/device.h; not owned; outlives every net built with it
  uint64_t seed = 0;         // of every random number: the same seed gives the same run
  // Threads that read and decode data, of each data layer; 0: as many as its data_param says.
  int data_threads = 0;
  // Of several that train copies of one net on different records (SolverOptions::devices), this one's place.
  int rank = 0, ranks = 1;

  // Instead of `seed`, for random numbers that layers draw in a pass (dropout): each rank has others. That of rank 0 is
  // `seed`.
  uint64_t draw_seed() const { return seed + static_cast<uint64_t>(rank) * 0x9E3779B97F4A7C15u; }
};

}  // namespace crema

#endif  // CREMA_CONTEXT_H_
