#include <algorithm>

#include "base/check.h"
#include "darknet/net_reader.h"

namespace crema::darknet {

SectionReader::SectionReader(NetReader& net, int index, Settings* settings)
    : net_(net), index_(index), settings_(settings) {}

void SectionReader::Refuse(const std::string& message) const { throw UserError(message); }

std::string SectionReader::Describe() const {
  return "section " + std::to_string(index_) + ", [" + settings_->kind() + "] in line " +
         std::to_string(settings_->where().line);
}

Value SectionReader::Input() {
  bool swapped = false;
  Value input = InputInAnyOrder(&swapped);
  if (!swapped) return input;
  LayerParameter layer = ChannelSwap();
  layer.set_name("data_swap");
  layer.add_top("data_swap");
  input.shape = Append(std::move(layer), {input})[0];
  input.blob = "data_swap";
  PlanFixed(ChannelSwapWeights());
  return input;
}

Value SectionReader::InputInAnyOrder(bool* swapped) {
  *swapped = false;
  if (index_ > 0) return OutputOf(-1);
  if (net_.input_.blob.empty()) throw FailedBefore();
  *swapped = net_.input_.shape[1] == 3;
  return net_.input_;
}

// As Darknet has it, the last jitter counts.
void SectionReader::ReadYoloLearning(Grid* grid) {
  if (net_.options_.data.empty()) return IgnoreYoloLearning(settings_);
  ReadLearning(settings_, &grid->learnt, &net_.training_.jitter, &net_.result_.notes);
}

void SectionReader::ReadRegionLearning(Grid* grid) {
  if (net_.options_.data.empty()) return IgnoreRegionLearning(settings_);
  ReadLearning(settings_, &grid->region_learnt, &net_.training_.jitter, &net_.result_.notes);
}

Value SectionReader::InputBeforeLogistic() {
  if (index_ > 0) {
    const NetReader::Result& result = net_.results_[static_cast<size_t>(index_) - 1];
    if (result.before_logistic) return *result.value;
    if (!result.value && !result.ends) throw FailedBefore();
  }
  Refuse("new_coords=1 wants activation=logistic in a [convolutional] before it");
}

bool SectionReader::FeedsNewCoords() const {
  const size_t next = static_cast<size_t>(index_) + 2;
  if (next >= net_.sections_.size() || net_.sections_[next].kind != "yolo") return false;
  const auto& entries = net_.sections_[next].entries;
  return std::any_of(entries.begin(), entries.end(),
                     [](const CfgEntry& entry) { return entry.key == "new_coords" && entry.value == "1"; });
}

void SectionReader::SetBeforeLogistic(Value value) {
  Set(std::move(value));
  net_.results_[static_cast<size_t>(index_)].before_logistic = true;
}

Value SectionReader::OutputOf(int64_t number) {
  const int64_t from = number < 0 ? index_ + number : number;
  if (from < 0 || from >= index_) {
    Refuse("reads section " + std::to_string(number) + ", but its own number is " + std::to_string(index_) +
           ": those before it are 0 to " + std::to_string(index_ - 1) + ", or -1 to -" + std::to_string(index_));
  }
  const NetReader::Result& result = net_.results_[static_cast<size_t>(from)];
  if (result.before_logistic) {
    Refuse("reads section " + std::to_string(from) + ", but only the [yolo] with new_coords=1 behind that may");
  }
  if (result.value) return *result.value;
  if (!result.ends) throw FailedBefore();
  const CfgSection& other = net_.sections_[static_cast<size_t>(from) + 1];
  Refuse("reads section " + std::to_string(from) + ", [" + other.kind + "] in line " + std::to_string(other.line) +
         ", which makes nothing that another one can read; begin with [route] to read an earlier one");
}

Value SectionReader::AsImage(const Value& value) {
  if (value.shape.axes() == 4) return value;
  return Reshape(value, {0, value.shape[1], 1, 1}, "image");
}

std::vector<Shape> SectionReader::Append(LayerParameter layer, const std::vector<Value>& bottoms) {
  std::vector<Shape> shapes;
  for (const Value& bottom : bottoms) {
    layer.add_bottom(bottom.blob);
    shapes.push_back(bottom.shape);
  }
  LayerShapes made = net_.Append(std::move(layer), shapes, settings_->where());
  last_params_ = std::move(made.params);
  return std::move(made.tops);
}

Value SectionReader::Add(LayerParameter layer, const std::vector<Value>& bottoms, const std::string& role) {
  layer.set_name(role.empty() ? name_ : name_ + "_" + role);
  layer.add_top(layer.name());
  Value value{layer.name(), {}};
  value.shape = Append(std::move(layer), bottoms)[0];
  return value;
}

void SectionReader::AddInPlace(LayerParameter layer, const Value& value, const std::string& role) {
  layer.set_name(name_ + "_" + role);
  layer.add_top(value.blob);
  Append(std::move(layer), {value});
}

int SectionReader::PlanWeights() {
  const LayerParameter& layer = *net_.result_.net.layer().rbegin();
  return net_.weights_.AddLayer(layer.name(), layer.type(), last_params_);
}

void SectionReader::PlanFixed(const FixedWeights& weights) {
  CREMA_CHECK(last_params_.size() == 1 && last_params_[0] == weights.shape) << weights.shape.ToString();
  net_.weights_.SetBlob(PlanWeights(), 0, weights.values);
}

Value SectionReader::Cut(const Value& value, int axis, int64_t start, int64_t count, const std::string& role) {
  const int64_t extent = value.shape[axis], end = start + count;
  if (start == 0 && end == extent) return value;
  LayerParameter layer = SliceFor(axis, start, end, extent), rest = LayerOf("Silence");
  layer.set_name(name_ + "_" + role);
  rest.set_name(layer.name() + "_rest");
  std::vector<std::string> others;
  if (start > 0) others.push_back(layer.name() + "_before");
  if (end < extent) others.push_back(layer.name() + "_behind");
  if (start > 0) layer.add_top(others.front());
  layer.add_top(layer.name());
  if (end < extent) layer.add_top(others.back());
  Value part{layer.name(), {}};
  const std::vector<Shape> shapes = Append(std::move(layer), {value});
  part.shape = shapes[start > 0 ? 1 : 0];
  std::vector<Value> unread;
  for (const std::string& blob : others) unread.push_back({blob, net_.shapes_.at(blob)});
  Append(std::move(rest), unread);
  return part;
}

Value SectionReader::Reshape(const Value& value, const std::vector<int64_t>& dims, const std::string& role) {
  LayerParameter layer = LayerOf("Reshape");
  for (const int64_t extent : dims) layer.mutable_reshape_param()->mutable_shape()->add_dim(extent);
  return Add(std::move(layer), {value}, role);
}

}  // namespace crema::darknet
