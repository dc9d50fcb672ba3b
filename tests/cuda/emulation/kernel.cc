#include "kernel.h"

#include <ucontext.h>

#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

thread_local uint3 threadIdx, blockIdx;
thread_local dim3 blockDim, gridDim;

namespace crema_emulation {

namespace {

// Fibers are switched by jumps, as swapcontext asks the kernel for the signal mask every time. But to sanitizers a jump
// leaves a stack for good.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CREMA_SANITIZED 1
using Place = ucontext_t;
#else
#define CREMA_SANITIZED 0
using Place = std::jmp_buf;
#endif

#if defined(__SANITIZE_ADDRESS__)
// Frames of functions lie on a stack of the sanitizer's own, one for each fiber.
class SanitizedStack {
 public:
  static void Leave(SanitizedStack& from, const SanitizedStack& to) {
    __sanitizer_start_switch_fiber(&from.frames_, to.bottom_, to.size_);
  }
  // `from`: filled in, unless it is null.
  static void Arrive(const SanitizedStack& at, SanitizedStack* from) {
    __sanitizer_finish_switch_fiber(at.frames_, from ? &from->bottom_ : nullptr, from ? &from->size_ : nullptr);
  }
  void Set(const void* bottom, size_t size) { bottom_ = bottom, size_ = size; }

 private:
  void* frames_ = nullptr;
  const void* bottom_ = nullptr;
  size_t size_ = 0;
};
#else
struct SanitizedStack {
  static void Leave(SanitizedStack&, const SanitizedStack&) {}
  static void Arrive(const SanitizedStack&, SanitizedStack*) {}
  void Set(const void*, size_t) {}
};
#endif

thread_local SanitizedStack scheduler_stack;

// A thread runs to its end before the next one starts, unless it waits for others: then it keeps its fiber, and the
// threads after it start in another one.
class Block {
 public:
  Block(unsigned threads, bool backwards, const std::function<void()>& body)
      : threads_(threads), backwards_(backwards), body_(body), exchanged_(threads) {}

  void Run();
  void Wait() {
    fiber_->waits = true;
    SwitchBack();
  }
  uint64_t Exchange(uint64_t given, unsigned lane);
  unsigned current() const { return fiber_->thread; }

 private:
  static constexpr size_t kStack = 64 * 1024;

  struct Fiber {
    Fiber() {
      getcontext(&context);
      context.uc_stack.ss_sp = stack.get();
      context.uc_stack.ss_size = kStack;
      context.uc_link = nullptr;
      makecontext(&context, RunBlocks, 0);
      sanitized.Set(stack.get(), kStack);
    }
    std::unique_ptr<std::byte[]> stack = std::make_unique_for_overwrite<std::byte[]>(kStack);
    ucontext_t context;  // where it begins
    SanitizedStack sanitized;
    bool begun = false;
    Place place;      // where it goes on
    unsigned thread;  // the one that it runs
    bool finished;    // with its threads of the block
    bool waits;       // for all others
  };

  // Fibers are kept for the next block: making them costs more than most kernels.
  static Fiber& FiberAt(size_t i) {
    static thread_local std::deque<Fiber> fibers;
    while (fibers.size() <= i) fibers.emplace_back();
    return fibers[i];
  }

  static void RunBlocks();
  void RunThreads();
#if CREMA_SANITIZED
  void SwitchTo(Fiber& fiber) {
    fiber_ = &fiber;
    SanitizedStack::Leave(scheduler_stack, fiber.sanitized);
    swapcontext(&scheduler_, std::exchange(fiber.begun, true) ? &fiber.place : &fiber.context);
    SanitizedStack::Arrive(scheduler_stack, nullptr);
  }
  // When the fiber goes on, it may be for another block.
  void SwitchBack() {
    Fiber& self = *fiber_;
    SanitizedStack::Leave(self.sanitized, scheduler_stack);
    swapcontext(&self.place, &scheduler_);
    SanitizedStack::Arrive(self.sanitized, &scheduler_stack);
  }
#else
  void SwitchTo(Fiber& fiber) {
    fiber_ = &fiber;
    if (_setjmp(scheduler_) != 0) return;
    if (!std::exchange(fiber.begun, true)) setcontext(&fiber.context);
    std::longjmp(fiber.place, 1);
  }
  void SwitchBack() {
    if (_setjmp(fiber_->place) == 0) std::longjmp(scheduler_, 1);
  }
#endif
  static void SetIndex(unsigned t) {
    threadIdx = {t % blockDim.x, t / blockDim.x % blockDim.y, t / (blockDim.x * blockDim.y)};
  }

  const unsigned threads_;
  const bool backwards_;
  const std::function<void()>& body_;
  unsigned started_ = 0;
  Fiber* fiber_ = nullptr;
  Place scheduler_;
  std::vector<uint64_t> exchanged_;
};

thread_local Block* running = nullptr;

void Block::RunBlocks() {
  SanitizedStack::Arrive({}, &scheduler_stack);
  while (true) running->RunThreads();
}

void Block::RunThreads() {
  Fiber& self = *fiber_;
  while (started_ < threads_) {
    self.thread = backwards_ ? threads_ - 1 - started_ : started_;
    ++started_;
    SetIndex(self.thread);
    body_();
  }
  self.finished = true;
  SwitchBack();
}

void Block::Run() {
  running = this;
  std::vector<Fiber*> unfinished;  // in the order in which their threads started
  while (started_ < threads_) {
    Fiber& fiber = FiberAt(unfinished.size());
    fiber.finished = fiber.waits = false;
    SwitchTo(fiber);
    if (!fiber.finished) unfinished.push_back(&fiber);
  }
  while (!unfinished.empty()) {
    bool all_wait = true;
    for (Fiber* fiber : unfinished) {
      if (fiber->waits) continue;
      all_wait = false;
      SetIndex(fiber->thread);
      SwitchTo(*fiber);
    }
    if (all_wait) {
      for (Fiber* fiber : unfinished) fiber->waits = false;
    }
    std::erase_if(unfinished, [](const Fiber* fiber) { return fiber->finished; });
  }
  running = nullptr;
}

uint64_t Block::Exchange(uint64_t given, unsigned lane) {
  const unsigned self = current();
  exchanged_[self] = given;
  SwitchBack();  // all of the warp have given
  const unsigned from = self / 32 * 32 + lane % 32;
  const uint64_t taken = from < threads_ ? exchanged_[from] : given;
  SwitchBack();  // all of the warp have taken
  return taken;
}

}  // namespace

void SynchronizeThreads() { running->Wait(); }
uint64_t Exchange(uint64_t given, unsigned lane) { return running->Exchange(given, lane); }
unsigned Lane() { return running->current() % 32; }
unsigned WarpSize() { return 32; }

void RunKernel(dim3 grid, dim3 block, const std::function<void()>& body) {
  gridDim = grid;
  blockDim = block;
  static thread_local bool backwards = false;
  backwards = !backwards;
  const uint64_t blocks = uint64_t{grid.x} * grid.y * grid.z;
  for (uint64_t i = 0; i < blocks; ++i) {
    const uint64_t at = backwards ? blocks - 1 - i : i;
    blockIdx = {static_cast<unsigned>(at % grid.x), static_cast<unsigned>(at / grid.x % grid.y),
                static_cast<unsigned>(at / grid.x / grid.y)};
    Block(block.x * block.y * block.z, backwards, body).Run();
  }
}

}  // namespace crema_emulation
