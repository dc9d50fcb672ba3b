#include "solver/checks/likely_mistakes.h"

#include <algorithm>
#include <map>

#include "base/listed.h"
#include "graph/program.h"

namespace crema {

namespace {

constexpr int64_t kManyNumbers = 1000;  // of an output

using Severity = Diagnostic::Severity;

std::string Quoted(const std::string& name) { return "\"" + name + "\""; }

std::string Layer(const Node& node) { return "layer " + Quoted(node.name()) + " (" + node.type->name + ")"; }

// Its first parameter, by itself or by the layer that it shares that with.
bool IsGiven(const Graph& graph, const Node& node, const std::set<std::string>& loaded) {
  return loaded.contains(node.name()) || loaded.contains(graph.nodes[graph.params[node.params[0]].owner].name());
}

class Finder {
 public:
  Finder(const SolverParameter& solver, const Net& train, const std::vector<std::unique_ptr<Net>>& tests,
         const std::set<std::string>& loaded)
      : solver_(solver), train_(train), graph_(train.compiled().graph), tests_(tests), loaded_(loaded) {}

  std::vector<Diagnostic> Find() {
    FindLayersOutsideTheLosses();
    FindActivationsTwice();
    FindZerosBehindZeros();
    FindSummingInterpolation();
    FindMovingStatistics();
    FindShuffledSteps();
    FindLonelyNames();
    FindUnknownStatistics();
    FindLargeOutputs(train_, "the train net");
    for (size_t i = 0; i < tests_.size(); ++i) {
      const std::string name = "test net #" + std::to_string(i);
      FindLargeOutputs(*tests_[i], name);
      CompareData(*tests_[i], name);
    }
    FindLateSteps();
    return std::move(found_);
  }

 private:
  void Say(Severity severity, const Net& net, const Node* node, std::string message) {
    const CompiledNet& compiled = net.compiled();
    Location where;
    if (node && compiled.file.source) where = compiled.file.source->Layer(node->index_in_file);
    found_.push_back({severity, std::move(where), std::move(message)});
  }

  // The layer that made a bottom; null for what is fed.
  const Node* MakerOf(const Graph& graph, int value) const {
    const int producer = graph.values[value].producer;
    return producer < 0 ? nullptr : &graph.nodes[producer];
  }

  bool ReachesLoss(const Node& node) const {
    return std::any_of(node.tops.begin(), node.tops.end(), [&](int top) { return graph_.values[top].reaches_loss; });
  }

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

