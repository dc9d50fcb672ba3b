// Runs one layer that reads data.
#ifndef CREMA_TESTS_DATA_SOURCE_DRIVER_H_
#define CREMA_TESTS_DATA_SOURCE_DRIVER_H_

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "crema/layer.h"
#include "crema/net.pb.h"

namespace crema::testing {

inline LayerParameter ParseSource(const std::string& type, const std::string& text) {
  LayerParameter param;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString("name: \"in\" type: \"" + type + "\" " + text, &param));
  return param;
}

// One layer that reads data, with its tops, driven as the compiler and the runtime do.
class SourceDriver {
 public:
  SourceDriver(const std::string& type, const std::string& text, Phase phase = TEST,
               std::vector<std::pair<std::string, Shape>> overrides = {})
      : param_(ParseSource(type, text)),
        setup_(param_, phase, std::vector<TensorSpec>(param_.bottom_size()),
               [](std::string_view field) {
                 return Location{"net.prototxt:" + std::string(field), 0, 0};
               }),
        layer_(FindLayerType(type)->create()) {
    setup_.set_shape_overrides(std::move(overrides));
    layer_->Setup(setup_);
    for (const TensorSpec& spec : setup_.top_specs()) {
      values_.emplace_back(spec.shape.count(), -1.0f);
      tops_.emplace_back(values_.back().data(), spec);
    }
  }

  void Forward(bool replay = false, uint64_t seed = 1) {
    const Context context{nullptr, seed};
    LayerRun run;
    run.context = &context;
    run.tops = tops_;
    run.replay = replay;
    layer_->Forward(run);
  }

  Layer& layer() { return *layer_; }
  const LayerSetup& setup() const { return setup_; }
  std::vector<float>& value(int top) { return values_[top]; }

 private:
  LayerParameter param_;
  LayerSetup setup_;
  std::unique_ptr<Layer> layer_;
  std::vector<std::vector<float>> values_;
  std::vector<Tensor> tops_;
};

}  // namespace crema::testing

#endif  // CREMA_TESTS_DATA_SOURCE_DRIVER_H_
