#include <gtest/gtest.h>

#include "corpus_files.h"
#include "crema/solver.h"

namespace crema {
namespace {

constexpr char kGood[] = R"(net: "net.prototxt"
base_lr: 0.01
lr_policy: "fixed"
max_iter: 10
momentum: 0.9
)";

std::vector<Diagnostic> Check(const std::string& text) { return CheckSolver(ParseSolver(text, "solver.prototxt")); }

// All diagnostics, one a line.
std::string Messages(const std::string& text) {
  std::string all;
  for (const Diagnostic& d : Check(text)) all += d.ToString() + "\n";
  return all;
}

std::string With(const std::string& more) { return kGood + more; }

TEST(CheckSolver, AcceptsAnOrdinarySolver) {
  EXPECT_EQ(Messages(kGood), "");
  EXPECT_EQ(Messages(With("test_iter: 100\ntest_interval: 500\nclip_gradients: -1\nweight_decay: 0.0005\n"
                          "iter_size: 2\naverage_loss: 20\nsnapshot: 100\ndisplay: 10\nsolver_mode: GPU\n"
                          "device_id: [0, 1, 2, 3]\nrichness: 200\nengine: \"MKL2017\"\n")),
            "");
  EXPECT_EQ(Messages(With("test_iter: 0\ntest_interval: 5\n")), "");
}

TEST(CheckSolver, ReportsAllMistakesAtOnceWithPlaces) {
  const std::string all = Messages(
      "net: \"a.prototxt\"\n"
      "train_net: \"b.prototxt\"\n"
      "base_lr: -1\n"
      "lr_policy: \"multistep\"\n"
      "gamma: 0.1\n"
      "stepvalue: 20\n"
      "stepvalue: 10\n"
      "momentum: 1.5\n"
      "iter_size: 0\n"
      "weight_decay: -2\n"
      "regularization_type: \"L3\"\n");
  for (const char* part : {"given twice", "base_lr is -1", "max_iter is missing", "stepvalue 10 does not exceed",
                           "momentum is 1.5", "iter_size is 0", "weight_decay is -2", "regularization_type \"L3\""}) {
    EXPECT_NE(all.find(part), std::string::npos) << part << " is not in\n" << all;
  }
  EXPECT_NE(all.find("solver.prototxt:3:"), std::string::npos) << all;
  EXPECT_NE(all.find("solver.prototxt:8:"), std::string::npos) << all;
}

struct Case {
  const char* name;
  std::string text;
  const char* expected;
};

void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

class BadSolver : public testing::TestWithParam<Case> {};

TEST_P(BadSolver, IsRefusedWithTheReason) {
  const std::vector<Diagnostic> found = Check(GetParam().text);
  int errors = 0;
  std::string all;
  for (const Diagnostic& d : found) {
    errors += d.severity == Diagnostic::Severity::kError;
    all += d.ToString() + "\n";
  }
  EXPECT_EQ(errors, 1) << all;
  EXPECT_NE(all.find(GetParam().expected), std::string::npos) << all;
}

INSTANTIATE_TEST_SUITE_P(
    All, BadSolver,
    testing::Values(
        Case{"NoNet", "base_lr: 1 lr_policy: \"fixed\" max_iter: 1", "no train net"},
        Case{"NoRate", "net: \"n\" lr_policy: \"fixed\" max_iter: 1", "base_lr is missing"},
        Case{"NoPolicy", "net: \"n\" base_lr: 1 max_iter: 1", "lr_policy is missing; it may be fixed, step"},
        Case{"Misspelt", "net: \"n\" base_lr: 1 max_iter: 1 lr_policy: \"multistp\"", "did you mean \"multistep\"?"},
        Case{"NoMaxIter", "net: \"n\" base_lr: 1 lr_policy: \"fixed\"", "max_iter is missing"},
        Case{"StepWithoutGamma", "net: \"n\" base_lr: 1 max_iter: 1 lr_policy: \"step\" stepsize: 3", "needs gamma"},
        Case{"StepOfZero", "net: \"n\" base_lr: 1 max_iter: 1 lr_policy: \"step\" gamma: 1 stepsize: 0",
             "stepsize is 0"},
        Case{"PolyWithoutPower", "net: \"n\" base_lr: 1 max_iter: 1 lr_policy: \"poly\"", "needs power"},
        Case{"InvWithoutPower", "net: \"n\" base_lr: 1 max_iter: 1 lr_policy: \"inv\" gamma: 1", "needs power"},
        Case{"NoStepvalue", "net: \"n\" base_lr: 1 max_iter: 1 lr_policy: \"multistep\" gamma: 1", "needs stepvalue"},
        Case{"EqualStepvalues", "net: \"n\" base_lr: 1 max_iter: 1 lr_policy: \"multistep\" gamma: 1 stepvalue: [4, 4]",
             "stepvalue 4 does not exceed"},
        Case{"PlateauWithoutWindows", "net: \"n\" base_lr: 1 max_iter: 1 lr_policy: \"plateau\" gamma: 1",
             "needs plateau_winsize"},
        Case{"WindowOfZero",
             "net: \"n\" base_lr: 1 max_iter: 1 lr_policy: \"plateau\" gamma: 1 plateau_winsize: [5, 0]",
             "plateau_winsize is 0 but must be at least 1"},
        Case{"StagesThatDiffer",
             "net: \"n\" max_iter: 9 lr_policy: \"multifixed\" stagelr: [1, 2] stageiter: [1, 2, 3]",
             "2 stagelr but 3 stageiter"},
        Case{"StagesThatFall", "net: \"n\" max_iter: 9 lr_policy: \"multifixed\" stagelr: [1, 2] stageiter: [3, 3]",
             "stageiter 3 does not exceed the one before it, 3"},
        Case{"NegativeStage", "net: \"n\" max_iter: 9 lr_policy: \"multifixed\" stagelr: -1 stageiter: 3",
             "stagelr is -1"},
        Case{"NoStageIter", "net: \"n\" max_iter: 9 lr_policy: \"multifixed\" stagelr: 1", "needs stageiter"},
        Case{"WarmUpToNothing",
             "net: \"n\" max_iter: 9 lr_policy: \"multifixed\" stagelr: 1 stageiter: 3 warmup_iter: 2",
             "base_lr is missing"},
        Case{"TwoWarmUps", With("warmup_iter: 3 rampup_interval: 3"), "keep one of them"},
        Case{"NegativeWarmUp", With("warmup_iter: -1"), "warmup_iter is -1"},
        Case{"WarmUpByNoPower", With("warmup_iter: 3 warmup_power: 0"), "warmup_power is 0; it must be above 0"},
        Case{"NegativeRampUp", With("rampup_interval: -1"), "rampup_interval is -1"},
        Case{"NegativeWarmUpRate", With("warmup_iter: 3 warmup_start_lr: -1"), "warmup_start_lr is -1"},
        Case{"NegativeRampUpRate", With("rampup_interval: 3 rampup_lr: -1"), "rampup_lr is -1"},
        Case{"NegativeFloor", With("min_lr: -1"), "min_lr is -1"},
        Case{"FloorAboveTheStart", With("min_lr: 0.5"), "min_lr is 0.5, above base_lr, 0.01"},
        Case{"LarcOfAdam", With("type: \"Adam\" larc: true"), "larc is for solver types \"SGD\" and \"Nesterov\""},
        Case{"LarcPolicy", With("larc: true larc_policy: \"clipp\""), "did you mean \"clip\"?"},
        Case{"LarcEta", With("larc: true larc_eta: 0"), "larc_eta is 0 but must be above 0"},
        Case{"MomentumPolicy", With("momentum_policy: \"pole\""), "did you mean \"poly\"?"},
        Case{"MomentumPolicyOfAdam", With("type: \"Adam\" momentum_policy: \"poly\""),
             "momentum_policy is for solver types \"SGD\" and \"Nesterov\""},
        Case{"MaxMomentum", With("momentum_policy: \"poly\" max_momentum: 1"), "max_momentum is 1 but must"},
        Case{"AdamWByL1", With("type: \"AdamW\" regularization_type: \"L1\""), "use type: \"Adam\" for L1"},
        Case{"NegativeMomentum", With("").replace(With("").find("0.9"), 3, "-0.1"), "momentum is -0.1"},
        Case{"UnknownType", With("type: \"Adm\""), "did you mean \"Adam\"?"},
        Case{"MomentumOfAdaGrad", With("type: \"AdaGrad\""), "does not use it"},
        Case{"RmsDecay", "net: \"n\" base_lr: 1 lr_policy: \"fixed\" max_iter: 1 type: \"RMSProp\" rms_decay: 1",
             "rms_decay is 1 but must be at least 0 and below 1"},
        Case{"Momentum2", With("type: \"Adam\" momentum2: 1"), "momentum2 is 1"},
        Case{"DeltaOfZero", With("type: \"Adam\" delta: 0"), "delta is 0"},
        Case{"TestIterWithoutInterval", With("test_iter: 5"), "test_interval is missing"},
        Case{"NegativeTestIter", With("test_iter: -1 test_interval: 5"), "test_iter is -1"},
        Case{"TestIterWithoutTestNet",
             "train_net: \"n\" base_lr: 1 lr_policy: \"fixed\" max_iter: 1 test_iter: 1 test_interval: 1",
             "0 test nets but 1 test_iter"},
        Case{"MoreTestNets", With("test_net: \"a\" test_net: \"b\" test_iter: 1 test_interval: 1"),
             "2 test nets but 1 test_iter"},
        Case{"TestStates", With("test_iter: 1 test_interval: 1 test_state {} test_state {}"),
             "2 test_state for 1 test nets; each test_iter makes one of `net`: write test_iter: 1 test_iter: 1"},
        Case{"FewTestStates", With("test_iter: 1 test_iter: 2 test_interval: 1 test_state {}"),
             "1 test_state for 2 test nets; add test_state { }"},
        Case{"UnknownEvalType", With("eval_type: \"detect\""),
             "unknown eval_type \"detect\"; it may be classification, detection"},
        Case{"UnknownApVersion", With("eval_type: \"detection\" ap_version: \"12point\""),
             "unknown ap_version \"12point\"; did you mean \"11point\"?; it may be 11point, MaxIntegral, Integral"},
        Case{"NegativeDisplay", With("display: -1"), "display is -1"},
        Case{"NegativeSnapshot", With("snapshot: -1"), "snapshot is -1"},
        Case{"NegativeTestInterval", With("test_interval: -1"), "test_interval is -1"},
        Case{"MemoryLimit", With("memory_limit: \"much\""), "memory_limit is \"much\"; give a size such as"},
        Case{"ClipAtZero", With("clip_gradients: 0"), "clip_gradients is 0"},
        Case{"NegativeLossScale", With("precision: FP16 loss_scale: -1"), "0 finds it while training"},
        Case{"AverageLoss", With("average_loss: 0"), "average_loss is 0"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(CheckSolver, WarnsOfFieldsThatAreNotRead) {
  for (const auto& [text, expected] : std::vector<std::pair<std::string, std::string>>{
           {With("gamma: 0.1"), "gamma is not read by lr_policy \"fixed\""},
           {With("momentum2: 0.9"), "momentum2 is not read by solver type \"SGD\""},
           {With("test_interval: 5"), "nothing is tested"},
           {With("larc_eta: 0.1"), "larc_eta has no effect without larc: true"},
           {With("max_momentum: 0.9"), "max_momentum has no effect without momentum_policy"},
           {With("momentum_power: 2"), "momentum_power has no effect without momentum_policy: \"poly\""},
           {With("momentum_policy: \"opt\""), "momentum has no effect with momentum_policy: \"opt\""},
           {With("solver_data_type: FLOAT16"), "solver_data_type: FLOAT16 has no effect"},
           {With("stagelr: 1"), "stagelr is not read by lr_policy \"fixed\""},
           {With("plateau_winsize: 1"), "plateau_winsize is not read by lr_policy \"fixed\""},
           {With("warmup_start_lr: 0.001"), "warmup_start_lr has no effect without warmup_iter"},
           {With("warmup_power: 2"), "warmup_power has no effect without warmup_iter"},
           {With("rampup_lr: 0.001"), "rampup_lr has no effect without rampup_interval"},
           {With("warmup_iter: 10"), "lr_policy is never used"}}) {
    const std::vector<Diagnostic> found = Check(text);
    ASSERT_EQ(found.size(), 1u) << text;
    EXPECT_EQ(found[0].severity, Diagnostic::Severity::kWarning);
    EXPECT_NE(found[0].message.find(expected), std::string::npos) << found[0].message;
  }
}

// Caffe's own examples pass; known exceptions are counted, so that a stricter rule shows.
TEST(CheckSolver, AcceptsRealSolvers) {
  const std::vector<std::string> paths = CorpusFiles("solvers");
  if (paths.empty()) GTEST_SKIP() << "no corpus at " << CorpusFolder();
  int checked = 0;
  std::string refused;
  for (const std::string& path : paths) {
    SolverFile file;
    try {
      file = ReadSolverFile(path);
    } catch (const UserError&) {
      continue;  // fields of forks; the schema's own tests count these
    }
    ++checked;
    for (const Diagnostic& d : CheckSolver(file)) {
      if (d.severity != Diagnostic::Severity::kError) continue;
      // Fast R-CNN passes max_iter from a script.
      if (d.message.find("max_iter is missing") != std::string::npos) continue;
      refused += d.ToString() + "\n";
    }
  }
  EXPECT_GT(checked, 100);
  EXPECT_EQ(refused, "");
}

}  // namespace
}  // namespace crema
