// Both sides of a training on several machines where workers only seem to compute: bench/distributed starts one of
// these in each network namespace.
//
//   bench_cluster coordinate SOLVER     trains as its `distributed` block says; prints "listening ENDPOINT" and, for
//                                       every round, "round N SECONDS WORKERS"
//   bench_cluster join ENDPOINT NAME    one worker; prints at the end, as JSON, for each forward pass when it began and
//                                       ended, and, when it began, bytes and packets that eth0 had received and sent,
//                                       and what TCP had delivered to it, delivered for it, and sent again
//   bench_cluster alone SOLVER STEPS    the same net without a cluster; prints its iterations a second
//
// Seconds are of the monotonic clock, which all processes of a machine share. Nets may have layers of type Pause, which
// take the milliseconds that python_param { param_str: "20" } says and hand their bottom on; "0 3 50000": no time
// forward, 3 ms backward, and then there is the gradient of 50000 parameters.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "crema/error.h"
#include "crema/layer.h"
#include "crema/observer.h"
#include "crema/solver.h"
#include "distributed/training/coordinate.h"

namespace crema::bench {
namespace {

double Seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

struct Link {
  unsigned long long bytes_in = 0, packets_in = 0, bytes_out = 0, packets_out = 0;
  unsigned long long received = 0, acknowledged = 0, sent_again = 0;
};

// Of all TCP connections of this process.
void ReadConnections(Link* link) {
  constexpr int kMostDescriptors = 256;
  for (int descriptor = 0; descriptor < kMostDescriptors; ++descriptor) {
    tcp_info info = {};
    socklen_t size = sizeof info;
    if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) continue;
    link->received += info.tcpi_bytes_received;
    link->acknowledged += info.tcpi_bytes_acked;
    link->sent_again += info.tcpi_bytes_retrans;
  }
}

// Of this network namespace's eth0; zeros where there is none.
Link ReadLink() {
  Link link;
  std::ifstream devices("/proc/self/net/dev");
  for (std::string line; std::getline(devices, line);) {
    const char* const fields = std::strstr(line.c_str(), "eth0:");
    if (!fields) continue;
    std::sscanf(fields, "eth0: %llu %llu %*u %*u %*u %*u %*u %*u %llu %llu", &link.bytes_in, &link.packets_in,
                &link.bytes_out, &link.packets_out);
  }
  ReadConnections(&link);
  return link;
}

struct Pass {
  double begin = 0, end = 0;
  Link link;
};
std::vector<Pass>& Passes() {
  static std::vector<Pass> passes;
  return passes;
}

class PauseLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(1);
    setup.ExpectTops(1);
    const std::string& text = setup.param().python_param().param_str();
    std::istringstream words(text);
    double forward = -1, backward = 0, parameters = 0;
    if (words >> forward && !words.eof()) words >> backward >> parameters;
    const auto between = [](double value, double least, double most) { return least <= value && value <= most; };
    if (!words || !words.eof() || !between(forward, 0, 1e6) || !between(backward, 0, 1e6) ||
        !between(parameters, 0, 1e9)) {
      setup.Fail("python_param.param_str", "is \"" + text +
                                               "\", expected milliseconds from 0 to 1000000, or those forward, those "
                                               "backward, and how many parameters");
    }
    forward_ = std::chrono::duration<double, std::milli>(forward);
    backward_ = std::chrono::duration<double, std::milli>(backward);
    has_parameters_ = parameters > 0;
    if (has_parameters_) setup.AddParam({{static_cast<int64_t>(parameters)}, {}});
    setup.SetTop(0, setup.bottom_shape(0));
  }

  void Forward(const LayerRun& run) override {
    // All that a round needs has come, and what it makes is not there yet: nothing is under way.
    Pass pass;
    if (!has_parameters_) pass = {Seconds(), 0, ReadLink()};
    if (forward_.count() > 0) std::this_thread::sleep_for(forward_);
    std::memcpy(run.tops[0].f32(), run.bottoms[0].f32(), static_cast<size_t>(run.bottoms[0].count()) * sizeof(float));
    if (has_parameters_) return;
    pass.end = Seconds();
    Passes().push_back(pass);
  }

  void Backward(const LayerRun& run) override {
    if (backward_.count() > 0) std::this_thread::sleep_for(backward_);
    if (has_parameters_) std::fill_n(run.param_grads[0].f32(), run.param_grads[0].count(), 1e-3f);
    if (!run.bottom_grads[0].defined()) return;
    std::memcpy(run.bottom_grads[0].f32(), run.top_grads[0].f32(),
                static_cast<size_t>(run.top_grads[0].count()) * sizeof(float));
  }

 private:
  std::chrono::duration<double, std::milli> forward_{0}, backward_{0};
  bool has_parameters_ = false;
};

