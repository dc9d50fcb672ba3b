// Where the threads of a group of ranks meet.
#ifndef CREMA_DEVICE_MEETING_H_
#define CREMA_DEVICE_MEETING_H_

#include <array>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

namespace crema {

class Meeting {
 public:
  explicit Meeting(int ranks) : given_{std::vector<uint64_t>(ranks), std::vector<uint64_t>(ranks)} {}

  int ranks() const { return static_cast<int>(given_[0].size()); }
  // Waits until all ranks have come, and returns what each gave, by rank; valid until this rank comes again. Throws
  // Aborted after Abort, unless all had come by then.
  const std::vector<uint64_t>& Exchange(int rank, uint64_t value);
  // Element by element the sum over all ranks, in their order, in each rank's `data`, which the calling thread can read
  // and write.
  void SumInPlace(int rank, float* data, int64_t count);
  // The same of one number.
  double Sum(int rank, double value);
  void Abort();

 private:
  std::mutex mutex_;
  std::condition_variable all_came_;
  // Two in turn: who comes to the next meeting may do so before the others have read what was given at this one.
  std::array<std::vector<uint64_t>, 2> given_;
  uint64_t meetings_ = 0;  // that all came to
  int came_ = 0;           // to the next
  bool aborted_ = false;
};

}  // namespace crema

#endif  // CREMA_DEVICE_MEETING_H_
