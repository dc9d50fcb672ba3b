#include "tools/names_of_caffe.h"

#include <algorithm>
#include <iterator>

namespace crema::tools {

namespace {

struct Name {
  const char* name;
  const char* instead;
};

constexpr char kNoUpgrade[] = "files of every age of Caffe are read as they are, so that nothing needs upgrading";
constexpr char kExtract[] = "`crema extract` writes features, to .h5, .csv or a database";
constexpr char kPredict[] = "`crema predict` tells the classes of images";
constexpr char kDetect[] = "`crema detect` finds objects in images, with nets of SSD, Faster R-CNN, R-FCN and YOLO";
constexpr char kMasks[] = "`crema extract --output=masks/` writes an image of the classes that a net tells";
constexpr char kTest[] = "`crema test` scores a net, detectors by their mean average precision";
constexpr char kTrain[] = "`crema train` trains, from weights with --weights";
constexpr char kCurves[] = "`crema curves` draws logs of Caffe and crema, or writes them as .csv";
constexpr char kOwnProgram[] = "it is a program of its own beside crema, without `crema` before it";

constexpr Name kNames[] = {
    {"upgrade_net_proto_text", kNoUpgrade},
    {"upgrade_net_proto_binary", kNoUpgrade},
    {"upgrade_solver_proto_text", kNoUpgrade},
    {"extract_features", kExtract},
    {"classify", kPredict},
    {"classification", kPredict},
    {"cpp_classification", kPredict},
    {"ssd_detect", kDetect},
    {"demo", kDetect},
    {"detect",
     "windows of R-CNN are not there; `crema detect` runs nets of SSD, Faster R-CNN, R-FCN and YOLO over whole images"},
    {"infer", kMasks},
    {"test_segmentation_camvid", kMasks},
    {"compute_bn_statistics", "`crema bn_statistics` writes weights for a net with bn_mode: INFERENCE"},
    {"draw_net", "`crema compile --model=FILE --dump=dot | dot -Tpng > net.png` draws a net"},
    {"parse_log", kCurves},
    {"plot_training_log", kCurves},
    {"extract_seconds", kCurves},
    {"train_net", kTrain},
    {"finetune_net", kTrain},
    {"solve", "`crema train` trains; weight_filler { type: \"bilinear\" } makes the weights that resize images"},
    {"test_net", kTest},
    {"test_detection", kTest},
    {"score_ssd_pascal", kTest},
    {"net_speed_benchmark", "`crema time` measures how long each layer takes"},
    {"resize_and_crop_images", "`convert_imageset --shorter_side=256` resizes, and crop_size of transform_param cuts"},
    {"create_annoset", "`convert_annoset` makes a database of images and boxes"},
    {"create_list", "`convert_annoset` takes the lists train.txt and val.txt of lines \"image annotation\""},
    {"create_label_map", "`convert_annoset` takes label maps of SSD (--label_map_file) and lists of names"},
    {"get_image_size", "no list of sizes is needed: databases of `convert_annoset` hold those of the images"},
    {"convert_imageset", kOwnProgram},
    {"compute_image_mean", kOwnProgram},
    {"convert_mnist_data", kOwnProgram},
    {"convert_cifar_data", kOwnProgram},
    {"convert_mnist_siamese_data", kOwnProgram},
    {"convert_annoset", kOwnProgram},
    {"convert_csv", kOwnProgram},
    {"convert_kitti", kOwnProgram},
    {"convert_text", kOwnProgram},
    {"compute_anchors", kOwnProgram},
    {"db_tool", kOwnProgram},
};

}  // namespace

std::string InsteadOf(const std::string& name) {
  std::string stem = name;
  for (const char* ending : {".example", ".py", ".sh", ".bin", ".cpp"}) {
    if (stem.ends_with(ending)) stem.resize(stem.size() - std::string(ending).size());
  }
  const auto* const found =
      std::find_if(std::begin(kNames), std::end(kNames), [&](const Name& known) { return stem == known.name; });
  return found == std::end(kNames) ? "" : found->instead;
}

}  // namespace crema::tools
