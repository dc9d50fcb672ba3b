// What nets read, likely not as it was meant.
#include <algorithm>

#include "base/listed.h"
#include "graph/program.h"
#include "solver/checks/mistake_finder.h"

namespace crema {

namespace {

class MistakesOfData : public MistakeFinder {
 public:
  using MistakeFinder::MistakeFinder;

  void Find() {
    FindShuffledSteps();
    for (size_t i = 0; i < nets_.tests.size(); ++i) {
      CompareData(*nets_.tests[i], "test net #" + std::to_string(i));
    }
  }

 private:
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
      if (!node.param->has_recurrent_param() || node.bottoms.size() < 2) continue;
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
};

}  // namespace

void FindMistakesOfData(const TrainedNets& nets, std::vector<Diagnostic>* found) { MistakesOfData(nets, found).Find(); }

}  // namespace crema
