// Compares small models, imported, with what ONNX Runtime makes of them.
#ifndef CREMA_TESTS_ONNX_OPERATOR_COMPARISON_H_
#define CREMA_TESTS_ONNX_OPERATOR_COMPARISON_H_

#include <gtest/gtest.h>

#include <functional>
#include <iostream>
#include <string>
#include <utility>

#include "onnx/made_model.h"
#include "onnx/runtime_comparison.h"
#include "report/probe.h"

namespace crema::testing {

class OperatorComparison : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string why_not = RuntimeComparison::Unavailable();
    if (!why_not.empty()) GTEST_SKIP() << why_not;
  }

  void Compare(const std::string& name, const std::function<void(MadeModel&)>& make, MadeModel model = MadeModel(),
               const BlobShapes& shapes = {}) {
    SCOPED_TRACE(name);
    make(model);
    try {
      comparison_.AddImported(
          name, std::move(model), [](Net& net) { FillInputs(net); }, shapes);
    } catch (const UserError& error) {
      ADD_FAILURE() << error.what();
    }
  }
  // The batch of x is open: the model is imported for one item, and what that gives is run with three, too.
  void CompareBatches(const std::string& name, const std::function<void(MadeModel&)>& make, MadeModel::Dims rest) {
    rest.insert(rest.begin(), onnx::kOpen);
    Compare(name, make, MadeModel(rest));
    Shape three(rest);
    three.set(0, 3);
    Compare(name + ", three items", make, MadeModel(rest), {{"x", three}});
  }
  // One node that reads x.
  void Single(const std::string& op, const MadeModel::Attributes& attributes = {}, MadeModel model = MadeModel()) {
    Compare(
        op, [&](MadeModel& m) { m.Node(op, {"x"}, {"y"}, attributes); }, std::move(model));
  }
  // Positive numbers go in.
  void OfPositive(const std::string& op) {
    Compare(op, [&](MadeModel& m) {
      m.Node("Abs", {"x"}, {"a"});
      m.Node("Add", {"a", m.Floats("shift", {}, {0.5F})}, {"b"});
      m.Node(op, {"b"});
    });
  }
  void TearDown() override {
    comparison_.set_tolerance(1e-5);
    for (const std::string& problem : comparison_.Problems()) ADD_FAILURE() << problem;
    std::cout << comparison_.nets() << " models\n";
  }

 private:
  RuntimeComparison comparison_;
};

}  // namespace crema::testing

#endif  // CREMA_TESTS_ONNX_OPERATOR_COMPARISON_H_
