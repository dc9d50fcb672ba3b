#include "solver/checks/likely_mistakes.h"

#include <algorithm>
#include <map>

#include "base/listed.h"
#include "graph/program.h"

namespace crema {

namespace {

constexpr int64_t kManyNumbers = 1000;  // of an output

class MistakesOfLayers : public MistakeFinder {
 public:
  using MistakeFinder::MistakeFinder;

  void Find() {
    FindLayersOutsideTheLosses();
    FindActivationsTwice();
    FindSummingInterpolation();
    FindMovingStatistics();
    FindLonelyNames();
    FindUnknownStatistics();
    FindLargeOutputs(train_, "the train net");
    for (size_t i = 0; i < nets_.tests.size(); ++i) {
      FindLargeOutputs(*nets_.tests[i], "test net #" + std::to_string(i));
    }
    FindLateSteps();
  }

 private:
  void FindLayersOutsideTheLosses() {
    std::set<std::string> outside;
    bool any_inside = false;
    const Node* first = nullptr;
    for (const GraphParam& param : graph_.params) {
      if (!param.wants_grad()) continue;
      const bool inside = std::any_of(param.users.begin(), param.users.end(),
                                      [&](int user) { return ReachesLoss(graph_.nodes[user]); });
      any_inside |= inside;
      if (inside) continue;
      outside.insert(graph_.nodes[param.owner].name());
      if (!first) first = &graph_.nodes[param.owner];
    }
    if (outside.empty() || !any_inside) return;
    Say(Severity::kWarning, train_, first,
        "no loss of the train net depends on " + Listed(outside, {.quoted = true}) + ", which therefore " +
            (outside.size() == 1 ? "learns nothing" : "learn nothing") +
            ": look whether the losses read the right blobs; an lr_mult of 0 says that it is meant");
  }

  void FindActivationsTwice() {
    static const std::map<std::string, std::string> kContained = {
        {"SoftmaxWithLoss", "Softmax"}, {"InfogainLoss", "Softmax"}, {"SigmoidCrossEntropyLoss", "Sigmoid"}};
    for (const Node& node : graph_.nodes) {
      const auto contained = kContained.find(node.type->name);
      if (contained == kContained.end() || node.bottoms.empty()) continue;
      const Node* const maker = MakerOf(graph_, node.bottoms[0]);
      if (!maker || maker->type->name != contained->second) continue;
      Say(Severity::kWarning, train_, &node,
          Layer(node) + " contains a " + contained->second + ", and its bottom is made by one, layer " +
              Quoted(maker->name()) + ": give it what that layer reads, or it learns slowly and badly");
    }
  }

  // The bilinear filler makes each channel of the top of all channels of the bottom alike.
  void FindSummingInterpolation() {
    for (const Node& node : graph_.nodes) {
      if (node.type->name != "Deconvolution" || node.params.empty() || IsLoaded(node)) continue;
      const GraphParam& weights = graph_.params[node.params[0]];
      const Shape& shape = weights.spec.shape;
      if (weights.filler.type() != "bilinear" || std::max(shape[0], shape[1]) == 1) continue;
      if (node.param->convolution_param().group() > 1) continue;
      const std::string channels = std::to_string(shape[0]);
      Say(Severity::kWarning, train_, &node,
          Layer(node) +
              " begins with weight_filler { type: \"bilinear\" } and group: 1, so that each channel of its "
              "top is the same sum of all " +
              channels + " of its bottom: to interpolate each of them by itself write group: " + channels +
              " and num_output: " + channels);
      return;
    }
  }

  // It has parameters, and none of them learns.
  bool IsFrozen(const Node& node) const {
    return !node.params.empty() &&
           std::ranges::none_of(node.params, [&](int param) { return graph_.params[param].wants_grad(); });
  }

