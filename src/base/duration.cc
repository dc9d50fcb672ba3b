#include "base/duration.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace crema {

std::string FormatDuration(double seconds) {
  if (!(seconds < 100.0 * 86400)) return "long";
  const long s = std::lround(std::max(0.0, seconds));
  char text[64];
  if (s < 60) {
    std::snprintf(text, sizeof text, "%lds", s);
  } else if (s < 3600) {
    std::snprintf(text, sizeof text, "%ldm%02lds", s / 60, s % 60);
  } else if (s < 86400) {
    std::snprintf(text, sizeof text, "%ldh%02ldm", s / 3600, s / 60 % 60);
  } else {
    std::snprintf(text, sizeof text, "%ldd%02ldh", s / 86400, s / 3600 % 24);
  }
  return text;
}

}  // namespace crema
