#include "tools/colour_net.h"

#include <fstream>

#include "crema/files.h"
#include "crema/net.h"
#include "image/codec.h"

namespace crema::testing_tools {

namespace {

namespace fs = std::filesystem;

void WriteBytes(const fs::path& path, const std::vector<uint8_t>& bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace

Image Coloured(int height, int width, int blue, int green, int red) {
  Image image;
  image.Resize(height, width, 3);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      uint8_t* pixel = image.row(y) + x * 3;
      const bool black = x == 0 && y == 0;
      pixel[0] = static_cast<uint8_t>(black ? 0 : blue);
      pixel[1] = static_cast<uint8_t>(black ? 0 : green);
      pixel[2] = static_cast<uint8_t>(black ? 0 : red);
    }
  }
  return image;
}

void WritePng(const ScratchFolder& folder, const std::string& name, const Image& image) {
  WriteBytes(folder / name, EncodePng(image));
}

void WriteJpeg(const ScratchFolder& folder, const std::string& name, const Image& image) {
  WriteBytes(folder / name, EncodeJpeg(image));
}

void WriteColourNet(const ScratchFolder& folder) {
  const std::string score =
      "layer { name: \"score\" type: \"InnerProduct\" bottom: \"data\" top: \"score\"\n"
      "  inner_product_param { num_output: 3 } }\n";
  folder.Write("deploy.prototxt",
               "name: \"colours\"\n"
               "layer { name: \"data\" type: \"Input\" top: \"data\"\n"
               "  input_param { shape { dim: 2 dim: 3 dim: 4 dim: 4 } }\n"
               "  transform_param { scale: 0.00392156863 } }\n" +
                   score + "layer { name: \"prob\" type: \"Softmax\" bottom: \"score\" top: \"prob\" }\n");
  folder.Write(
      "train_val.prototxt",
      "layer { name: \"train\" type: \"Data\" top: \"data\" top: \"label\" include { phase: TRAIN }\n"
      "  data_param { source: \"absent\" backend: LMDB batch_size: 7 } }\n"
      "layer { name: \"test\" type: \"Data\" top: \"data\" top: \"label\" include { phase: TEST }\n"
      "  transform_param { scale: 0.00392156863 }\n"
      "  data_param { source: \"db\" backend: LMDB batch_size: 7 } }\n" +
          score +
          "layer { name: \"accuracy\" type: \"Accuracy\" bottom: \"score\" bottom: \"label\" top: \"accuracy\"\n"
          "  include { phase: TEST } }\n"
          "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"score\" bottom: \"label\" top: \"loss\" }\n");
  folder.Write("labels.txt", "blue\ngreen\nred\n");
  Net net(ReadNetFile((folder / "deploy.prototxt").string()), {.phase = TEST, .backward = false});
  std::vector<float> weights(3 * 48, 0.0f), bias(3, 0.0f);
  for (int c = 0; c < 3; ++c) {
    for (int i = 0; i < 16; ++i) weights[c * 48 + c * 16 + i] = 4.0f / 16;
  }
  net.parameters()[0].SetData(weights.data());
  net.parameters()[1].SetData(bias.data());
  std::ofstream(folder / "net.caffemodel", std::ios::binary) << net.ToProto().SerializeAsString();
}

}  // namespace crema::testing_tools
