// Layers in Python that are built in get their types and parameters.
#include <gtest/gtest.h>

#include "crema/files.h"
#include "schema/net_text.h"
#include "schema/text_file.h"

namespace crema {
namespace {

using testing_schema::Errors, testing_schema::Net;

TEST(UpgradePython, LayersThatAreBuiltInGetTheirTypes) {
  const NetFile file = ParseNet(
      "layer { name: \"p\" type: 'Python' bottom: \"a\" top: \"b\"\n"
      "  python_param { module: 'rpn.proposal_layer' layer: 'ProposalLayer'\n"
      "    param_str: \"'feat_stride': 8 \\n'scales': !!python/tuple [4, 8.5]\" } }\n"
      "layer { name: \"a\" type: \"Python\"\n"
      "  python_param { module: \"rpn.anchor_target_layer\" param_str: \"{feat_stride: 16, 'ratios': [1]}\" } }\n"
      "layer { name: \"t\" type: \"Python\"\n"
      "  python_param { module: \"rpn.proposal_target_layer\" param_str: \"'num_classes': 21\" } }\n"
      "layer { name: \"o\" type: \"Python\" python_param { module: \"my_layers\" param_str: \"x\" } }\n",
      "n");
  EXPECT_EQ(TextOf(file.net), TextOf(Net("layer { name: \"p\" type: \"Proposal\" bottom: \"a\" top: \"b\""
                                         "  proposal_param { feat_stride: 8 scale: 4 scale: 8.5 } }"
                                         "layer { name: \"a\" type: \"AnchorTarget\""
                                         "  anchor_target_param { feat_stride: 16 ratio: 1 } }"
                                         "layer { name: \"t\" type: \"ProposalTarget\""
                                         "  proposal_target_param { num_classes: 21 } }"
                                         "layer { name: \"o\" type: \"Python\""
                                         "  python_param { module: \"my_layers\" param_str: \"x\" } }")));
}

TEST(UpgradePython, RegionsToMineAreAllThatThereAre) {
  const NetFile file = ParseNet(
      "layer { name: \"t\" type: \"Python\"\n"
      "  python_param { module: \"rpn.proposal_target_layer\" param_str: \"'num_classes': 2\" } }\n"
      "layer { name: \"o\" type: \"BoxAnnotatorOHEM\" }\n",
      "n");
  EXPECT_EQ(TextOf(file.net), TextOf(Net("layer { name: \"t\" type: \"ProposalTarget\""
                                         "  proposal_target_param { num_classes: 2 batch_size: 0 } }"
                                         "layer { name: \"o\" type: \"BoxAnnotatorOHEM\" }")));
}

TEST(UpgradePython, ParametersAreChecked) {
  const auto error = [](const std::string& text) {
    return Errors(
        "layer { name: \"p\" type: \"Python\"\n  python_param { module: \"rpn.proposal_layer\"\n    param_str: \"" +
        text + "\" } }\n");
  };
  EXPECT_NE(error("'feat_strid': 16")
                .find("n:3:5: error: layer \"p\": param_str: 'feat_strid' is not known for "
                      "rpn.proposal_layer; did you mean \"feat_stride\"?"),
            std::string::npos)
      << error("'feat_strid': 16");
  EXPECT_NE(error("'feat_stride': big").find("'feat_stride' must be one number"), std::string::npos);
  EXPECT_NE(error("'feat_stride': 1.5").find("'feat_stride' must be a whole number, 0 or more"), std::string::npos);
  EXPECT_NE(error("'feat_stride': [1, 2]").find("'feat_stride' must be one number"), std::string::npos);
  EXPECT_NE(error("'scales': [1, x]").find("'scales' must be a list of numbers"), std::string::npos);
  EXPECT_NE(error("feat_stride").find("'feat_stride' must be one number"), std::string::npos);
}

TEST(UpgradePython, LayersOfDetectNetGetTheirTypes) {
  const NetFile file = ParseNet(
      "layer { name: \"c\" type: 'Python' bottom: \"a\" bottom: \"b\" top: \"x\" top: \"y\"\n"
      "  python_param { module: 'caffe.layers.detectnet.clustering' layer: 'ClusterDetections'\n"
      "    param_str : '1248, 352, 16, 0.6, 3, 0.02, 22, 2' } include: { phase: TEST } }\n"
      "layer { name: \"g\" type: 'Python'\n"
      "  python_param { module: 'caffe.layers.detectnet.clustering' layer: 'ClusterGroundtruth'\n"
      "    param_str : '1248,352,16' } }\n"
      "layer { name: \"s\" type: 'Python'\n"
      "  python_param { module: 'caffe.layers.detectnet.mean_ap' layer: 'ScoreDetections' } }\n"
      "layer { name: \"m\" type: 'Python'\n"
      "  python_param { module: 'caffe.layers.detectnet.mean_ap' layer: 'mAP' param_str : '1248, 352, 16' } }\n",
      "n");
  EXPECT_EQ(
      TextOf(file.net),
      TextOf(Net("layer { name: \"c\" type: \"ClusterDetections\" bottom: \"a\" bottom: \"b\" top: \"x\" top: \"y\""
                 "  include { phase: TEST }"
                 "  detectnet_cluster_param { image_size_x: 1248 image_size_y: 352 stride: 16"
                 "    coverage_threshold: 0.6 group_threshold: 3 group_eps: 0.02 min_height: 22 num_classes: 2 } }"
                 "layer { name: \"g\" type: \"ClusterGroundtruth\""
                 "  detectnet_cluster_param { image_size_x: 1248 image_size_y: 352 stride: 16 } }"
                 "layer { name: \"s\" type: \"ScoreDetections\" }"
                 "layer { name: \"m\" type: \"PrecisionRecall\" }")));
}

TEST(UpgradePython, ParametersOfDetectNetsLayersAreChecked) {
  const auto error = [](const std::string& layer, const std::string& text) {
    return Errors(
        "layer { name: \"p\" type: \"Python\"\n  python_param { module: \"caffe.layers.detectnet.clustering\"\n"
        "    layer: \"" +
        layer + "\"\n    param_str: \"" + text + "\" } }\n");
  };
  const auto expect = [](const std::string& errors, const std::string& part) {
    EXPECT_NE(errors.find(part), std::string::npos) << errors;
  };
  expect(error("ClusterGroundtruth", "16,16"),
         "n:4:5: error: layer \"p\": param_str: it has 2 number(s), but ClusterGroundtruth takes 3 or 4: img_size_x, "
         "img_size_y, stride, num_classes; it is read as type: \"ClusterGroundtruth\", whose parameters are in "
         "detectnet_cluster_param");
  expect(error("ClusterGroundtruth", "16,16,4,1,1"), "it has 5 number(s)");
  expect(error("ClusterDetections", "16, 16, 4, high, 1, 0.1, 5"), "'gridbox_cvg_threshold' must be one number");
  expect(error("ClusterDetections", "16, 16, 4.5, 0.6, 1, 0.1, 5"), "'stride' must be a whole number, 0 or more");
  expect(error("Cluster", "16,16,4"),
         "n:3:5: error: layer \"p\": caffe.layers.detectnet.clustering has no layer \"Cluster\"; it has "
         "ClusterDetections and ClusterGroundtruth");
}

}  // namespace
}  // namespace crema
