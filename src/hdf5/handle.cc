#include "hdf5/handle.h"

#include <string_view>

namespace crema::hdf5 {

namespace {

std::mutex& Mutex() {
  static auto& mutex = *new std::mutex;
  return mutex;
}

herr_t TakeDescription(unsigned, const H5E_error2_t* error, void* text) {
  if (error->desc) *static_cast<std::string*>(text) = error->desc;
  return 1;  // no further
}

}  // namespace

Calls::Calls() : lock_(Mutex()) {
  // Every handle is closed here. What HDF5 would do when the process ends, it does to files, too, that it could not
  // write, and crashes.
  static const herr_t no_exit_handler = H5dont_atexit();
  static_cast<void>(no_exit_handler);
  H5Eget_auto2(H5E_DEFAULT, &print_, &print_data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

Calls::~Calls() { H5Eset_auto2(H5E_DEFAULT, print_, print_data_); }

std::string LastError() {
  std::string text;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, TakeDescription, &text);
  // "file write failed: time = ..., errno = 28, error message = 'No space left on device', ..."
  constexpr std::string_view kSystem = "error message = '";
  if (const size_t at = text.find(kSystem); at != std::string::npos) {
    const size_t begin = at + kSystem.size();
    text = text.substr(0, text.find(':')) + ": " + text.substr(begin, text.find('\'', begin) - begin);
  }
  return text.empty() ? "HDF5 gives no reason" : text;
}

}  // namespace crema::hdf5
