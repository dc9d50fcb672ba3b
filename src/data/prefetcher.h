// Batches made ahead of the one who consumes them.
#ifndef CREMA_DATA_PREFETCHER_H_
#define CREMA_DATA_PREFETCHER_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "data/item_loader.h"

namespace crema {

struct PrefetchOptions {
  int64_t batch = 1;   // items in a batch
  int ahead = 4;       // batches made ahead of the consumer, at least 1
  int threads = 1;     // that make them, at least 1
  uint64_t start = 0;  // position in the stream
  // Of those that share the stream, each taking every `ranks`-th batch.
  int rank = 0, ranks = 1;
};

// One batch; batch k after the start holds the `batch` items from start + (k*ranks + rank) * batch on.
struct Batch {
  uint64_t first = 0;             // stream position of item 0
  const float* data = nullptr;    // batch x item shape
  const float* labels = nullptr;  // batch
};

// Worker threads fill whole batches into a ring of buffers that is allocated once. What is delivered does not depend on
// the number of threads. Used by one consumer thread.
class Prefetcher {
 public:
  // Starts the workers. Throws EnvironmentError where there is not enough memory for `ahead` + 1 batches.
  Prefetcher(std::shared_ptr<const ItemLoader> loader, const PrefetchOptions& options);
  // Stops the workers after the item they are at.
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // Waits for the next batch, which stays valid until the next call of Next or Seek. What the loader threw in this
  // batch is thrown here, again at every call.
  const Batch& Next();
  // Makes the batches of all ranks go on from `position`.
  void Seek(uint64_t position);

  // Stream position behind the last batches delivered by all ranks: the start plus the number of their items.
  uint64_t position() const { return start_ + delivered_ * stride(); }
  // The last batch delivered; all null before the first.
  const Batch& current() const { return current_; }
  const ItemLoader& loader() const { return *loader_; }

 private:
  struct FreeMemory {
    void operator()(float* data) const { std::free(data); }
  };
  struct Slot {
    std::unique_ptr<float[], FreeMemory> data, labels;
    std::exception_ptr error;
    bool ready = false;  // guarded by mutex_
  };

  // How far this rank's batches lie apart, and where batch k of them begins.
  uint64_t stride() const { return static_cast<uint64_t>(options_.batch) * static_cast<uint64_t>(options_.ranks); }
  uint64_t FirstOf(uint64_t batch) const {
    return start_ + batch * stride() + static_cast<uint64_t>(options_.batch) * static_cast<uint64_t>(options_.rank);
  }
  void Start();
  void Stop();
  void Work();
  void Fill(Slot& slot, uint64_t batch, std::vector<float>& scratch);
  Slot& SlotOf(uint64_t batch) { return slots_[batch % slots_.size()]; }

  const std::shared_ptr<const ItemLoader> loader_;
  const PrefetchOptions options_;
  const int64_t item_count_;
  std::vector<Slot> slots_;
  std::vector<std::thread> workers_;

  // The consumer's own.
  uint64_t start_ = 0, delivered_ = 0;
  Batch current_;

  std::mutex mutex_;
  std::condition_variable work_, filled_;
  uint64_t claimed_ = 0, released_ = 0;  // batches; claimed by workers, given back by the consumer
  std::atomic<bool> stop_ = false;       // changed under mutex_
  bool failed_ = false;
};

}  // namespace crema

#endif  // CREMA_DATA_PREFETCHER_H_
