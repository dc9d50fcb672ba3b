// Layers that forks wrote in Python and that are built in here become these. py-faster-rcnn: rpn.proposal_layer,
// rpn.anchor_target_layer and rpn.proposal_target_layer, whose param_str is YAML, of which these files use little:
// names and numbers, or lists of numbers, in lines or behind commas. NVIDIA's, for DetectNet: the classes of
// caffe.layers.detectnet.clustering and mean_ap, whose param_str is numbers in an order, behind commas.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <ranges>
#include <string_view>
#include <vector>

#include "base/listed.h"
#include "base/number_text.h"
#include "base/suggest.h"
#include "base/trimmed.h"
#include "schema/upgrade.h"

namespace crema {

namespace {

struct Entry {
  std::string name;
  std::vector<double> numbers;  // empty: what stands there is neither a number nor a list of them
};

// Cuts at commas and ends of lines outside of brackets; what is empty is left out.
std::vector<std::string_view> Cut(std::string_view text) {
  std::vector<std::string_view> pieces;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : '\n';
    depth += (c == '[' || c == '(') - (c == ']' || c == ')');
    if (i < text.size() && (depth > 0 || (c != ',' && c != '\n'))) continue;
    const std::string_view piece = Trimmed(text.substr(begin, i - begin));
    if (!piece.empty()) pieces.push_back(piece);
    begin = i + 1;
  }
  return pieces;
}

std::optional<double> NumberIn(std::string_view text) {
  double number;
  return ParseFinite(text, &number) ? std::optional(number) : std::nullopt;
}

std::vector<double> NumbersIn(std::string_view text) {
  constexpr std::string_view kTuple = "!!python/tuple";
  if (text.starts_with(kTuple)) text = Trimmed(text.substr(kTuple.size()));
  const bool list = text.size() >= 2 && (text.front() == '[' || text.front() == '(');
  if (list) text = text.substr(1, text.size() - 2);
  std::vector<double> numbers;
  for (const std::string_view piece : Cut(text)) {
    const std::optional<double> number = NumberIn(piece);
    if (!number || (!list && !numbers.empty())) return {};
    numbers.push_back(*number);
  }
  return numbers;
}

std::vector<Entry> EntriesOf(std::string_view text) {
  text = Trimmed(text);
  if (text.size() >= 2 && text.front() == '{' && text.back() == '}') text = text.substr(1, text.size() - 2);
  std::vector<Entry> entries;
  for (const std::string_view piece : Cut(text)) {
    const size_t colon = piece.find(':');
    const std::string_view name = Trimmed(Trimmed(piece.substr(0, colon)), "'\"");
    entries.push_back({std::string(name), {}});
    if (colon != std::string_view::npos) entries.back().numbers = NumbersIn(Trimmed(piece.substr(colon + 1)));
  }
  return entries;
}

// A class of a fork, the field that holds its parameters here, and how these are called there and here.
struct BuiltIn {
  enum class Form { kNamed, kInOrder, kNotRead };

