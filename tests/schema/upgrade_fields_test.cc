// Types and fields of forks that have another name here, in today's syntax and in that of V1.
#include <gtest/gtest.h>

#include "crema/layer.h"
#include "schema/net_text.h"
#include "schema/text_file.h"
#include "schema/upgrade.h"

namespace crema {
namespace {

using testing_schema::Errors;
using testing_schema::Net;

void ExpectRead(const std::string& text, const std::string& expected) {
  EXPECT_EQ(TextOf(ParseNet(text, "n").net), TextOf(Net(expected)));
}

TEST(UpgradeFields, HolesAreDilations) {
  ExpectRead("layer { type: 'Convolution' convolution_param { hole: 12 } }",
             "layer { type: 'Convolution' convolution_param { dilation: 12 } }");
  ExpectRead("layers { type: CONVOLUTION convolution_param { hole_h: 2 hole_w: 3 } }",
             "layer { type: 'Convolution' convolution_param { dilation: [2, 3] } }");
  ExpectRead("layer { type: 'Convolution' convolution_param { hole_w: 3 } }",
             "layer { type: 'Convolution' convolution_param { dilation: [1, 3] } }");
  EXPECT_EQ(Errors("layer { name: 'c' convolution_param {\n  hole: 2 dilation: 2 } }"),
            "n:2:3: error: layer \"c\": hole, hole_h with hole_w, and dilation all say the dilation; keep one of them");
  EXPECT_NE(Errors("layer { convolution_param { hole: 2 hole_h: 2 } }"), "");
}

TEST(UpgradeFields, CeilModeIsARoundMode) {
  ExpectRead("layer { type: 'Pooling' pooling_param { ceil_mode: false } }",
             "layer { type: 'Pooling' pooling_param { round_mode: FLOOR } }");
  ExpectRead("layer { type: 'Pooling' pooling_param { ceil_mode: true round_mode: CEIL } }",
             "layer { type: 'Pooling' pooling_param { round_mode: CEIL } }");
  EXPECT_EQ(Errors("layer { name: 'p' pooling_param { round_mode: CEIL ceil_mode: false } }"),
            "n:1:52: error: layer \"p\": ceil_mode contradicts round_mode, which says the same; keep one of them");
}

TEST(UpgradeFields, IntelsFillerIsThatOfTheScale) {
  ExpectRead(
      "layer { type: 'BatchNorm' batch_norm_param { filler { value: 1 } bias_filler { value: 0 } engine: MKLDNN } }",
      "layer { type: 'BatchNorm' batch_norm_param { scale_filler { value: 1 } bias_filler { value: 0 }"
      "  engine: MKLDNN } }");
  EXPECT_NE(Errors("layer { batch_norm_param { filler { } scale_filler { } } }").find("keep one of them"),
            std::string::npos);
}

TEST(UpgradeFields, EltwiseOfOneBottomIsItsFactor) {
  ExpectRead("layer { type: 'Eltwise' bottom: 'x' eltwise_param { operation: SUM coeff: 0.625 } }",
             "layer { type: 'Power' bottom: 'x' power_param { scale: 0.625 } }");
  ExpectRead("layers { type: ELTWISE bottom: 'x' eltwise_param { coeff: -2 } }",
             "layer { type: 'Power' bottom: 'x' power_param { scale: -2 } }");
  for (const char* kept : {"layer { type: 'Eltwise' bottom: 'x' eltwise_param { operation: SUM } }",
                           "layer { type: 'Eltwise' bottom: 'x' eltwise_param { operation: MAX coeff: 2 } }",
                           "layer { type: 'Eltwise' bottom: 'x' bottom: 'y' eltwise_param { coeff: [2, 3] } }"}) {
    ExpectRead(kept, kept);
  }
}

TEST(UpgradeFields, PoolingOf3dCaffe) {
  ExpectRead("layer { type: 'PoolingND' pooling_nd_param { pool: MAX kernel_size: 2 stride: 2 } }",
             "layer { type: 'Pooling' pooling_param { pool: MAX kernel_size: 2 stride: 2 } }");
  EXPECT_EQ(Errors("layer { name: 'p' type: 'PoolingND' pooling_param { } }"),
            "n:1:19: error: layer \"p\": PoolingND reads pooling_nd_param alone; write its settings there");
}

TEST(UpgradeFields, LayersOfTheFirstDeepLab) {
  ExpectRead(
      "layers { name: 'd' type: IMAGE_SEG_DATA top: 'data' image_data_param { label_type: PIXEL } }"
      "layers { name: 'fc6' type: CONVOLUTION strict_dim: false }"
      "layers { name: 'i' type: INTERP interp_param { zoom_factor: 8 } }"
      "layers { name: 'l' type: SOFTMAX_LOSS softmaxloss_param { ignore_label: 255 } }"
      "layers { name: 'a' type: SEG_ACCURACY seg_accuracy_param { ignore_label: 255 } }",
      "layer { name: 'd' type: 'ImageSegData' top: 'data' image_data_param { label_type: PIXEL } }"
      "layer { name: 'fc6' type: 'Convolution' strict_dim: false }"
      "layer { name: 'i' type: 'Interp' interp_param { zoom_factor: 8 } }"
      "layer { name: 'l' type: 'SoftmaxWithLoss' loss_param { ignore_label: 255 } }"
      "layer { name: 'a' type: 'SegAccuracy' seg_accuracy_param { ignore_label: 255 } }");
  EXPECT_EQ(
      Errors("layers { name: 'l' type: SOFTMAX_LOSS softmaxloss_param {\n weight_source: 'w' } }"),
      "n:1:1: warning: uses the old V1 syntax (\"layers\"); upgraded on reading\n"
      "n:2:2: error: layer \"l\": weight_source is not read; write its numbers, one for each class, as class_weight "
      "of loss_param instead");
  EXPECT_NE(Errors("layers { type: SOFTMAX_LOSS softmaxloss_param { ignore_label: 0 ignore_label: 255 } }"), "");
}

TEST(UpgradeFields, LayersOfDeconvNet) {
  ExpectRead(
      "layers { name: 'b' type: BN bn_param { scale_filler { value: 1 } shift_filler { value: 0.001 } } }"
      "layers { name: 'a' type: ELTWISE_ACCURACY eltwise_accuracy_param { ignore_label: 255 } }",
      "layer { name: 'b' type: 'BN' bn_param { scale_filler { value: 1 } shift_filler { value: 0.001 } } }"
      "layer { name: 'a' type: 'Accuracy' accuracy_param { ignore_label: 255 } }");
}

// The types of C3D become others before a layer is made.
TEST(UpgradeFields, NamesInCapitalsAreThoseOfTypesThereAre) {
  const auto* types = V1LayerParameter::LayerType_descriptor();
  int found = 0;
  std::string missing;
  for (int i = 0; i < types->value_count(); ++i) {
    const auto type = static_cast<V1LayerParameter::LayerType>(types->value(i)->number());
    if (type == V1LayerParameter::NONE || TypeName(type).ends_with("3D")) continue;
    if (FindLayerType(TypeName(type))) {
      ++found;
    } else {
      missing += TypeName(type) + " ";
    }
  }
  EXPECT_GT(found, 100);
  EXPECT_EQ(missing, "");
}

}  // namespace
}  // namespace crema
