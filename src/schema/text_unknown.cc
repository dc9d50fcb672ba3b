#include "schema/text_unknown.h"

#include <algorithm>
#include <utility>

#include "base/listed.h"
#include "base/suggest.h"
#include "crema/net.pb.h"
#include "crema/solver.pb.h"
#include "schema/types_of_forks.h"

namespace crema {

namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

constexpr size_t kMostListed = 12;

bool IsLayer(const Descriptor* type) {
  return type == LayerParameter::descriptor() || type == V1LayerParameter::descriptor();
}

std::vector<std::string> FieldNames(const Descriptor* type) {
  std::vector<std::string> names;
  for (int i = 0; i < type->field_count(); ++i) names.push_back(std::string(type->field(i)->name()));
  return names;
}

// Blocks directly inside `type` that have a field of that name, itself a block or not.
std::vector<std::string> BlocksWith(const Descriptor* type, const std::string& name, bool is_block) {
  std::vector<std::string> blocks;
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    const Descriptor* inner = field->message_type();
    const FieldDescriptor* found = inner->FindFieldByName(name);
    if (!found || inner == V0LayerParameter::descriptor()) continue;
    if ((found->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) == is_block) {
      blocks.push_back(std::string(field->name()));
    }
  }
  return blocks;
}

// The one of `blocks` that layers of that type read; empty where none is known to be.
std::string BlockOfType(const std::vector<std::string>& blocks, const std::string& layer_type) {
  constexpr std::pair<std::string_view, std::string_view> kOfOtherName[] = {
      {"GRU", "recurrent_param"},
      {"LSTM", "recurrent_param"},
      {"RNN", "recurrent_param"},
      {"Deconvolution", "convolution_param"},
      {"DECONVOLUTION", "convolution_param"},
      {"Im2col", "convolution_param"},
      {"IM2COL", "convolution_param"},
      {"SoftmaxWithLoss", "loss_param"},
      {"SOFTMAX_LOSS", "loss_param"},
  };
  const auto has = [&](std::string_view block) {
    return std::find(blocks.begin(), blocks.end(), block) != blocks.end();
  };
  for (const auto& [type, block] : kOfOtherName) {
    if (type == layer_type && has(block)) return std::string(block);
  }
  const std::string plain = PlainName(layer_type);
  if (plain.ends_with("data") && has("transform_param")) return "transform_param";
  for (const std::string& block : blocks) {
    if (PlainName(block) == plain) return block;
  }
  return "";
}

// Where a field that some blocks of a layer have was written in the layer itself.
std::string BelongsInto(const std::vector<std::string>& blocks, const std::string& layer_type) {
  const std::string own = BlockOfType(blocks, layer_type);
  if (!own.empty()) return "; it belongs into " + own;
  if (blocks.size() <= 4) return "; it belongs into " + Listed(blocks, {.last = " or "});
  return "; it belongs into a block that has it, such as " + Listed(blocks, {.most = 3});
}

// Where a field that the innermost block does not have belongs into another one of the same layer.
std::string BelongsBeside(const std::string& name, const std::vector<const Descriptor*>& enclosing, bool is_block,
                          const std::string& layer_type) {
  const Descriptor* layer = nullptr;
  for (size_t i = 0; i + 1 < enclosing.size(); ++i) {
    if (enclosing[i]->FindFieldByName(name)) return "";
    if (IsLayer(enclosing[i])) layer = enclosing[i];
  }
  if (!layer || enclosing.back() == V0LayerParameter::descriptor()) return "";
  const std::vector<std::string> blocks = BlocksWith(layer, name, is_block);
  std::string block = BlockOfType(blocks, layer_type);
  if (block.empty() && blocks == std::vector<std::string>{"param"}) block = "param";
  if (!block.empty()) return "; it belongs into " + block + ", another block of the layer";
  const bool of_data = !blocks.empty() && std::all_of(blocks.begin(), blocks.end(), [](const std::string& with) {
    return with == "transform_param" || with.ends_with("data_param");
  });
  return of_data ? "; it belongs into transform_param of the layer that reads data" : "";
}

