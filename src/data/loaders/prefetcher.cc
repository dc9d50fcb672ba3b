#include "data/loaders/prefetcher.h"

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include "base/aligned_memory.h"
#include "base/check.h"
#include "base/stopwatch.h"
#include "crema/error.h"

namespace crema {

namespace {

float* Allocate(int64_t item_count, const PrefetchOptions& options) {
  const double wanted = static_cast<double>(options.batch) * static_cast<double>(item_count) * sizeof(float);
  const uint64_t bytes = static_cast<uint64_t>(options.batch) * static_cast<uint64_t>(item_count) * sizeof(float);
  void* data = wanted < 0x1p60 ? AllocateAligned(bytes) : nullptr;
  if (!data) {
    throw EnvironmentError("not enough memory to prefetch " + std::to_string(options.ahead) + " batches of " +
                           std::to_string(static_cast<uint64_t>(wanted / (1 << 20))) +
                           " MiB; lower prefetch or batch_size of the data layer");
  }
  return static_cast<float*>(data);
}

// Several parts for each thread, so that none waits long for the others at the end of a batch.
int64_t PartItems(const PrefetchOptions& options) {
  if (options.threads == 1) return options.batch;
  const int64_t parts = int64_t{4} * std::max(1, options.threads);
  return (options.batch + parts - 1) / parts;
}

}  // namespace

Prefetcher::Prefetcher(std::shared_ptr<const ItemLoader> loader, const PrefetchOptions& options)
    : loader_(std::move(loader)),
      options_(options),
      item_count_(loader_->item_shape().count()),
      label_count_(loader_->label_count() + loader_->extra_count()),
      part_items_(PartItems(options)),
      parts_((options.batch + part_items_ - 1) / std::max<int64_t>(1, part_items_)),
      slots_(options.ahead + 1),
      start_(options.start),
      schedule_(options.schedule) {
  CREMA_CHECK(options.batch > 0 && options.ahead > 0 && options.threads > 0);
  CREMA_CHECK(options.schedule.valid());
  for (Slot& slot : slots_) {
    slot.data.reset(Allocate(item_count_, options));
    slot.labels.reset(Allocate(label_count_, options));
  }
  workers_.reserve(options.threads);
  Start();
}

Prefetcher::~Prefetcher() { Stop(); }

void Prefetcher::Start() {
  released_ = delivered_ = 0;
  next_ = Part();
  stop_ = false;
  failed_ = false;
  current_ = Batch();
  for (Slot& slot : slots_) {
    slot.in_work = slot.done = 0;
    slot.ready = false;
    slot.error = nullptr;
  }
  try {
    for (int i = 0; i < options_.threads; ++i) workers_.emplace_back([this] { Work(); });
  } catch (const std::system_error& error) {
    Stop();
    throw EnvironmentError(std::string("cannot start a data thread: ") + error.what());
  }
}

void Prefetcher::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_.notify_all();
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
}

void Prefetcher::Seek(uint64_t position) {
  Stop();
  start_ = position;
  Start();
}

void Prefetcher::Follow(const BatchSchedule& schedule) {
  CREMA_CHECK(schedule.valid());
  const bool in_step =
      schedule.run == schedule_.run && schedule.stride == schedule_.stride && delivered_ % schedule_.run == 0;
  const bool alike = in_step || (schedule.contiguous() && schedule_.contiguous());
  const uint64_t begin = schedule.first * batch();
  if (alike && schedule_.first == 0 && position() == begin) return;
  Stop();
  start_ = begin;
  schedule_ = {0, schedule.run, schedule.stride};
  Start();
}

const Batch& Prefetcher::Next() {
  std::unique_lock lock(mutex_);
  Slot& slot = SlotOf(delivered_);
  if (!slot.ready) {
    const Stopwatch watch;
    filled_.wait(lock, [&slot] { return slot.ready; });
    waited_seconds_ += watch.Seconds();
  }
  if (slot.error) std::rethrow_exception(slot.error);
  // Not before: where this batch cannot be had, the last one stays.
  if (released_ < delivered_) {
    Slot& free = SlotOf(released_);
    free.done = 0;
    free.ready = false;
    ++released_;
    parts_ > 1 ? work_.notify_all() : work_.notify_one();
  }
  current_ = {FirstOf(delivered_), slot.data.get(), slot.labels.get()};
  ++delivered_;
  return current_;
}

void Prefetcher::Work() {
  ItemScratch scratch;
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [this] { return stop_ || (!failed_ && next_.batch < released_ + slots_.size()); });
    if (stop_) return;
    const Part part = Claim();
    Slot& slot = SlotOf(part.batch);
    lock.unlock();
    std::exception_ptr error;
    try {
      Fill(slot, part, scratch);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    Finish(slot, part, std::move(error));
  }
}

Prefetcher::Part Prefetcher::Claim() {
  const Part part = next_;
  ++SlotOf(part.batch).in_work;
  if (++next_.index == parts_) next_ = {part.batch + 1, 0};
  return part;
}

void Prefetcher::Finish(Slot& slot, const Part& part, std::exception_ptr error) {
  --slot.in_work;
  ++slot.done;
  if (error && (!slot.error || part.index < slot.error_part)) {
    slot.error = std::move(error);
    slot.error_part = part.index;
  }
  // Parts behind a failed one are never delivered; those before it have all been claimed.
  failed_ |= slot.error != nullptr;
  if (slot.done == parts_ || (slot.error && slot.in_work == 0)) {
    slot.ready = true;
    filled_.notify_one();
  }
}

void Prefetcher::Fill(const Slot& slot, const Part& part, ItemScratch& scratch) {
  const uint64_t first = FirstOf(part.batch);
  const int64_t begin = part.index * part_items_, end = std::min(options_.batch, begin + part_items_);
  for (int64_t i = begin; i < end && !stop_.load(std::memory_order_relaxed); ++i) {
    loader_->Load(first + static_cast<uint64_t>(i), slot.data.get() + i * item_count_,
                  slot.labels.get() + i * label_count_, scratch);
  }
}

}  // namespace crema
