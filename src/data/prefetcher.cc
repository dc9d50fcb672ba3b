#include "data/prefetcher.h"

#include <string>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "crema/error.h"

namespace crema {

namespace {

constexpr size_t kAlignment = 64;

float* Allocate(int64_t item_count, const PrefetchOptions& options) {
  const double wanted = static_cast<double>(options.batch) * static_cast<double>(item_count) * sizeof(float);
  const uint64_t bytes = static_cast<uint64_t>(options.batch) * static_cast<uint64_t>(item_count) * sizeof(float);
  void* data = wanted < 0x1p60 ? std::aligned_alloc(kAlignment, (bytes / kAlignment + 1) * kAlignment) : nullptr;
  if (!data) {
    throw EnvironmentError("not enough memory to prefetch " + std::to_string(options.ahead) + " batches of " +
                           std::to_string(static_cast<uint64_t>(wanted / (1 << 20))) +
                           " MiB; lower prefetch or batch_size of the data layer");
  }
  return static_cast<float*>(data);
}

}  // namespace

Prefetcher::Prefetcher(std::shared_ptr<const ItemLoader> loader, const PrefetchOptions& options)
    : loader_(std::move(loader)),
      options_(options),
      item_count_(loader_->item_shape().count()),
      slots_(options.ahead + 1),
      start_(options.start),
      schedule_(options.schedule) {
  CREMA_CHECK(options.batch > 0 && options.ahead > 0 && options.threads > 0);
  CREMA_CHECK(options.schedule.valid());
  for (Slot& slot : slots_) {
    slot.data.reset(Allocate(item_count_, options));
    slot.labels.reset(Allocate(1, options));
  }
  workers_.reserve(options.threads);
  Start();
}

Prefetcher::~Prefetcher() { Stop(); }

void Prefetcher::Start() {
  claimed_ = released_ = delivered_ = 0;
  stop_ = false;
  failed_ = false;
  current_ = Batch();
  for (Slot& slot : slots_) {
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
  filled_.wait(lock, [&slot] { return slot.ready; });
  if (slot.error) std::rethrow_exception(slot.error);
  // Not before: where this batch cannot be had, the last one stays.
  if (released_ < delivered_) {
    SlotOf(released_).ready = false;
    ++released_;
    work_.notify_one();
  }
  current_ = {FirstOf(delivered_), slot.data.get(), slot.labels.get()};
  ++delivered_;
  return current_;
}

void Prefetcher::Work() {
  std::vector<float> scratch;
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [this] { return stop_ || (!failed_ && claimed_ < released_ + slots_.size()); });
    if (stop_) return;
    const uint64_t batch = claimed_++;
    Slot& slot = SlotOf(batch);
    lock.unlock();
    Fill(slot, batch, scratch);
    lock.lock();
    // Batches behind a failed one are never delivered.
    failed_ |= slot.error != nullptr;
    slot.ready = true;
    filled_.notify_one();
  }
}

void Prefetcher::Fill(Slot& slot, uint64_t batch, std::vector<float>& scratch) {
  const uint64_t first = FirstOf(batch);
  try {
    for (int64_t i = 0; i < options_.batch && !stop_.load(std::memory_order_relaxed); ++i) {
      loader_->Load(first + static_cast<uint64_t>(i), slot.data.get() + i * item_count_, slot.labels.get() + i,
                    scratch);
    }
  } catch (...) {
    slot.error = std::current_exception();
  }
}

}  // namespace crema
