#include "distributed/protocol/welcome_terms.h"

#include <gtest/gtest.h>

#include <functional>

#include "crema/solver.pb.h"
#include "schema/wire_bytes.h"

namespace crema {
namespace {

class WelcomeTerms : public testing::Test {
 protected:
  WelcomeTerms() {
    solver_.set_base_lr(0.1f);
    solver_.mutable_distributed()->set_local_steps(4);
    solver_.mutable_train_net_param()->add_layer()->set_name("data");
    first_.set_seed(7);
    for (auto* data : {first_.add_data(), first_.add_test_data()}) {
      data->set_layer("data");
      data->set_fingerprint(1);
      data->set_files(2);
    }
    first_.set_solver(WireBytes(solver_));
  }

  std::string Changed(const std::function<void(SolverParameter&)>& change) const {
    SolverParameter solver = solver_;
    change(solver);
    Welcome again = first_;
    again.set_solver(WireBytes(solver));
    return ChangedTerms(first_, again);
  }

  SolverParameter solver_;
  Welcome first_;
};

TEST_F(WelcomeTerms, OfAnotherConnectionAreTheSame) {
  Welcome again = first_;
  again.set_incarnation(5);
  again.set_slot(3);
  again.add_search_folders("elsewhere/");
  EXPECT_EQ(ChangedTerms(first_, again), "");
}

TEST_F(WelcomeTerms, NameTheFieldsThatChanged) {
  EXPECT_EQ(Changed([](auto& solver) { solver.set_momentum(0.5f); }), "momentum");
  EXPECT_EQ(Changed([](auto& solver) { solver.clear_base_lr(); }), "base_lr");
  EXPECT_EQ(Changed([](auto& solver) {
              solver.add_stepvalue(10);
              solver.mutable_distributed()->set_local_steps(5);
              solver.mutable_distributed()->set_staleness(3);
            }),
            "stepvalue, distributed.local_steps, distributed.staleness");
  EXPECT_EQ(Changed([](auto& solver) { solver.mutable_train_net_param()->mutable_layer(0)->set_name("other"); }),
            "net");
  EXPECT_EQ(Changed([](auto& solver) { solver.add_test_net_param(); }), "test net");
}

TEST_F(WelcomeTerms, OfASolverThatCannotBeReadAreOthers) {
  Welcome again = first_;
  again.set_solver("\xff");
  EXPECT_EQ(ChangedTerms(first_, again), "solver");
}

TEST_F(WelcomeTerms, AreTheDataAndTheSeed) {
  Welcome again = first_;
  again.set_seed(8);
  again.mutable_data(0)->set_fingerprint(9);
  EXPECT_EQ(ChangedTerms(first_, again), "seed, data of layer \"data\"");
  again = first_;
  again.mutable_test_data(0)->set_files(9);
  EXPECT_EQ(ChangedTerms(first_, again), "test data of layer \"data\"");
}

// The images of a list: a coordinator may be where they are, or not.
TEST_F(WelcomeTerms, AreFilesOnlyWhereBothKnewThem) {
  Welcome without = first_;
  without.mutable_data(0)->clear_files();
  EXPECT_EQ(ChangedTerms(first_, without), "");
  EXPECT_EQ(ChangedTerms(without, first_), "");
}

}  // namespace
}  // namespace crema
