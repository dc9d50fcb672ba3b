// Compiled where the CUDA device is left out, in place of src/device/cuda/.
#include "device/device.h"

namespace crema {

std::vector<DeviceFacts> DescribeGpus(std::string* why) {
  *why =
      "this crema was built without CUDA; to use a GPU, install the CUDA toolkit (12 or later, nvcc on PATH) and "
      "configure "
      "with -DCREMA_CUDA=ON";
  return {};
}

}  // namespace crema
