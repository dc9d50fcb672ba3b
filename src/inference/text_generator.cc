#include "inference/text_generator.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/listed.h"
#include "compiler/selection.h"
#include "crema/error.h"
#include "inference/image_runner.h"
#include "schema/blob_shape.h"

namespace crema {

namespace {

// The first layer that keeps a state from step to step; null: none does.
const LayerParameter* RecurrentLayer(const NetParameter& net, const NetState& state) {
  const auto found = std::find_if(net.layer().begin(), net.layer().end(), [&](const LayerParameter& layer) {
    return TakesPart(state, layer) && layer.has_recurrent_param();
  });
  return found == net.layer().end() ? nullptr : &*found;
}

// Tops of Input layers with their shapes, as the file has them.
std::vector<std::string> InputsOf(const NetParameter& net, const NetState& state) {
  std::vector<std::string> inputs;
  for (const LayerParameter& layer : net.layer()) {
    if (layer.type() != "Input" || !TakesPart(state, layer)) continue;
    const auto& shapes = layer.input_param().shape();
    for (int i = 0; i < layer.top_size(); ++i) {
      const BlobShape* shape =
          shapes.empty() ? nullptr : &shapes.Get(shapes.size() == 1 ? 0 : std::min(i, shapes.size() - 1));
      inputs.push_back(layer.top(i));
      if (shape) inputs.back() += " " + ShapeOf(*shape).ToString();
    }
  }
  return inputs;
}

// Makes every Input one text, of a recurrent net one step of it.
void ShrinkInputs(bool recurrent, NetParameter* net) {
  for (LayerParameter& layer : *net->mutable_layer()) {
    if (layer.type() != "Input") continue;
    for (BlobShape& shape : *layer.mutable_input_param()->mutable_shape()) {
      for (int i = 0; i < (recurrent ? shape.dim_size() : std::min(1, shape.dim_size())); ++i) shape.set_dim(i, 1);
    }
  }
}

std::string NamesOrNone(const std::vector<std::string>& names) {
  return names.empty() ? "none" : Listed(names, {.quoted = true});
}

}  // namespace

int64_t DrawUnit(const UnitDraw& draw, std::span<const float> probabilities, double share) {
  const auto best = std::max_element(probabilities.begin(), probabilities.end());
  const bool usable = std::all_of(probabilities.begin(), probabilities.end(), [](float p) { return p >= 0; });
  if (!usable || !(*best > 0) || !std::isfinite(*best)) {
    throw UserError(
        "what the net says comes next are no probabilities; are the weights those of a training that diverged?");
  }
  if (draw.temperature == 0) return best - probabilities.begin();
  std::vector<int64_t> candidates(probabilities.size());
  std::iota(candidates.begin(), candidates.end(), 0);
  if (draw.top > 0 && draw.top < static_cast<int64_t>(candidates.size())) {
    const auto is_better = [&](int64_t a, int64_t b) {
      return probabilities[a] != probabilities[b] ? probabilities[a] > probabilities[b] : a < b;
    };
    std::nth_element(candidates.begin(), candidates.begin() + draw.top, candidates.end(), is_better);
    candidates.resize(draw.top);
    std::sort(candidates.begin(), candidates.end());
  }
  std::vector<double> sums;  // up to each candidate
  for (const int64_t unit : candidates) {
    const double weight = std::pow(static_cast<double>(probabilities[unit]) / *best, 1 / draw.temperature);
    sums.push_back((sums.empty() ? 0 : sums.back()) + weight);
  }
  const auto drawn = std::upper_bound(sums.begin(), sums.end(), share * sums.back());
  return candidates[std::min<size_t>(drawn - sums.begin(), candidates.size() - 1)];
}

TextGenerator::TextGenerator(NetFile file, NetOptions options, int64_t units) : units_(units) {
  options.phase = TEST;
  options.backward = false;
  const NetState state = StateOf(file.net, options);
  std::string continues;
  if (const LayerParameter* layer = RecurrentLayer(file.net, state)) {
    recurrent_ = true;
    if (layer->bottom_size() > 1) continues = layer->bottom(1);
  }
  const std::vector<std::string> inputs = InputsOf(file.net, state);
  ShrinkInputs(recurrent_, &file.net);
  net_ = std::make_unique<Net>(file, options);
  FindInputs(inputs, continues);
  FindOutput(file.net, state);
}

void TextGenerator::FindInputs(const std::vector<std::string>& in_file, const std::string& continues) {
  for (const NetInput& input : net_->inputs()) {
    (recurrent_ && input.name == continues ? continues_ : input_) = input.value;
  }
  const size_t expected = recurrent_ ? 2 : 1;
  if (net_->inputs().size() == expected && input_.defined() && continues_.defined() == recurrent_) return;
  const std::string message = "the inputs of the net are " + NamesOrNone(in_file) + "; one that writes text has one, ";
  if (!recurrent_) throw UserError(message + "a top of an Input layer for the numbers of units");
  throw UserError(message + "the numbers of units, and with recurrent layers another, their second bottom" +
                  (continues.empty() ? "" : ", \"" + continues + "\"") +
                  ", which tells whether the text goes on: both are tops of Input layers");
}

void TextGenerator::FindOutput(const NetParameter& file, const NetState& state) {
  const int64_t places = input_.count();
  std::vector<std::string> outputs, fitting;
  for (const NetOutput& output : net_->outputs()) {
    const Shape& shape = output.value.shape();
    outputs.push_back(output.name + " " + shape.ToString());
    if (shape.axes() > 0 && shape[-1] == units_ && shape.count() == places * units_) fitting.push_back(output.name);
  }
  if (fitting.size() != 1) {
    throw UserError("the outputs of the net are " + NamesOrNone(outputs) +
                    "; one that writes text with this vocabulary, of " + std::to_string(units_) +
                    " units, has one output with " + std::to_string(units_) + " probabilities for each of the " +
                    std::to_string(places) + " places, along the last axis");
  }
  output_ = fitting[0];
  const LayerParameter* maker = MakerOf(file, state, output_);
  if (maker != nullptr && maker->type() == "Softmax") return;
  throw UserError("\"" + output_ +
                  "\" is not made by a Softmax layer, and holds no probabilities; put one behind it: " +
                  "layer { name: \"prob\" type: \"Softmax\" bottom: \"" + output_ +
                  "\" top: \"prob\" softmax_param { axis: -1 } }");
}

void TextGenerator::Read(int64_t unit) {
  if (recurrent_) {
    input_.f32()[0] = static_cast<float>(unit);
    continues_.f32()[0] = began_ ? 1.0f : 0.0f;
    net_->Forward();
  } else {
    if (static_cast<int64_t>(latest_.size()) == input_.count()) latest_.erase(latest_.begin());
    latest_.push_back(unit);
    is_seen_ = false;
  }
  began_ = true;
}

std::span<const float> TextGenerator::Next() {
  int64_t place = 0;
  if (!recurrent_) {
    place = static_cast<int64_t>(latest_.size()) - 1;
    if (!std::exchange(is_seen_, true)) {
      float* const end = std::copy(latest_.begin(), latest_.end(), input_.f32());
      std::fill(end, input_.f32() + input_.count(), 0.0f);
      net_->Forward();
    }
  }
  return {net_->blob(output_).f32() + place * units_, static_cast<size_t>(units_)};
}

}  // namespace crema
