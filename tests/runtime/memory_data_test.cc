// Nets whose data their program writes: MemoryData and Input layers.
#include <gtest/gtest.h>

#include <vector>

#include "crema/error.h"
#include "crema/files.h"
#include "crema/net.h"
#include "device/gpu.h"
#include "errors.h"
#include "runtime/refuse_inputs.h"

namespace crema {
namespace {

constexpr char kMemoryNet[] = R"(
layer { name: "in" type: "MemoryData" top: "data" top: "label"
        memory_data_param { batch_size: 2 channels: 3 height: 2 width: 2 } }
layer { name: "twice" type: "Eltwise" bottom: "data" bottom: "data" top: "twice" }
layer { name: "label_twice" type: "Eltwise" bottom: "label" bottom: "label" top: "label_twice" })";

void RunPasses(Net& net) {
  const std::vector<NetInput> inputs = net.inputs();
  ASSERT_EQ(inputs.size(), 2u);
  EXPECT_EQ(inputs[0].name, "data");
  EXPECT_EQ(inputs[0].value.shape(), (Shape{2, 3, 2, 2}));
  EXPECT_EQ(inputs[1].name, "label");
  EXPECT_EQ(inputs[1].value.shape(), Shape{2});
  for (int pass = 0; pass < 4; ++pass) {
    for (int64_t i = 0; i < 24; ++i) inputs[0].value.f32()[i] = static_cast<float>(i + pass);
    for (int64_t i = 0; i < 2; ++i) inputs[1].value.f32()[i] = static_cast<float>(10 * i + pass);
    net.Forward();
    for (int64_t i = 0; i < 24; ++i) EXPECT_EQ(net.blob("twice").value(i), static_cast<float>(2 * (i + pass)));
    for (int64_t i = 0; i < 2; ++i) {
      EXPECT_EQ(net.blob("label_twice").value(i), static_cast<float>(2 * (10 * i + pass)));
    }
  }
}

TEST(MemoryData, IsWrittenByTheProgram) {
  Net net(ParseNet(kMemoryNet, "net.prototxt"), {.phase = TEST, .backward = false});
  RunPasses(net);
}

TEST(MemoryData, IsUploadedToGpus) {
  NetOptions options{.phase = TEST, .backward = false};
  try {
    options.context.device = &OpenGpu(0);
  } catch (const EnvironmentError& error) {
    GTEST_SKIP() << error.what();
  }
  Net net(ParseNet(kMemoryNet, "net.prototxt"), options);
  RunPasses(net);
}

TEST(RefuseInputs, NamesTheLayerAndWhatToDo) {
  const auto refused = [](const std::string& layer) -> std::string {
    const Net net(ParseNet("name: 'n'\n" + layer, "net.prototxt"), {.phase = TEST, .backward = false});
    return ThrownBy<UserError>([&] { RefuseInputs(net, "the train net"); });
  };
  const std::string memory = refused(kMemoryNet);
  EXPECT_TRUE(
      memory.starts_with("net.prototxt:3:20: error: the train net gets \"data\" from a MemoryData layer, which a "
                         "program that embeds crema fills, and nothing does here"))
      << memory;
  EXPECT_TRUE(memory.ends_with("or read from a Data, ImageData or HDF5Data layer")) << memory;
  const std::string input = refused("layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 1 } } }");
  EXPECT_TRUE(input.starts_with("net.prototxt:2:20: error: the train net gets \"x\" from an Input layer")) << input;
  EXPECT_EQ(refused("layer { name: 'in' type: 'DummyData' top: 'x' dummy_data_param { shape { dim: 1 } } }"), "");
}

}  // namespace
}  // namespace crema
