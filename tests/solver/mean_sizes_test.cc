// debug_info: the sizes that a display shows.
#include <algorithm>
#include <cmath>

#include "solver/training_test.h"

namespace crema {
namespace {

using Sizes = SmallTraining;

std::vector<float> ValuesOf(const Parameter& parameter) {
  std::vector<float> values(static_cast<size_t>(parameter.shape.count()));
  parameter.CopyDataTo(values.data());
  return values;
}

double MeanSize(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += std::abs(value);
  return sum / static_cast<double>(values.size());
}

const MeanSizes::Row& RowOf(const std::vector<MeanSizes::Row>& rows, const std::string& layer) {
  return *std::find_if(rows.begin(), rows.end(), [&](const MeanSizes::Row& row) { return row.layer == layer; });
}

TEST_F(Sizes, AreThoseOfTopsAndParameters) {
  const auto solver = Make(SolverText("debug_info: true display: 2", 3));
  std::vector<std::vector<float>> before, after;
  for (const Parameter& parameter : std::as_const(solver->net()).parameters()) before.push_back(ValuesOf(parameter));
  solver->Step(1);
  for (const Parameter& parameter : std::as_const(solver->net()).parameters()) after.push_back(ValuesOf(parameter));
  solver->Step(2);
  ASSERT_EQ(recorder_.sizes.size(), 2u);
  EXPECT_EQ(recorder_.sizes[0].iteration, 0);
  EXPECT_EQ(recorder_.sizes[1].iteration, 2);

  const MeanSizes& first = recorder_.sizes[0];
  std::string tops;
  for (const MeanSizes::Row& row : first.tops) tops += row.layer + ":" + row.name + (row.gradient ? "+ " : " ");
  EXPECT_EQ(tops, "data:data data:label ip1:ip1+ relu1:ip1+ drop1:ip1+ ip2:ip2+ loss:loss+ ");
  EXPECT_FLOAT_EQ(RowOf(first.tops, "loss").value, recorder_.iterations[0].loss);
  EXPECT_FLOAT_EQ(*RowOf(first.tops, "loss").gradient, 1);
  // A ReLU lets through about half of what is around 0, as it was made and not as it was written over.
  EXPECT_LT(RowOf(first.tops, "relu1").value, 0.8f * RowOf(first.tops, "ip1").value);
  EXPECT_GT(RowOf(first.tops, "relu1").value, 0);

  const std::vector<float> rates = {0.05f, 0.1f, 0.05f, 0.05f};  // base_lr times lr_mult
  ASSERT_EQ(first.parameters.size(), rates.size());
  for (size_t i = 0; i < rates.size(); ++i) {
    SCOPED_TRACE(first.parameters[i].name);
    EXPECT_FLOAT_EQ(first.parameters[i].value, static_cast<float>(MeanSize(before[i])));
    std::vector<float> gradient;
    for (size_t k = 0; k < before[i].size(); ++k) gradient.push_back((before[i][k] - after[i][k]) / rates[i]);
    const double expected = MeanSize(gradient);
    EXPECT_GT(expected, 0);
    EXPECT_NEAR(*first.parameters[i].gradient, expected, 1e-4 * expected);
  }
  EXPECT_EQ(first.parameters[1].name, "ip1[1]");
}

TEST_F(Sizes, LeaveTheTrainingAsItIs) {
  const auto train = [&](const std::string& more) {
    const auto solver = Make(SolverText("momentum: 0.9 display: 1 test_iter: 3 test_interval: 2 " + more, 6));
    solver->Train();
    std::vector<float> all;
    for (const Parameter& parameter : std::as_const(solver->net()).parameters()) {
      const std::vector<float> values = ValuesOf(parameter);
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  };
  const std::vector<float> plain = train(""), shown = train("debug_info: true");
  EXPECT_EQ(recorder_.sizes.size(), 6u);
  ASSERT_EQ(plain.size(), shown.size());
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(plain[i], shown[i], 1e-6) << i;
}

TEST_F(Sizes, AreAlsoAskedForByTheNet) {
  folder_.Write("net.prototxt", std::string("debug_info: true\n") + kSmallNet);
  Train("display: 1", 2);
  EXPECT_EQ(recorder_.sizes.size(), 2u);
  EXPECT_EQ(recorder_.notices, "");
  Train("", 2);
  EXPECT_TRUE(recorder_.sizes.empty());
  EXPECT_NE(recorder_.notices.find("display is not set"), std::string::npos) << recorder_.notices;
}

TEST_F(Sizes, AreThoseOfTheMeanOfAllPasses) {
  std::string net = kSmallNet;
  net.replace(net.find("batch_size: 7"), 13, "batch_size: 60");  // the same records in every pass
  net.replace(net.find("dropout_ratio: 0.4"), 18, "dropout_ratio: 0.0");
  folder_.Write("net.prototxt", net);
  Train("debug_info: true display: 1", 1);
  const MeanSizes once = recorder_.sizes.at(0);
  Train("debug_info: true display: 1 iter_size: 3", 1);
  for (size_t i = 0; i < once.parameters.size(); ++i) {
    const float gradient = once.parameters[i].gradient.value();
    EXPECT_NEAR(recorder_.sizes.at(0).parameters[i].gradient.value(), gradient, 1e-4f * gradient);
  }
}

TEST_F(Sizes, AreNotShownWhereSeveralTrain) {
  Train("debug_info: true display: 1 distributed { mode: HOGWILD local_workers: 2 }", 2);
  EXPECT_TRUE(recorder_.sizes.empty());
  EXPECT_NE(recorder_.notices.find("debug_info has no effect where several"), std::string::npos) << recorder_.notices;
}

}  // namespace
}  // namespace crema
