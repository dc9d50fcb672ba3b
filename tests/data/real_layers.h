// Data layers of the corpus' nets, which are Caffe's own.
#ifndef CREMA_TESTS_DATA_REAL_LAYERS_H_
#define CREMA_TESTS_DATA_REAL_LAYERS_H_

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "crema/files.h"
#include "crema/layer.h"
#include "source_folder.h"

namespace crema::testing {

// Sets up each layer of this type; `batch` says the batch size of one. All of them make images of 3 x 227 x 227.
// Returns how many there were, -1 without the corpus.
template <typename Batch>
int SetUpRealLayers(const std::string& type, Batch batch) {
  const std::filesystem::path nets = std::filesystem::path(CorpusFolder()) / "nets";
  if (!std::filesystem::exists(nets)) return -1;
  int layers = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(nets)) {
    if (entry.path().extension() != ".prototxt") continue;
    const NetFile file = ReadNetFile(entry.path());
    for (const LayerParameter& layer : file.net.layer()) {
      if (layer.type() != type) continue;
      LayerSetup setup(layer, TRAIN, {}, [](std::string_view) { return Location{}; });
      FindLayerType(type)->create()->Setup(setup);
      EXPECT_EQ(setup.top_specs()[0].shape, (Shape{batch(layer), 3, 227, 227})) << entry.path();
      ++layers;
    }
  }
  return layers;
}

}  // namespace crema::testing

#endif  // CREMA_TESTS_DATA_REAL_LAYERS_H_