class RoundPrinter : public Observer {
 public:
  void OnRound(const RoundCommitted& round) override {
    std::printf("round %llu %.6f %d\n", static_cast<unsigned long long>(round.version), Seconds(), round.workers);
    std::fflush(stdout);
  }
  void OnCluster(const ClusterChanged& change) override { std::cerr << change.text << "\n"; }
};

volatile std::sig_atomic_t stop_asked = 0;

SolverAction TakeStop() {
  if (!stop_asked) return SolverAction::kNone;
  stop_asked = 0;
  return SolverAction::kStop;
}

void RunCoordinator(const std::string& path) {
  const SolverFile file = ReadSolverFile(path);
  RoundPrinter printer;
  SolverOptions options;
  options.path = path;
  options.observers = {&printer};
  options.requested_action = TakeStop;
  CoordinateOptions cluster;
  cluster.on_listening = [](const std::string& endpoint) {
    std::printf("listening %s\n", endpoint.c_str());
    std::fflush(stdout);
  };
  Coordinate(file, std::move(options), cluster);
}

void RunWorker(const std::string& endpoint, const std::string& name) {
  JoinOptions options;
  options.endpoint = endpoint;
  options.name = name;
  options.security.set_allow_plaintext(true);
  options.requested_action = TakeStop;
  const JoinResult result = Join(options);
  std::printf("{\"completed\": %s, \"rounds\": %llu, \"passes\": [", result.completed ? "true" : "false",
              static_cast<unsigned long long>(result.rounds));
  const char* comma = "";
  for (const Pass& pass : Passes()) {
    const Link& link = pass.link;
    std::printf("%s[%.6f,%.6f,%llu,%llu,%llu,%llu,%llu,%llu,%llu]", std::exchange(comma, ","), pass.begin, pass.end,
                link.bytes_in, link.packets_in, link.bytes_out, link.packets_out, link.received, link.acknowledged,
                link.sent_again);
  }
  std::printf("]}\n");
}

void RunAlone(const std::string& path, int steps) {
  SolverFile file = ReadSolverFile(path);
  file.solver.clear_distributed();
  Solver solver(file, SolverOptions{.path = path});
  solver.Step(2);
  const double begin = Seconds();
  solver.Step(steps);
  std::printf("%.6f\n", steps / (Seconds() - begin));
}

int Main(const std::vector<std::string>& arguments) {
  const auto is = [&](std::string_view what, size_t count) {
    return arguments.size() == count && arguments[0] == what;
  };
  if (is("coordinate", 2)) {
    RunCoordinator(arguments[1]);
  } else if (is("join", 3)) {
    RunWorker(arguments[1], arguments[2]);
  } else if (is("alone", 3) && std::atoi(arguments[2].c_str()) > 0) {
    RunAlone(arguments[1], std::atoi(arguments[2].c_str()));
  } else {
    std::cerr << "bench_cluster coordinate SOLVER | join ENDPOINT NAME | alone SOLVER STEPS\n";
    return 2;
  }
  return 0;
}

REGISTER_LAYER(Pause, PauseLayer, "python_param");

}  // namespace
}  // namespace crema::bench

int main(int argc, char** argv) {
  // Whoever started this may be killed; nobody else would end it.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, [](int) { crema::bench::stop_asked = 1; });
  try {
    return crema::bench::Main(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::exception& error) {
    std::cerr << "bench_cluster: " << error.what() << "\n";
    return 1;
  }
}
