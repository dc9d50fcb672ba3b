// What every call of the HDF5 library takes: its lock, and handles that close themselves.
#ifndef CREMA_HDF5_HANDLE_H_
#define CREMA_HDF5_HANDLE_H_

#include <hdf5.h>

#include <mutex>
#include <string>
#include <utility>

namespace crema::hdf5 {

// The library is not made for several threads, and prints what fails: held around every run of calls.
class Calls {
 public:
  Calls();
  ~Calls();
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;

 private:
  std::lock_guard<std::mutex> lock_;
  H5E_auto2_t print_ = nullptr;
  void* print_data_ = nullptr;
};

// Closed by `Close`, with the lock held.
template <herr_t (*Close)(hid_t)>
class Handle {
 public:
  explicit Handle(hid_t id) : id_(id) {}
  Handle(Handle&& other) noexcept : id_(other.id_) { other.id_ = -1; }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    if (id_ >= 0) Close(id_);
  }

  // False where what was kept for it could not be written.
  bool Closes() { return Close(std::exchange(id_, -1)) >= 0; }

  hid_t id() const { return id_; }
  bool valid() const { return id_ >= 0; }

 private:
  hid_t id_;
};

// What the call that failed last said, from its innermost function: "truncated file: eof = 96, ...".
std::string LastError();

}  // namespace crema::hdf5

#endif  // CREMA_HDF5_HANDLE_H_
