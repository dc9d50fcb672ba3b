#include "ops/activations/prelu.h"

#include <gtest/gtest.h>
#include <omp.h>

#include "comparison.h"

namespace crema {
namespace {

struct Case {
  const char* name;
  ChannelGrid grid;
};

void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

const Case kCases[] = {
    {"planes", {3, 5, 1300}},
    {"small_planes", {40, 20, 9}},
    {"one_channel", {1, 1, 50021}},
    {"vectors", {67, 700, 1}},
    {"short_vectors", {9001, 10, 1}},
    {"channels_last", {2, 7, 3001, Layout::kChannelsLast}},
    {"many_channels_last", {2, 1025, 40, Layout::kChannelsLast}},
    {"bfloat16", {2, 48, 500, Layout::kChannelsLast, DType::kBF16}},
    {"bfloat16_one_channel", {1, 1, 50021, Layout::kPlain, DType::kBF16}},
};

struct Outcome {
  std::vector<float> y, dx, slope_gradient;
  bool operator==(const Outcome&) const = default;
};

class Prelu : public testing::TestWithParam<Case> {
 protected:
  Prelu() : grid_(GetParam().grid), n_(grid_.count()) {
    x_ = Held(RandomValues(n_, 1));
    dy_ = Held(RandomValues(n_, 2));
    slope_ = RandomValues(grid_.channels, 3);
  }

  // As the grid's type holds them.
  std::vector<float> Held(const std::vector<float>& values) const {
    return grid_.dtype == DType::kBF16 ? Widened(Rounded(values)) : values;
  }
  int64_t Channel(int64_t i) const {
    return grid_.layout == Layout::kChannelsLast ? i % grid_.channels : i / grid_.pixels % grid_.channels;
  }

  Outcome Expected() const {
    Outcome outcome{x_, dy_, {}};
    std::vector<double> sums(grid_.channels, 0);
    for (int64_t i = 0; i < n_; ++i) {
      if (x_[i] > 0) continue;
      outcome.y[i] *= slope_[Channel(i)];
      outcome.dx[i] *= slope_[Channel(i)];
      sums[Channel(i)] += static_cast<double>(dy_[i]) * x_[i];
    }
    outcome.slope_gradient.assign(sums.begin(), sums.end());
    return outcome;
  }

  template <typename Number>
  Outcome RunAs(bool in_place, bool input, bool slopes) const {
    std::vector<Number> x(x_.begin(), x_.end()), dy(dy_.begin(), dy_.end()), y(n_), dx(n_);
    std::vector<float> slope_gradient = Poison(grid_.channels);
    PoisonedWorkspace workspace(PreluWorkspace(grid_));
    std::vector<Number>& to = in_place ? dy : dx;
    PreluBackward(grid_, x.data(), slope_.data(), dy.data(), input ? to.data() : nullptr,
                  slopes ? slope_gradient.data() : nullptr, workspace.data());
    std::vector<Number>& top = in_place ? x : y;
    PreluForward(grid_, x.data(), slope_.data(), top.data(), workspace.data());
    return {{top.begin(), top.end()}, {to.begin(), to.end()}, slope_gradient};
  }
  Outcome Run(bool in_place = false, bool input = true, bool slopes = true) const {
    return grid_.dtype == DType::kBF16 ? RunAs<BFloat16>(in_place, input, slopes)
                                       : RunAs<float>(in_place, input, slopes);
  }

  const ChannelGrid grid_;
  const int64_t n_;
  std::vector<float> x_, dy_, slope_;
};

TEST_P(Prelu, EqualsPlainLoops) {
  const Outcome expected = Expected(), actual = Run();
  if (grid_.dtype == DType::kBF16) {
    ExpectRounded(expected.y, actual.y, "y");
    ExpectRounded(expected.dx, actual.dx, "dx");
  } else {
    EXPECT_EQ(expected.y, actual.y);
    EXPECT_EQ(expected.dx, actual.dx);
  }
  ExpectClose(expected.slope_gradient, actual.slope_gradient, 1e-5f, "slope gradient");
}

TEST_P(Prelu, WorksInPlaceAndForOneGradientAlone) {
  const Outcome both = Run();
  EXPECT_EQ(Run(true), both);
  EXPECT_EQ(Run(false, true, false).dx, both.dx);
  EXPECT_EQ(Run(false, false, true).slope_gradient, both.slope_gradient);
}

TEST_P(Prelu, DoesNotDependOnThreads) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(1);
  const Outcome one = Run();
  omp_set_num_threads(3);
  const Outcome three = Run();
  omp_set_num_threads(before);
  EXPECT_EQ(one, three);
}

INSTANTIATE_TEST_SUITE_P(Grids, Prelu, testing::ValuesIn(kCases), [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace crema
