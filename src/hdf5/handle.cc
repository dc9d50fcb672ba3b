#include "hdf5/handle.h"

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
  H5Eget_auto2(H5E_DEFAULT, &print_, &print_data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

Calls::~Calls() { H5Eset_auto2(H5E_DEFAULT, print_, print_data_); }

std::string LastError() {
  std::string text;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, TakeDescription, &text);
  return text.empty() ? "HDF5 gives no reason" : text;
}

}  // namespace crema::hdf5