  // A net that is to stay as it is, such as a teacher, changes by what its BatchNorm layers see.
  void FindMovingStatistics() {
    std::set<std::string> moving;
    const Node* first = nullptr;
    for (const Node& scale : graph_.nodes) {
      const Node* const norm =
          scale.type->name == "Scale" && IsFrozen(scale) ? MakerOf(graph_, scale.bottoms[0]) : nullptr;
      if (!norm || norm->type->name != "BatchNorm" || norm->param->batch_norm_param().use_global_stats()) continue;
      const Node* const below = MakerOf(graph_, norm->bottoms[0]);
      if (!below || !IsFrozen(*below) || graph_.values[norm->bottoms[0]].needs_grad) continue;
      moving.insert(norm->name());
      if (!first) first = norm;
    }
    if (!first) return;
    Say(Severity::kWarning, train_, first,
        "the layers around " + Listed(moving, {.quoted = true}) +
            " have lr_mult: 0, but the statistics of BatchNorm go on with the batches, as in Caffe: write "
            "batch_norm_param { use_global_stats: true } where they are to stay");
  }

  // With a layer of another name, which the train net has not.
  bool IsSharedWithATest(const GraphParam& param) const {
    const std::string& owner = graph_.nodes[param.owner].name();
    return std::ranges::any_of(nets_.tests, [&](const auto& test) {
      const Graph& graph = test->compiled().graph;
      return std::ranges::any_of(graph.params, [&](const GraphParam& other) {
        return other.shared_name == param.shared_name &&
               std::ranges::any_of(other.users, [&](int user) { return graph.nodes[user].name() != owner; });
      });
    });
  }

  void FindLonelyNames() {
    bool any_shared = false;
    std::set<std::string> lonely;
    const Node* first = nullptr;
    for (const GraphParam& param : graph_.params) {
      if (param.shared_name.empty()) continue;
      any_shared |= param.users.size() > 1;
      if (param.users.size() > 1 || IsSharedWithATest(param)) continue;
      lonely.insert(param.shared_name);
      if (!first) first = &graph_.nodes[param.owner];
    }
    if (!any_shared || lonely.empty()) return;
    Say(Severity::kWarning, train_, first,
        "only one layer has parameters of the name " + Listed(lonely, {.quoted = true}) +
            ", while others of this net are shared: correct the name where they were to be, too, or leave it out");
  }

  void FindUnknownStatistics() {
    std::set<std::string> layers;
    const Node* first = nullptr;
    for (const Node& node : graph_.nodes) {
      const bool uses = node.type->name == "BatchNorm" && node.param->batch_norm_param().use_global_stats();
      if (!uses || IsLoaded(node)) continue;
      layers.insert(node.name());
      if (!first) first = &node;
    }
    if (layers.empty()) return;
    Say(Severity::kWarning, train_, first,
        "BatchNorm " + Listed(layers, {.quoted = true}) +
            " of the train net: use_global_stats: true takes running statistics as they are, but no weights file gave "
            "any: leave it out, or give weights (--weights)");
  }

  void FindLargeOutputs(const Net& net, const std::string& name) {
    const Graph& graph = net.compiled().graph;
    for (const int output : graph.outputs) {
      const Value& value = graph.values[output];
      const Node* const maker = MakerOf(graph, output);
      if (!maker || value.spec.shape.count() <= kManyNumbers || maker->setup->is_source()) continue;
      if (maker->type->name == "DetectionEvaluate") continue;  // the log shows the mean of what it tells
      Say(Severity::kWarning, net, maker,
          "no layer reads " + Quoted(value.name) + ", which " + Layer(*maker) + " makes, so that it is an output of " +
              name + ", and the log shows all of its " + std::to_string(value.spec.shape.count()) +
              " numbers: correct the bottom of what is to read it, or put a Silence layer behind it");
    }
  }

  void FindLateSteps() {
    const std::string& policy = nets_.solver.lr_policy();
    const bool never = policy == "step" ? nets_.solver.stepsize() >= nets_.solver.max_iter()
                       : policy == "multistep"
                           ? nets_.solver.stepvalue_size() > 0 && nets_.solver.stepvalue(0) >= nets_.solver.max_iter()
                           : false;
    if (!never) return;
    Say(Severity::kNote, train_, nullptr,
        "the learning rate stays as it is: max_iter " + std::to_string(nets_.solver.max_iter()) +
            " comes before the first step of lr_policy " + Quoted(policy));
  }
};

}  // namespace

std::vector<Diagnostic> LikelyMistakes(const TrainedNets& nets) {
  std::vector<Diagnostic> found;
  FindZeroWeights(nets, &found);
  MistakesOfLayers(nets, &found).Find();
  FindMistakesOfData(nets, &found);
  return found;
}

}  // namespace crema
