#include "onnx/operator_table.h"

#include <set>

namespace crema::onnx {

namespace {

OperatorTable AllOperators() {
  OperatorTable all;
  for (OperatorTable table :
       {ActivationOperators(), ArithmeticOperators(), DenseOperators(), NormalizationOperators(), PaddingOperators(),
        PoolingOperators(), RecurrentOperators(), ResizeOperators(), StructureOperators(), VisionOperators()}) {
    all.merge(table);
  }
  return all;
}

bool IsQuantized(const std::string& op) {
  return op.find("Quantize") != std::string::npos || op.starts_with("QLinear") || op.ends_with("Integer");
}

}  // namespace

OperatorFunction FindOperator(const std::string& op) {
  static const OperatorTable operators = AllOperators();
  const auto at = operators.find(op);
  return at == operators.end() ? nullptr : at->second;
}

std::string RemedyForOperator(const NodeProto& node) {
  static const std::set<std::string> control = {"If", "Loop", "Scan", "SequenceMap"};
  static const std::set<std::string> boxes = {"NonMaxSuppression", "TopK", "NonZero", "RoiAlign"};
  const std::string& op = node.op_type();
  if (!node.domain().empty() && node.domain() != "ai.onnx") {
    return "is of the domain \"" + node.domain() +
           "\", of which crema knows nothing; export the model with the standard's operators";
  }
  if (IsQuantized(op)) return "the model is quantised; import the one in float that it was made of";
  if (control.count(op) > 0)
    return "crema's nets have no branches and loops; export the model so that they are unrolled";
  if (op == "RNN")
    return "crema's RNN has a layer of weights behind each step, which this one has not; a GRU or LSTM in its place is "
           "read";
  if (op.starts_with("Random") || op == "Bernoulli") {
    return "makes random numbers, as a model does that is trained; call model.eval() and export again, with "
           "TrainingMode.PRESERVE where normalisation is to be kept";
  }
  if (boxes.count(op) > 0)
    return "crema has no form of it; export the model without the choice of its boxes, which is done behind the net";
  return "crema has no form of it; leave out what it belongs to, or replace it in the model, and export again";
}

}  // namespace crema::onnx
