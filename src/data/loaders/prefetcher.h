// Batches made ahead of the one who consumes them.
#ifndef CREMA_DATA_LOADERS_PREFETCHER_H_
#define CREMA_DATA_LOADERS_PREFETCHER_H_

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

#include "crema/batch_schedule.h"
#include "data/loaders/item_loader.h"

namespace crema {

struct PrefetchOptions {
  int64_t batch = 1;   // items in a batch
  int ahead = 4;       // batches made ahead of the consumer, at least 1
  int threads = 1;     // that make them, at least 1
  uint64_t start = 0;  // position in the stream
  // Which of the stream's batches are made; batch b holds the items from start + b * batch on.
  BatchSchedule schedule = {};
};

// One batch of the stream.
struct Batch {
  uint64_t first = 0;             // stream position of item 0
  const float* data = nullptr;    // batch x item shape
  const float* labels = nullptr;  // batch x (ItemLoader::label_count() + extra_count())
};

// Worker threads fill batches, several of them parts of one, into a ring of buffers that is allocated once. What is
// delivered does not depend on the number of threads. Used by one consumer thread.
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
  // Starts the schedule again, with batch 0 at `position`.
  void Seek(uint64_t position);
  // Goes on with batch schedule.first of those that are counted from position 0 on, and by that schedule. Where the
  // batches to come are the same as before, those made ahead are kept.
  void Follow(const BatchSchedule& schedule);

  // Where the next batch begins. Of ranks that take turns (schedule.first > 0 in the options): where that of the first
  // rank does, behind the last ones of them all.
  uint64_t position() const { return start_ + schedule_.Offset(delivered_) * batch(); }
  // The last batch delivered; all null before the first.
  const Batch& current() const { return current_; }
  const ItemLoader& loader() const { return *loader_; }
  int threads() const { return options_.threads; }
  // How long Next has waited for batches so far.
  double waited_seconds() const { return waited_seconds_; }

 private:
  struct FreeMemory {
    void operator()(float* data) const { std::free(data); }
  };
  struct Slot {
    std::unique_ptr<float[], FreeMemory> data, labels;
    // Guarded by mutex_.
    std::exception_ptr error;  // of the first part that has one
    int64_t error_part = 0;
    int64_t in_work = 0, done = 0;  // parts
    bool ready = false;
  };
  // A run of items of one batch, which one worker fills.
  struct Part {
    uint64_t batch = 0;
    int64_t index = 0;
  };

  uint64_t batch() const { return static_cast<uint64_t>(options_.batch); }
  // Where the k-th batch that is made begins.
  uint64_t FirstOf(uint64_t k) const { return start_ + (schedule_.first + schedule_.Offset(k)) * batch(); }
  void Start();
  void Stop();
  void Work();
  void Fill(const Slot& slot, const Part& part, ItemScratch& scratch);
  Part Claim();
  void Finish(Slot& slot, const Part& part, std::exception_ptr error);
  Slot& SlotOf(uint64_t batch) { return slots_[batch % slots_.size()]; }

  const std::shared_ptr<const ItemLoader> loader_;
  const PrefetchOptions options_;
  const int64_t item_count_, label_count_, part_items_, parts_;
  std::vector<Slot> slots_;
  std::vector<std::thread> workers_;

  // Changed only while there are no workers.
  uint64_t start_ = 0;
  BatchSchedule schedule_;
  // The consumer's own.
  uint64_t delivered_ = 0;
  Batch current_;
  double waited_seconds_ = 0;

  std::mutex mutex_;
  std::condition_variable work_, filled_;
  Part next_;                       // to be claimed by a worker
  uint64_t released_ = 0;           // batches given back by the consumer
  std::atomic<bool> stop_ = false;  // changed under mutex_
  bool failed_ = false;
};

}  // namespace crema

#endif  // CREMA_DATA_LOADERS_PREFETCHER_H_
