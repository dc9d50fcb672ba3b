// A mistake in a filler is found by Setup, of whatever layer type.
#include <google/protobuf/message.h>
#include <gtest/gtest.h>

#include "crema/error.h"
#include "graph/filler.h"
#include "layers/case_files.h"
#include "layers/layer_harness.h"

namespace crema::testing {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Gives every filler of the layer's blocks, also those that are not set, a type that there is not; how many.
int SpoilFillers(Message* message, bool top) {
  const auto* reflection = message->GetReflection();
  int spoilt = 0;
  for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message->GetDescriptor()->field(i);
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || field->is_repeated()) continue;
    if (field->message_type() == FillerParameter::descriptor()) {
      static_cast<FillerParameter*>(reflection->MutableMessage(message, field))->set_type("xavie");
      ++spoilt;
    } else if (top && reflection->HasField(*message, field)) {
      spoilt += SpoilFillers(reflection->MutableMessage(message, field), false);
    }
  }
  return spoilt;
}

TEST(Fillers, AreCheckedByEveryLayerType) {
  int layers = 0, refused = 0;
  for (const CaseFile& file : ReadCaseFiles()) {
    for (LayerCase test : file.cases) {
      if (test.has_expect_error() || SpoilFillers(test.mutable_layer(), true) == 0) continue;
      SCOPED_TRACE(file.type + "." + test.name());
      ++layers;
      try {
        const LayerInstance layer(test, nullptr, {});
        for (const ParamRequest& request : layer.setup().params()) {
          EXPECT_EQ(CheckFiller(request.filler, request.shape), "");
        }
      } catch (const UserError& error) {
        // BN takes the fillers of one fork only.
        refused += std::string(error.what()).find("xavie") != std::string::npos;
      }
    }
  }
  EXPECT_GT(layers, 50);
  EXPECT_GT(refused, 50);
}

}  // namespace
}  // namespace crema::testing
