// Weights of 0 that stay so, or from which nothing learns: Caffe's weight_filler where a file has none.
#include <algorithm>

#include "solver/checks/mistake_finder.h"

namespace crema {

namespace {

class ZeroWeights : public MistakeFinder {
 public:
  using MistakeFinder::MistakeFinder;

  void Find() {
    FindFrozenZeros();
    FindZerosBehindZeros();
  }

 private:
  // Whether the weights, of a convolution or an inner product, are 0 before they learn.
  bool StartsWithZeros(const Node& node) const {
    static constexpr const char* kBlocks[] = {"convolution_param", "deformable_convolution_param",
                                              "inner_product_param", "modulated_deformable_convolution_param"};
    const auto reads = [&](const char* block) { return std::ranges::count(node.type->reads, block) > 0; };
    if (node.params.empty() || std::ranges::none_of(kBlocks, reads)) return false;
    if (IsLoaded(node)) return false;
    const FillerParameter& filler = graph_.params[node.params[0]].filler;
    return filler.type() == "constant" && filler.value() == 0;
  }

  // Nothing of their bottom gets through.
  void FindFrozenZeros() {
    for (const Node& node : graph_.nodes) {
      if (!StartsWithZeros(node) || graph_.params[node.params[0]].lr_mult != 0) continue;
      std::string remedy = "give weights for it (--weights), a weight_filler such as \"xavier\", or an lr_mult above 0";
      const ConvolutionParameter& param = node.param->convolution_param();
      // From channels to as many: resized one by one, and not each the sum of all.
      const bool resizes = node.type->name == "Deconvolution" && node.setup->bottom_shape(0).axes() == 4 &&
                           node.setup->bottom_shape(0)[1] == param.num_output();
      if (resizes) {
        remedy = "write weight_filler { type: \"bilinear\" }";
        if (param.num_output() > 1) remedy += " and group: " + std::to_string(param.num_output());
        remedy += ", which resizes images";
      }
      Say(Severity::kWarning, train_, &node,
          Layer(node) +
              " has weights of 0 and keeps them: its weight_filler is constant 0, lr_mult is 0, and no weights file "
              "has any for it. Nothing of its bottom gets through, and nothing below learns by it; " +
              remedy);
    }
  }

  bool LearnsFromZeros(const Node& node) const {
    return StartsWithZeros(node) && graph_.params[node.params[0]].wants_grad();
  }

  // Whether tops are 0 where all of the bottom is.
  static bool KeepsZeros(const Node& node) {
    static const std::set<std::string> kKeeping = {"ReLU",    "PReLU",   "ELU", "TanH", "Swish",  "AbsVal",
                                                   "Dropout", "Pooling", "LRN", "MVN",  "Interp", "BatchNorm"};
    int differentiated = 0;
    for (int i = 0; i < node.setup->bottoms(); ++i) differentiated += node.setup->has_gradient(i);
    return (node.setup->moves_elements() && differentiated == 1) || kKeeping.contains(node.type->name);
  }

  // To which a layer above with weights of 0 learns.
  bool AddsBias(const Node& node) const {
    if (node.params.size() < 2) return false;
    const FillerParameter& filler = graph_.params[node.params[1]].filler;
    return filler.type() != "constant" || filler.value() != 0;
  }

  // Of what this layer makes: how many layers lead from there to a loss.
  int64_t WaysToLosses(const Node& node) const {
    int64_t ways = 0;
    for (const int top : node.tops) {
      ways += std::ranges::count_if(graph_.values[top].uses,
                                    [&](const Value::Use& use) { return ReachesLoss(graph_.nodes[use.node]); });
    }
    return ways;
  }

  // The layer below from which this one sees nothing but zeros and which no other one reads, so that it learns through
  // this one alone; null where there is none.
  const Node* ZerosBelow(const Node& upper) const {
    const Node* below = MakerOf(graph_, upper.bottoms[0]);
    while (below && WaysToLosses(*below) == 1 && KeepsZeros(*below)) below = MakerOf(graph_, below->bottoms[0]);
    const bool found = below && WaysToLosses(*below) == 1 && LearnsFromZeros(*below) && !AddsBias(*below);
    return found ? below : nullptr;
  }

  // Neither learns: the upper one sees nothing but zeros, and lets no gradient through. Around one of several ways into
  // a layer, such as a sum, others may go.
  void FindZerosBehindZeros() {
    for (const Node& upper : graph_.nodes) {
      const Node* const below = LearnsFromZeros(upper) ? ZerosBelow(upper) : nullptr;
      if (!below) continue;
      Say(Severity::kWarning, train_, &upper,
          Layer(upper) + " and, below it, " + Layer(*below) +
              " begin with weights of 0, so that neither learns: write weight_filler { type: \"xavier\" }, or \"msra\" "
              "where a ReLU follows (Caffe's default is constant 0)");
      return;
    }
  }
};

}  // namespace

void FindZeroWeights(const TrainedNets& nets, std::vector<Diagnostic>* found) { ZeroWeights(nets, found).Find(); }

}  // namespace crema
