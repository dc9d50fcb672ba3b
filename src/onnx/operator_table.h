// Which function reads which operator.
#ifndef CREMA_ONNX_OPERATOR_TABLE_H_
#define CREMA_ONNX_OPERATOR_TABLE_H_

#include <map>
#include <string>

#include "onnx/graph_reader.h"

namespace crema::onnx {

using OperatorFunction = void (*)(NodeReader& node);
using OperatorTable = std::map<std::string, OperatorFunction>;

// One for each file of operators.
OperatorTable ActivationOperators();
OperatorTable ArithmeticOperators();
OperatorTable DenseOperators();
OperatorTable NormalizationOperators();
OperatorTable PaddingOperators();
OperatorTable PoolingOperators();
OperatorTable RecurrentOperators();
OperatorTable StructureOperators();
OperatorTable ResizeOperators();
OperatorTable VisionOperators();

// Null where crema has no form of the operator.
OperatorFunction FindOperator(const std::string& op);
// Why there is none, and what the user can do about such a node.
std::string RemedyForOperator(const NodeProto& node);

}  // namespace crema::onnx

#endif  // CREMA_ONNX_OPERATOR_TABLE_H_
