// Types of forks for volumes become those for images, and the places still lead back to the file.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "crema/files.h"
#include "schema/text_file.h"

namespace crema {
namespace {

void ExpectVolumesRead(const std::string& text, const std::string& expected) {
  NetParameter net;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(expected, &net)) << expected;
  EXPECT_EQ(TextOf(ParseNet(text, "n").net), TextOf(net));
}

void ExpectVolumeError(const std::string& text, const std::string& expected) {
  try {
    ParseNet(text, "n");
    FAIL() << "no error: " << text;
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
  }
}

TEST(UpgradeVolumes, LayersOfC3dBecomeThoseOfImages) {
  ExpectVolumesRead(
      "layer { name: 'c' type: 'Convolution3D' convolution3d_param { num_output: 4 kernel_size: 7 kernel_depth: 3"
      "  pad: 3 temporal_pad: 1 stride: 2 temporal_stride: 1 bias_term: false filter_group: 2"
      "  weight_filler { type: 'msra' variance_norm: FAN_OUT } } }"
      "layer { name: 'd' type: 'Deconvolution3D' convolution3d_param { num_output: 4 kernel_size: 3 kernel_depth: 3"
      "  pad: 1 temporal_pad: 1 } }"
      "layer { name: 'p' type: 'Pooling3D' pooling3d_param { pool: AVE kernel_size: 2 kernel_depth: 1 stride: 2"
      "  temporal_stride: 1 pad: 1 } }"
      "layer { name: 'q' type: 'Pooling3D' pooling3d_param { kernel_size: 1 kernel_depth: 1 } }",
      "layer { name: 'c' type: 'Convolution' convolution_param { num_output: 4 kernel_size: [3, 7, 7] pad: [1, 3, 3]"
      "  stride: [1, 2, 2] bias_term: false weight_filler { type: 'msra' variance_norm: FAN_OUT } } }"
      "layer { name: 'd' type: 'Deconvolution' convolution_param { num_output: 4 kernel_size: 3 pad: 1 } }"
      "layer { name: 'p' type: 'Pooling' pooling_param { pool: AVE kernel_size: [1, 2, 2] stride: [1, 2, 2]"
      "  pad: [0, 1, 1] } }"
      "layer { name: 'q' type: 'Pooling' pooling_param { kernel_size: 1 } }");
}

TEST(UpgradeVolumes, LayersOfTheFirstC3dBecomeThoseOfImages) {
  ExpectVolumesRead(
      "layers { name: 'c' type: CONVOLUTION3D blobs_lr: 1 blobs_lr: 2"
      "  convolution_param { num_output: 4 kernel_size: 3 kernel_depth: 3 pad: 1 temporal_pad: 1 } }"
      "layers { name: 'p' type: POOLING3D pooling_param { pool: MAX kernel_size: 2 kernel_depth: 1 stride: 2"
      "  temporal_stride: 1 } }"
      "layers { name: 'd' type: DECONVOLUTION3D convolution_param { num_output: 4 kernel_size: 2 kernel_depth: 2"
      "  stride: 2 temporal_stride: 2 } }",
      "layer { name: 'c' type: 'Convolution' param { lr_mult: 1 } param { lr_mult: 2 }"
      "  convolution_param { num_output: 4 kernel_size: 3 pad: 1 } }"
      "layer { name: 'p' type: 'Pooling' pooling_param { pool: MAX kernel_size: [1, 2, 2] stride: [1, 2, 2] } }"
      "layer { name: 'd' type: 'Deconvolution' convolution_param { num_output: 4 kernel_size: 2 stride: 2 } }");
}

TEST(UpgradeVolumes, ShapesBecomeValuesPerAxis) {
  ExpectVolumesRead(
      "layer { name: 'c' type: 'NdConvolution' convolution_param { num_output: 4"
      "  kernel_shape { dim: 3 dim: 5 dim: 5 } stride_shape { dim: 1 dim: 1 dim: 1 } pad_shape { dim: 1 dim: 2 dim: 2 }"
      "  } }"
      "layer { name: 'p' type: 'NdPooling' pooling_param { kernel_shape { dim: 1 dim: 2 dim: 2 }"
      "  stride_shape { dim: 1 dim: 2 dim: 2 } } }"
      "layer { name: 'g' type: 'NdPooling' pooling_param { pool: AVE global_pooling: true kernel_shape { dim: 1 } } }",
      "layer { name: 'c' type: 'Convolution' convolution_param { num_output: 4 kernel_size: [3, 5, 5] stride: 1"
      "  pad: [1, 2, 2] } }"
      "layer { name: 'p' type: 'Pooling' pooling_param { kernel_size: [1, 2, 2] stride: [1, 2, 2] } }"
      "layer { name: 'g' type: 'Pooling' pooling_param { pool: AVE global_pooling: true } }");
}

TEST(UpgradeVolumes, PlacesLeadBackToTheFile) {
  const NetFile file = ParseNet(
      "layer { name: 'p' type: 'Pooling3D'\n  pooling3d_param {\n    kernel_size: 2\n    kernel_depth: 1\n stride: 2 } "
      "}\n"
      "layer { name: 'q' type: 'NdPooling'\n  pooling_param {\n    kernel_shape { dim: 9 }\n  pad_shape { dim: 1 } } "
      "}\n"
      "layer { name: 'c' type: 'Convolution3D'\n"
      "  convolution3d_param { num_output: 1 kernel_size: 3\n kernel_depth: 1 } }\n",
      "n");
  EXPECT_EQ(file.source->Layer(0, "pooling_param.kernel_size").ToString(), "n:3:5");
  EXPECT_EQ(file.source->Layer(0, "pooling_param.stride").ToString(), "n:5:2");
  EXPECT_EQ(file.source->Layer(1, "pooling_param.kernel_size").ToString(), "n:8:5");
  EXPECT_EQ(file.source->Layer(1, "pooling_param.pad").ToString(), "n:9:3");
  EXPECT_EQ(file.source->Layer(2, "convolution_param.num_output").ToString(), "n:11:25");
}

TEST(UpgradeVolumes, MistakesAreToldAtTheirFields) {
  ExpectVolumeError("layer { name: 'p' type: 'Pooling3D'\n pooling3d_param { kernel_size: 2 } }\n",
                    "n:2:2: error: layer \"p\": kernel_depth is not set");
  ExpectVolumeError("layer { name: 'p' type: 'Pooling3D'\n pooling3d_param { kernel_depth: 2 } }\n",
                    "n:2:2: error: layer \"p\": kernel_size is not set");
  ExpectVolumeError(
      "layer { name: 'p' type: 'Pooling3D'\n pooling3d_param { kernel_depth: 2\n kernel_size: [2, 2] } }\n",
      "n:3:2: error: layer \"p\": kernel_size is given 2 times, but Pooling3D takes it once");
  ExpectVolumeError("layer { name: 'p' type: 'Pooling3D'\n pooling_param { kernel_depth: 2 kernel_size: 2 } }\n",
                    "n:1:1: error: layer \"p\": Pooling3D reads pooling3d_param alone");
  ExpectVolumeError(
      "layer { name: 'c' type: 'Convolution3D' convolution3d_param { kernel_depth: 2 kernel_size: 2\n"
      " group: 2 } }\n",
      "n:2:2: error: layer \"c\": group has no effect in Convolution3D; remove it");
  ExpectVolumeError(
      "layer { name: 'c' type: 'Convolution3D' convolution3d_param { kernel_depth: 2 kernel_size: 2\n"
      " kernel_shape { dim: 2 } } }\n",
      "n:2:2: error: layer \"c\": kernel_shape, stride_shape and pad_shape are of NdConvolution");
  ExpectVolumeError("layer { name: 'p' type: 'NdPooling'\n pooling_param { stride_shape { dim: 2 } } }\n",
                    "n:2:2: error: layer \"p\": kernel_shape is not set");
  ExpectVolumeError(
      "layer { name: 'p' type: 'NdPooling' pooling_param { kernel_shape { dim: [1, 2, 2] }\n"
      " stride_shape { dim: 2 } } }\n",
      "n:2:2: error: layer \"p\": stride_shape has 1 values, but kernel_shape 3");
  ExpectVolumeError("layer { name: 'p' type: 'NdPooling' pooling_param {\n kernel_shape { dim: [1, -2] } } }\n",
                    "n:2:2: error: layer \"p\": kernel_shape has -2, which is no extent in pixels");
  ExpectVolumeError(
      "layer { name: 'p' type: 'NdPooling' pooling_param { kernel_shape { dim: 2 }\n kernel_size: 2 } }\n",
      "n:2:2: error: layer \"p\": NdPooling reads kernel_shape, stride_shape and pad_shape, not kernel_size");
  ExpectVolumeError(
      "layer { name: 'p' type: 'NdPooling' pooling_param { kernel_shape { dim: 2 }\n kernel_depth: 2 } }\n",
      "n:2:2: error: layer \"p\": kernel_depth and its like are of Convolution3D");
  ExpectVolumeError(
      "layer { name: 'p' type: 'Pooling' pooling_param { kernel_size: 2\n kernel_depth: 2 } }\n",
      "n:2:2: error: layer \"p\": kernel_depth and its like are of Convolution3D, Deconvolution3D and Pooling3D");
  ExpectVolumeError("layer { name: 'c' type: 'Convolution' convolution_param {\n kernel_shape { dim: 2 } } }\n",
                    "n:2:2: error: layer \"c\": kernel_shape and its like are of NdConvolution and NdPooling");
}

}  // namespace
}  // namespace crema