// Names of blocks share their ending, so that only what stands before it tells which one was meant.
std::string SimilarName(const std::string& name, const Descriptor* type) {
  constexpr size_t kSuffix = sizeof("_param") - 1;
  const auto is_block = [](const std::string& word) {
    return word.size() > kSuffix && word.compare(word.size() - kSuffix, kSuffix, "_param") == 0;
  };
  std::vector<std::string> candidates = FieldNames(type);
  if (!is_block(name)) return DidYouMean(name, candidates);
  std::vector<std::string> stems;
  for (const std::string& candidate : candidates) {
    if (is_block(candidate)) stems.push_back(candidate.substr(0, candidate.size() - kSuffix));
  }
  std::string text = DidYouMean(name.substr(0, name.size() - kSuffix), stems);
  if (!text.empty()) text.insert(text.rfind('"'), "_param");
  return text;
}

}  // namespace

std::string BlockWords(const Descriptor* root, const std::vector<std::string>& path) {
  if (path.empty()) {
    if (root == NetParameter::descriptor()) return "a net";
    if (root == SolverParameter::descriptor()) return "a solver";
    return "this file";
  }
  if (path.back() == "layers") return "a layer (old \"layers\" syntax)";
  if (path.back() == "layer") {
    return path.size() > 1 && path[path.size() - 2] == "layers" ? "a layer (old V0 syntax)" : "a layer";
  }
  return "\"" + path.back() + "\"";
}

bool IsOtherFile(const std::string& name, const Descriptor* root) {
  if (root == NetParameter::descriptor()) return SolverParameter::descriptor()->FindFieldByName(name) != nullptr;
  if (root == SolverParameter::descriptor()) return NetParameter::descriptor()->FindFieldByName(name) != nullptr;
  return false;
}

std::string UnknownField(const std::string& name, const std::string& words,
                         const std::vector<const Descriptor*>& enclosing, bool is_block,
                         const std::string& layer_type) {
  const Descriptor* type = enclosing.back();
  std::string text = words + " has no field \"" + name + "\"";

  const bool layer = IsLayer(type);
  if (layer) {
    const std::vector<std::string> inner = BlocksWith(type, name, is_block);
    if (!inner.empty()) return text + BelongsInto(inner, layer_type);
  }
  if (type == LayerParameter::descriptor() && (name == "blobs_lr" || name == "weight_decay")) {
    return text +
           ", the old \"layers\" has; write param { lr_mult: ... decay_mult: ... } once for each of its blobs: the " +
           "weights, then the bias";
  }
  if (const TypeOfFork* of_fork = layer && is_block ? FindTypeOfFork(name) : nullptr) {
    return text + "; " + AdviceOn(*of_fork);
  }
  if (const std::string advice = AdviceOnField(name); !advice.empty()) return text + "; " + advice;
  if (const std::string advice = BelongsBeside(name, enclosing, is_block, layer_type); !advice.empty()) {
    return text + advice;
  }
  if (const std::string advice = WordOfOthers(name, FieldNames(type)); !advice.empty()) return text + advice;
  const std::string similar = SimilarName(name, type);
  if (!similar.empty() && !(enclosing.size() == 1 && IsOtherFile(name, type))) return text + similar;
  for (size_t i = enclosing.size() - 1; i-- > 1;) {
    if (enclosing[i]->FindFieldByName(name)) return text + ", the block around it has; is a \"}\" missing before it?";
  }
  if (enclosing.size() == 1) {
    if (IsOtherFile(name, type)) {
      const bool net = type == NetParameter::descriptor();
      return text + (net ? ", a solver has; was the solver's file given in place of the net's?"
                         : ", a net has; was the net's file given in place of the solver's?");
    }
    if (type == NetParameter::descriptor() && LayerParameter::descriptor()->FindFieldByName(name)) {
      return text + ", a layer has; write it inside layer { ... }";
    }
    const std::vector<std::string> inner = BlocksWith(LayerParameter::descriptor(), name, is_block);
    if (type == NetParameter::descriptor() && !inner.empty()) {
      return text + ", blocks of layers have, such as " + Listed(inner, {.most = 3}) +
             "; is there a \"}\" too many before it?";
    }
  }
  if (layer && is_block) return text + kOfAFork;
  const std::vector<std::string> names = FieldNames(type);
  if (names.size() <= kMostListed) text += "; it has " + Listed(names, {.most = kMostListed, .last = " and "});
  return text;
}

}  // namespace crema