  std::string_view module;
  std::string_view layer;  // empty: the module has one class
  std::string_view type;
  const char* block = nullptr;
  std::vector<std::pair<std::string, std::string>> fields;
  Form form = Form::kNamed;
  size_t least = 0;  // numbers of kInOrder
};

constexpr std::string_view kClustering = "caffe.layers.detectnet.clustering";
constexpr std::string_view kMeanAp = "caffe.layers.detectnet.mean_ap";

const std::vector<BuiltIn>& BuiltIns() {
  static const std::vector<BuiltIn> built_ins = {
      {"rpn.proposal_layer",
       "",
       "Proposal",
       "proposal_param",
       {{"feat_stride", "feat_stride"}, {"scales", "scale"}, {"ratios", "ratio"}}},
      {"rpn.anchor_target_layer",
       "",
       "AnchorTarget",
       "anchor_target_param",
       {{"feat_stride", "feat_stride"},
        {"scales", "scale"},
        {"ratios", "ratio"},
        {"allowed_border", "allowed_border"}}},
      {"rpn.proposal_target_layer", "", "ProposalTarget", "proposal_target_param", {{"num_classes", "num_classes"}}},
      {kClustering,
       "ClusterDetections",
       "ClusterDetections",
       "detectnet_cluster_param",
       {{"img_size_x", "image_size_x"},
        {"img_size_y", "image_size_y"},
        {"stride", "stride"},
        {"gridbox_cvg_threshold", "coverage_threshold"},
        {"gridbox_rect_threshold", "group_threshold"},
        {"gridbox_rect_eps", "group_eps"},
        {"min_height", "min_height"},
        {"num_classes", "num_classes"}},
       BuiltIn::Form::kInOrder,
       7},
      {kClustering,
       "ClusterGroundtruth",
       "ClusterGroundtruth",
       "detectnet_cluster_param",
       {{"img_size_x", "image_size_x"},
        {"img_size_y", "image_size_y"},
        {"stride", "stride"},
        {"num_classes", "num_classes"}},
       BuiltIn::Form::kInOrder,
       3},
      {kMeanAp, "ScoreDetections", "ScoreDetections", nullptr, {}, BuiltIn::Form::kNotRead},
      {kMeanAp, "mAP", "PrecisionRecall", nullptr, {}, BuiltIn::Form::kNotRead},
  };
  return built_ins;
}

// Sets a field of `message` to what an entry says; returns what is wrong with it.
std::string Set(const Entry& entry, const BuiltIn& built_in, google::protobuf::Message* message) {
  using Field = google::protobuf::FieldDescriptor;
  std::vector<std::string> names;
  for (const auto& [there, here] : built_in.fields) {
    names.push_back(there);
    if (there != entry.name) continue;
    const Field* field = message->GetDescriptor()->FindFieldByName(here);
    const google::protobuf::Reflection* reflection = message->GetReflection();
    if (field->is_repeated() ? entry.numbers.empty() : entry.numbers.size() != 1) {
      return "'" + there + "' must be " + (field->is_repeated() ? "a list of numbers" : "one number");
    }
    for (const double number : entry.numbers) {
      if (field->is_repeated()) {
        reflection->AddFloat(message, field, static_cast<float>(number));
      } else if (field->cpp_type() == Field::CPPTYPE_FLOAT) {
        reflection->SetFloat(message, field, static_cast<float>(number));
      } else if (number >= 0 && number <= UINT32_MAX && number == std::floor(number)) {
        reflection->SetUInt32(message, field, static_cast<uint32_t>(number));
      } else {
        return "'" + there + "' must be a whole number, 0 or more";
      }
    }
    return {};
  }
  return "'" + entry.name + "' is not known for " + std::string(built_in.module) + DidYouMean(entry.name, names);
}

// The entries of a param_str that is numbers in the order of the built-in's fields; what is wrong goes to `problem`.
std::vector<Entry> EntriesInOrder(std::string_view text, const BuiltIn& built_in, std::string* problem) {
  std::vector<Entry> entries;
  const std::vector<std::string_view> pieces = Cut(text);
  for (size_t i = 0; i < pieces.size() && i < built_in.fields.size(); ++i) {
    entries.push_back({built_in.fields[i].first, NumbersIn(pieces[i])});
  }
  if (pieces.size() >= built_in.least && pieces.size() <= built_in.fields.size()) return entries;
  *problem = "it has " + std::to_string(pieces.size()) + " number(s), but " + std::string(built_in.layer) + " takes " +
             std::to_string(built_in.least) + " or " + std::to_string(built_in.fields.size()) + ": " +
             Listed(built_in.fields | std::views::keys, {.most = kAllNames});
  return {};
}

// Where regions are chosen by their losses, the fork's configuration (BATCH_SIZE: -1) gives all that there are.
void TakeAllForMining(const NetParameter& net, LayerParameter* layer) {
  const auto mines = [](const LayerParameter& other) { return other.type() == "BoxAnnotatorOHEM"; };
  if (layer->type() != "ProposalTarget" || std::none_of(net.layer().begin(), net.layer().end(), mines)) return;
  layer->mutable_proposal_target_param()->set_batch_size(0);
}

void Upgrade(const BuiltIn& built_in, const Location& where, LayerParameter* layer, Diagnostics* diagnostics) {
  const auto report = [&](const std::string& problem) {
    if (problem.empty()) return;
    diagnostics->Error(where, "layer \"" + layer->name() + "\": param_str: " + problem + "; it is read as type: \"" +
                                  std::string(built_in.type) + "\", whose parameters are in " + built_in.block);
  };
  if (built_in.form != BuiltIn::Form::kNotRead) {
    google::protobuf::Message* block =
        layer->GetReflection()->MutableMessage(layer, layer->GetDescriptor()->FindFieldByName(built_in.block));
    const std::string& text = layer->python_param().param_str();
    std::string problem;
    const std::vector<Entry> entries =
        built_in.form == BuiltIn::Form::kNamed ? EntriesOf(text) : EntriesInOrder(text, built_in, &problem);
    report(problem);
    for (const Entry& entry : entries) report(Set(entry, built_in, block));
  }
  layer->set_type(std::string(built_in.type));
  layer->clear_python_param();
}

// Null where the module is not known. A class that a known module does not have is a mistake.
const BuiltIn* BuiltInOf(const PythonParameter& param, const std::string& name, const Location& where,
                         Diagnostics* diagnostics) {
  std::vector<std::string_view> others;
  for (const BuiltIn& built_in : BuiltIns()) {
    if (param.module() != built_in.module) continue;
    if (built_in.layer.empty() || param.layer() == built_in.layer) return &built_in;
    others.push_back(built_in.layer);
  }
  if (!others.empty()) {
    diagnostics->Error(where, "layer \"" + name + "\": " + param.module() + " has no layer \"" + param.layer() +
                                  "\"; it has " + Listed(others, {.last = " and "}));
  }
  return nullptr;
}

}  // namespace

void UpgradePython(NetParameter* net, const PlaceOf& place, Diagnostics* diagnostics,
                   const std::vector<LayerOrigin>& origins) {
  for (int i = 0; i < net->layer_size(); ++i) {
    LayerParameter* layer = net->mutable_layer(i);
    if (layer->type() != "Python" || origins[i].syntax != LayerOrigin::Syntax::kCurrent) continue;
    const std::string path = "layer[" + std::to_string(origins[i].index) + "].python_param.";
    const BuiltIn* built_in = BuiltInOf(layer->python_param(), layer->name(), place(path + "layer"), diagnostics);
    if (!built_in) continue;
    Upgrade(*built_in, place(path + "param_str"), layer, diagnostics);
    TakeAllForMining(*net, layer);
  }
}

}  // namespace crema
