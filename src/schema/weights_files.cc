#include "schema/weights_files.h"

#include <algorithm>
#include <map>

namespace crema {

void WeightsFiles::Read(const std::string& path) {
  std::vector<std::string>& names = files_.emplace_back(path, std::vector<std::string>()).second;
  std::map<std::string, int> numbers;  // of layers of one name
  for (LayerWeights& layer : ReadWeights(path)) {
    names.push_back(layer.name);
    int number = numbers[layer.name]++;
    const auto earlier = std::find_if(layers_.begin(), layers_.end(), [&](const LayerWeights& other) {
      return other.name == layer.name && number-- == 0;
    });
    if (earlier == layers_.end()) {
      layers_.push_back(std::move(layer));
    } else {
      *earlier = std::move(layer);
    }
  }
}

std::string WeightsFiles::FindUnused(const std::vector<std::string>& used_layers) const {
  const auto unused = std::find_if(files_.begin(), files_.end(), [&](const auto& file) {
    return std::find_first_of(file.second.begin(), file.second.end(), used_layers.begin(), used_layers.end()) ==
           file.second.end();
  });
  return unused == files_.end() ? "" : unused->first;
}

std::string DescribeUnused(const std::string& net) {
  return "no layer of " + net +
         " has the name of one in it, so that nothing would be copied; give weights of this net, or leave the file out";
}

}  // namespace crema