  bool LearnsFromZeros(const Node& node) const {
    return StartsWithZeros(graph_, node, loaded_) && graph_.params[node.params[0]].wants_grad();
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

  // The bilinear filler makes each channel of the top of all channels of the bottom alike.
  void FindSummingInterpolation() {
    for (const Node& node : graph_.nodes) {
      if (node.type->name != "Deconvolution" || node.params.empty() || IsGiven(graph_, node, loaded_)) continue;
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

  // The data layer whose records are the steps of this value, in its order; null where there is none.
  const Node* SourceOfSteps(int value) const {
    const int64_t steps = graph_.values[value].spec.shape[0];
    for (;;) {
      const Shape& shape = graph_.values[value].spec.shape;
      const Node* const maker = MakerOf(graph_, value);
      if (!maker || shape.axes() == 0 || shape[0] != steps) return nullptr;
      if (maker->setup->is_source()) return maker;
      // What depends on an item alone keeps their order.
      if (!maker->setup->is_view() && !maker->setup->splits_batch()) return nullptr;
      value = maker->bottoms[0];
    }
  }

  void FindShuffledSteps() {
    for (const Node& node : graph_.nodes) {
      if ((node.type->name != "LSTM" && node.type->name != "RNN") || node.bottoms.size() < 2) continue;
      const Node* const data = SourceOfSteps(node.bottoms[1]);
      if (!data) continue;
      const bool shuffles = data->param->has_hdf5_data_param() ? data->param->hdf5_data_param().shuffle()
                                                               : data->param->data_param().shuffle();
      if (!shuffles) continue;
      Say(Severity::kWarning, train_, data,
          Layer(*data) + " gives records in random order (shuffle: true), and " + Layer(node) +
              " takes them for the steps of its sequences: leave shuffle out");
      return;
    }
  }

  // With a layer of another name, which the train net has not.
  bool IsSharedWithATest(const GraphParam& param) const {
    const std::string& owner = graph_.nodes[param.owner].name();
    return std::ranges::any_of(tests_, [&](const auto& test) {
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
      if (!uses || IsGiven(graph_, node, loaded_)) continue;
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

  // Data layers of the two nets that make a blob of the same name.
  void CompareData(const Net& net, const std::string& name) {
    const Graph& graph = net.compiled().graph;
    for (const Node& test : graph.nodes) {
      if (!test.setup->is_source() || test.tops.empty()) continue;
      const auto train = std::find_if(graph_.nodes.begin(), graph_.nodes.end(), [&](const Node& node) {
        return node.setup->is_source() && !node.tops.empty() &&
               graph_.values[node.tops[0]].name == graph.values[test.tops[0]].name;
      });
      if (train == graph_.nodes.end()) continue;
      CompareTransforms(net, name, test, *train);
      const std::string source = SourceOf(*test.param);
      if (source.empty() || source != SourceOf(*train->param)) continue;
      Say(Severity::kNote, net, &test,
          name + " reads " + Quoted(source) +
              ", which the train net learns: what it measures says nothing of other data");
    }
  }

  static std::string SourceOf(const LayerParameter& layer) {
    if (layer.has_data_param()) return layer.data_param().source();
    if (layer.has_image_data_param()) return layer.image_data_param().source();
    if (layer.has_hdf5_data_param()) return layer.hdf5_data_param().source();
    return "";
  }

  void CompareTransforms(const Net& net, const std::string& name, const Node& test, const Node& train) {
    const auto transforms = [](const Node& node) {
      return std::ranges::count(node.type->reads, "transform_param") > 0;
    };
    if (!transforms(test) || !transforms(train)) return;
    const TransformationParameter& in_test = test.param->transform_param();
    const TransformationParameter& in_train = train.param->transform_param();
    std::set<std::string> fields;
    if (in_test.scale() != in_train.scale()) fields.insert("scale");
    if (!std::ranges::equal(in_test.mean_value(), in_train.mean_value())) fields.insert("mean_value");
    if (in_test.has_mean_file() != in_train.has_mean_file()) fields.insert("mean_file");
    const bool other_mean = fields.contains("mean_value") && fields.contains("mean_file");
    if (other_mean) fields.erase("mean_file");
    if (!fields.empty()) {
      Say(Severity::kWarning, net, &test,
          Layer(test) + " of " + name + " and " + Layer(train) + " of the train net have another " +
              Listed(fields, {.quoted = true}) +
              " in transform_param: tests see other numbers than the net learns from; give both the same");
    }
    if (in_test.mirror()) {
      Say(Severity::kWarning, net, &test,
          Layer(test) + " of " + name + " mirrors images at random: leave mirror to the train net");
    }
  }

  void FindLateSteps() {
    const std::string& policy = solver_.lr_policy();
    const bool never = policy == "step" ? solver_.stepsize() >= solver_.max_iter()
                       : policy == "multistep"
                           ? solver_.stepvalue_size() > 0 && solver_.stepvalue(0) >= solver_.max_iter()
                           : false;
    if (!never) return;
    Say(Severity::kNote, train_, nullptr,
        "the learning rate stays as it is: max_iter " + std::to_string(solver_.max_iter()) +
            " comes before the first step of lr_policy " + Quoted(policy));
  }

  const SolverParameter& solver_;
  const Net& train_;
  const Graph& graph_;  // the train net's
  const std::vector<std::unique_ptr<Net>>& tests_;
  const std::set<std::string>& loaded_;
  std::vector<Diagnostic> found_;
};

}  // namespace

bool StartsWithZeros(const Graph& graph, const Node& node, const std::set<std::string>& loaded) {
  static constexpr const char* kBlocks[] = {"convolution_param", "deformable_convolution_param", "inner_product_param",
                                            "modulated_deformable_convolution_param"};
  const auto reads = [&](const char* block) { return std::ranges::count(node.type->reads, block) > 0; };
  if (node.params.empty() || std::ranges::none_of(kBlocks, reads)) return false;
  if (IsGiven(graph, node, loaded)) return false;
  const FillerParameter& filler = graph.params[node.params[0]].filler;
  return filler.type() == "constant" && filler.value() == 0;
}

std::vector<Diagnostic> LikelyMistakes(const SolverParameter& solver, const Net& train,
                                       const std::vector<std::unique_ptr<Net>>& tests,
                                       const std::set<std::string>& loaded) {
  return Finder(solver, train, tests, loaded).Find();
}

std::optional<DataLayer> LongestData(const Net& net) {
  std::optional<DataLayer> longest;
  for (const auto& [layer, extent] : net.data_extents()) {
    if (extent.epoch == 0 || extent.batch == 0) continue;
    const uint64_t batches = (extent.epoch + extent.batch - 1) / extent.batch;
    if (!longest || batches > longest->batches) longest = DataLayer{layer, extent, batches};
  }
  return longest;
}

std::string PartlyTested(const Net& test_net, const std::string& name, int batches) {
  const std::optional<DataLayer> data = LongestData(test_net);
  const uint64_t read = data ? static_cast<uint64_t>(batches) * data->extent.batch : 0;
  if (!data || read % data->extent.epoch == 0) return "";
  return "each test of " + name + " reads " + std::to_string(read) + " records, while layer " + Quoted(data->layer) +
         " has " + std::to_string(data->extent.epoch) +
         ", and goes on where the one before ended: in_epochs { test_iter: 1 } reads them all, and the same ones "
         "every time (" +
         std::to_string(data->batches) + " batches)";
}

}  // namespace crema
