#include "schema/text_unknown.h"

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

std::vector<std::string> FieldNames(const Descriptor* type) {
  std::vector<std::string> names;
  for (int i = 0; i < type->field_count(); ++i) names.push_back(std::string(type->field(i)->name()));
  return names;
}

// Blocks directly inside `type` that have a field of that name.
std::vector<std::string> BlocksWith(const Descriptor* type, const std::string& name) {
  std::vector<std::string> blocks;
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    const Descriptor* inner = field->message_type();
    if (inner->FindFieldByName(name) && inner != V0LayerParameter::descriptor()) {
      blocks.push_back(std::string(field->name()));
    }
  }
  return blocks;
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
                         const std::vector<const Descriptor*>& enclosing, bool is_block) {
  const Descriptor* type = enclosing.back();
  std::string text = words + " has no field \"" + name + "\"";

  const std::vector<std::string> inner = BlocksWith(type, name);
  const bool layer = type == LayerParameter::descriptor() || type == V1LayerParameter::descriptor();
  if (layer && !is_block && !inner.empty() && inner.size() <= 4) {
    return text + "; it belongs into " + Listed(inner, {.last = " or "});
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
  }
  if (layer && is_block) return text + kOfAFork;
  const std::vector<std::string> names = FieldNames(type);
  if (names.size() <= kMostListed) text += "; it has " + Listed(names, {.most = kMostListed, .last = " and "});
  return text;
}

}  // namespace crema
