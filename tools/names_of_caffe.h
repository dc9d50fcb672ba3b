// What programs and scripts of Caffe, its forks and its Python folder are called, and what does their work here.
#ifndef CREMA_TOOLS_NAMES_OF_CAFFE_H_
#define CREMA_TOOLS_NAMES_OF_CAFFE_H_

#include <string>

namespace crema::tools {

// "`crema extract` writes features": what to do instead of `crema extract_features`, with or without the ending of a
// script. Empty for other names.
std::string InsteadOf(const std::string& name);

}  // namespace crema::tools

#endif  // CREMA_TOOLS_NAMES_OF_CAFFE_H_
