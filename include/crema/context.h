// What a computation needs to know of its surroundings. Passed down explicitly: crema has no global state, so several
// ranks, or a train and a test net, can live in one process.
#ifndef CREMA_CONTEXT_H_
#define CREMA_CONTEXT_H_

#include <cstdint>

namespace crema {

class Device;

struct Context {
  Device* device = nullptr;  // not owned; outlives every net built with it
  uint64_t seed = 0;         // of every random number: the same seed gives the same run
  // Threads that read and decode data, of each data layer; 0: as many as its data_param says.
  int data_threads = 0;
};

}  // namespace crema

#endif  // CREMA_CONTEXT_H_
