#include "distributed/protocol/welcome_terms.h"

#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <vector>

#include "base/listed.h"
#include "crema/solver.pb.h"

namespace crema {

namespace {

using google::protobuf::Message;
using google::protobuf::util::MessageDifferencer;

using Words = std::vector<std::string>;

void AddFields(const Message& before, const Message& now, const std::string& path, Words* changed) {
  const auto* const type = now.GetDescriptor();
  for (int i = 0; i < type->field_count(); ++i) {
    const auto* const field = type->field(i);
    if (MessageDifferencer().CompareWithFields(before, now, {field}, {field})) continue;
    const std::string name(field->name());
    if (name == "train_net_param") {
      changed->push_back("net");
    } else if (name == "test_net_param") {
      changed->push_back("test net");
    } else if (name == "distributed") {
      AddFields(before.GetReflection()->GetMessage(before, field), now.GetReflection()->GetMessage(now, field),
                name + ".", changed);
    } else {
      changed->push_back(path + name);
    }
  }
}

void AddSolver(const Welcome& before, const Welcome& now, Words* changed) {
  if (before.solver() == now.solver()) return;
  SolverParameter there, here;
  const bool read = there.ParseFromString(now.solver()) && here.ParseFromString(before.solver());
  if (read && MessageDifferencer::Equals(here, there)) return;
  const size_t known = changed->size();
  if (read) AddFields(here, there, "", changed);
  if (changed->size() == known) changed->push_back("solver");
}

void AddData(const google::protobuf::RepeatedPtrField<Welcome::Data>& before,
             const google::protobuf::RepeatedPtrField<Welcome::Data>& now, const std::string& what, Words* changed) {
  for (const Welcome::Data& there : now) {
    const auto here = std::find_if(before.begin(), before.end(),
                                   [&](const Welcome::Data& one) { return one.layer() == there.layer(); });
    const bool same = here != before.end() && here->fingerprint() == there.fingerprint() &&
                      (!here->has_files() || !there.has_files() || here->files() == there.files());
    if (!same) changed->push_back(what + " of layer \"" + there.layer() + "\"");
  }
}

}  // namespace

std::string ChangedTerms(const Welcome& before, const Welcome& now) {
  Words changed;
  AddSolver(before, now, &changed);
  if (before.seed() != now.seed()) changed.push_back("seed");
  AddData(before.data(), now.data(), "data", &changed);
  AddData(before.test_data(), now.test_data(), "test data", &changed);
  return Listed(changed, {.most = kAllNames});
}

}  // namespace crema
