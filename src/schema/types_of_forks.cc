#include "schema/types_of_forks.h"

#include <algorithm>
#include <utility>

#include "base/lower_case.h"

namespace crema {

namespace {

constexpr const char* kCrf =
    "leave it out: what it smooths are the scores, its first bottom, which the rest of the net can read";
constexpr const char* kDice = "Eltwise, Reduction and Power compute it: docs/segmentation.md#overlap has the layers";
constexpr const char* kEntropy =
    "write Log of the probabilities with shift: 1e-6, Eltwise with PROD of both, and Reduction with coeff: -1 / the "
    "batch size, which has the loss_weight";
constexpr const char* kConvolution = "it is type: \"Convolution\" here";
constexpr const char* kBatchNorm =
    "it is two layers here, of types \"BatchNorm\" and, for its weight and bias, \"Scale\"";
constexpr const char* kRistretto = "take the type without \"Ristretto\", which computes the same in floats";

constexpr TypeOfFork kTypes[] = {
    {"CPMData", "OpenPose", nullptr},
    // Segmentation and edges
    {"DenseCRF", "DeepLab", kCrf},
    {"BiasChannel", "DeepLab", nullptr},
    {"DominantChannel", "DeepLab", nullptr},
    {"DomainTransform", "DeepLab", nullptr},
    {"MatRead", "DeepLab", "convert the files to HDF5 and let a layer of type \"HDF5Data\" read them"},
    {"MatWrite", "DeepLab", "leave it out: `crema extract` writes what a net makes of each image"},
    {"Padding", "DeepLab", "write the border as pad of the convolution_param behind it"},
    {"Dice", "forks", kDice},
    {"DiceLoss", "forks", kDice},
    // Optical flow
    {"Correlation1D", "DispNet", nullptr},
    {"DataAugmentation", "FlowNet",
     "transform_param of layers that read images has crops, mirrors and colours; in a net that is used this layer "
     "subtracts a mean, for which docs/forks.md has another one"},
    {"Mean", "FlowNet",
     "a layer of type \"Bias\" adds a number to each channel: bias_param { filler { type: \"values\" values: [...] } "
     "}"},
    {"FlowAugmentation", "FlowNet", nullptr},
    {"GenerateAugmentationParameters", "FlowNet", nullptr},
    {"CustomData", "FlowNet", nullptr},
    {"ImgReader", "FlowNet", "make it an Input layer with the shape of the images, which a program fills"},
    {"FLOWriter", "FlowNet", "leave it out: a program reads the flow, its bottom"},
    {"LpqLoss", "FlowNet",
     "type: \"L1Loss\" with l1_loss_param { l2_per_location: true power: ... } has that of p = 2, with q as power"},
    // Sequences
    {"WarpCTC", "forks with warp-ctc", "type: \"CtcLoss\" with ctc_loss_param { blank_label: ... } (docs/text.md)"},
    {"WarpCTCLoss", "forks with warp-ctc", "type: \"CtcLoss\" with ctc_loss_param { blank_label: ... } (docs/text.md)"},
    {"SequenceAccuracy", "forks with warp-ctc",
     "type: \"LabelsequenceAccuracy\" compares sequences of labels (docs/text.md)"},
    // Detection
    {"ROIWarping", "MNC", nullptr},
    {"ROIWarpingTest", "MNC", nullptr},
    {"MaskPooling", "MNC", nullptr},
    {"MaskResize", "MNC", nullptr},
    {"DeformablePSROIPooling", "Deformable ConvNets", nullptr},
    {"MIL", "visual concepts",
     "the largest of all places is Pooling with global_pooling: true; a noisy or is Log with scale: -1 shift: 1, "
     "Reduction with axis: 2, Exp, and Power with scale: -1 shift: 1"},
    {"MILData", "visual concepts", nullptr},
    // Embeddings and adaptation of domains
    {"Entropy", "forks for domain adaptation", kEntropy},
    {"EntropyLoss", "forks for domain adaptation", kEntropy},
    {"JMMDLoss", "forks for domain adaptation", "type: \"MMDLoss\" compares the vectors of one layer"},
    {"OuterProduct", "forks for domain adaptation",
     "write Reshape of one bottom to N x A x 1 and of the other to N x 1 x B, and MatMul"},
    {"LargeMarginInnerProduct", "L-Softmax",
     "type: \"MarginInnerProduct\" is SphereFace's, whose weights have length 1: another loss, with which to train "
     "anew"},
    {"HashingLoss", "forks for hashing", nullptr},
    {"PairwiseLoss", "forks for hashing", nullptr},
    // Compression
    {"CConvolution", "Dynamic Network Surgery", nullptr},
    {"CInnerProduct", "Dynamic Network Surgery", nullptr},
    {"ConvolutionRistretto", "Ristretto", kRistretto},
    {"DeconvolutionRistretto", "Ristretto", kRistretto},
    {"FcRistretto", "Ristretto", "take type: \"InnerProduct\", which computes the same in floats"},
    {"LRNRistretto", "Ristretto", kRistretto},
    // What PyTorch calls them
    {"Linear", "PyTorch", "it is type: \"InnerProduct\" here"},
    {"Conv1d", "PyTorch", "it is type: \"Convolution\" here, with kernel_h: 1 of images of height 1"},
    {"Conv2d", "PyTorch", kConvolution},
    {"Conv3d", "PyTorch", kConvolution},
    {"ConvTranspose2d", "PyTorch", "it is type: \"Deconvolution\" here"},
    {"MaxPool2d", "PyTorch", "it is type: \"Pooling\" with pool: MAX here"},
    {"AvgPool2d", "PyTorch", "it is type: \"Pooling\" with pool: AVE here"},
    {"AdaptiveAvgPool2d", "PyTorch", "to one place it is type: \"Pooling\" with pool: AVE global_pooling: true here"},
    {"BatchNorm1d", "PyTorch", kBatchNorm},
    {"BatchNorm2d", "PyTorch", kBatchNorm},
    {"Embedding", "PyTorch", "it is type: \"Embed\" here"},
    {"LeakyReLU", "PyTorch", "it is type: \"ReLU\" with relu_param { negative_slope: 0.01 } here"},
    {"SiLU", "PyTorch", "it is type: \"Swish\" here"},
    {"CrossEntropyLoss", "PyTorch", "it is type: \"SoftmaxWithLoss\" here"},
    {"NLLLoss", "PyTorch", "type: \"SoftmaxWithLoss\" takes the scores before their log_softmax"},
    {"BCEWithLogitsLoss", "PyTorch", "it is type: \"SigmoidCrossEntropyLoss\" here"},
    {"BCELoss", "PyTorch", "type: \"SigmoidCrossEntropyLoss\" takes the scores before their Sigmoid"},
    {"MSELoss", "PyTorch",
     "type: \"EuclideanLoss\" is half the sum of squares divided by the batch size: a loss_weight of 2 / the numbers "
     "of an item makes it PyTorch's mean"},
    {"HuberLoss", "PyTorch", "type: \"SmoothL1Loss\" is like it"},
    // Single layers
    {"LocalConvolution", "forks", "type: \"Local\" with local_param does the same, without groups"},
    {"Noise", "forks",
     "let a layer of type \"DummyData\" with data_filler { type: \"gaussian\" std: ... } make it, and an Eltwise add "
     "it, both with include { phase: TRAIN }"},
    {"BatchReduction", "Temporal Segment Networks", nullptr},
    {"SpatialDropout", "Intel", nullptr},
    {"SELU", "forks",
     "write ELU with elu_param { alpha: 1.6732632 } and behind it Power with power_param { scale: 1.0507010 }"},
    {"CReLU", "forks", "write Power with power_param { scale: -1 }, a Concat of its bottom and its top, and ReLU"},
    {"PixelShuffle", "forks",
     "write Reshape to N x C x r x r x H x W, Permute with orders 0, 1, 4, 2, 5, 3, and Reshape to N x C x rH x rW"},
};

// For these a similar name is that of something else. With a remedy where there is one.
constexpr std::pair<std::string_view, const char*> kFields[] = {
    {"mask_filler", nullptr},
    {"st_loss_param", nullptr},
    {"max_lr", nullptr},
    {"warmup_lr", nullptr},
    {"sample_weights_test",
     "that of Bayesian SegNet drops in tests, too, and means are taken of many of them; leave the line out: Dropout "
     "then does nothing in tests, and one of them comes near to that mean"},
};

struct Word {
  std::string_view word, field;
  const char* remedy;  // null: the field alone
};

constexpr Word kWords[] = {
    {"learning_rate", "base_lr", nullptr},
    {"lr", "base_lr", nullptr},
    {"train_iter", "max_iter", nullptr},
    {"iterations", "max_iter", nullptr},
    {"epochs", "in_epochs", "in_epochs { max_iter: ... }"},
    {"num_epochs", "in_epochs", "in_epochs { max_iter: ... }"},
    {"max_epoch", "in_epochs", "in_epochs { max_iter: ... }"},
    {"max_epochs", "in_epochs", "in_epochs { max_iter: ... }"},
    {"batch_size", "base_lr", "data_param { batch_size: ... }, or the like, of the net's layers"},
    {"optimizer", "base_lr", "type: \"SGD\", \"Adam\" and the like"},
    {"padding", "pad", nullptr},
    {"kernel", "kernel_size", nullptr},
    {"filter_size", "kernel_size", nullptr},
    {"filters", "num_output", nullptr},
    {"out_channels", "num_output", nullptr},
    {"out_features", "num_output", nullptr},
};

}  // namespace

std::string PlainName(std::string_view name) {
  constexpr std::string_view kBlock = "_param";
  if (name.ends_with(kBlock)) name.remove_suffix(kBlock.size());
  std::string plain = LowerCase(name);
  plain.erase(std::remove(plain.begin(), plain.end(), '_'), plain.end());
  return plain;
}

std::span<const TypeOfFork> TypesOfForks() { return kTypes; }

const TypeOfFork* FindTypeOfFork(std::string_view name) {
  const std::string plain = PlainName(name);
  const auto* found = std::find_if(std::begin(kTypes), std::end(kTypes),
                                   [&](const TypeOfFork& of) { return PlainName(of.type) == plain; });
  return found == std::end(kTypes) ? nullptr : found;
}

std::string AdviceOn(const TypeOfFork& type) {
  const std::string fork = type.fork, name(type.type);
  if (fork == "PyTorch") return "\"" + name + "\" is what PyTorch calls it; " + type.remedy;
  return "\"" + name + "\" is a layer type of " + (fork.starts_with("forks") ? fork + " of Caffe" : "a fork of Caffe") +
         (fork.starts_with("forks") ? "" : " (" + fork + ")") + " that crema does not have" +
         (type.remedy ? std::string("; ") + type.remedy : kWriteLayer);
}

std::string AdviceOnField(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kFields), std::end(kFields), [&](const auto& field) { return field.first == name; });
  if (found == std::end(kFields)) return "";
  return std::string("it is of a fork of Caffe") + (found->second ? std::string("; ") + found->second : "");
}

std::string WordOfOthers(std::string_view name, const std::vector<std::string>& fields) {
  for (const Word& word : kWords) {
    if (word.word != name || std::find(fields.begin(), fields.end(), word.field) == fields.end()) continue;
    return "; it is " + (word.remedy ? std::string(word.remedy) : std::string(word.field)) + " here";
  }
  return "";
}

}  // namespace crema
