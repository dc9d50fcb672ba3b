// crema cluster: asks, or ends, a training on several machines.
#include <gflags/gflags.h>

#include <iostream>

#include "crema/error.h"
#include "distributed/sockets/inquiry.h"
#include "tools/cluster_flags.h"
#include "tools/commands.h"

DEFINE_string(address, "tcp://127.0.0.1:5570", "the coordinator");
DEFINE_string(request, "", "status, drain or stop");

namespace crema::tools {

namespace {

Inquiry::Request RequestOf(const CommandLine& line) {
  if (FLAGS_request == "status") return Inquiry::STATUS;
  if (FLAGS_request == "drain") return Inquiry::DRAIN;
  if (FLAGS_request == "stop") return Inquiry::STOP;
  throw UserError(Location{line.program, 0, 0},
                  "\"" + FLAGS_request + "\" is no request; it is one of status, drain, stop");
}

int Run(const CommandLine& line) {
  std::cout << TextOf(Inquire(FLAGS_address, RequestOf(line), SecurityOf()));
  return kExitSuccess;
}

}  // namespace

const Command& ClusterCommand() {
  static const Command command = [] {
    Command c = {
        .name = "cluster",
        .summary = "ask a running coordinator, or end its training",
        .usage = "status|drain|stop [--address=ENDPOINT] [flags]",
        .flags = {{.name = "request",
                   .value = "status|drain|stop",
                   .help = "drain: finish the round, write a snapshot and end; stop: the same without waiting for "
                           "the round, or, once training is over, for room on a full disk. `crema cluster status` is "
                           "short for --request=status",
                   .required = true},
                  {.name = "address", .value = "ENDPOINT", .help = "the coordinator"}},
        .examples =
            "example:\n"
            "  crema cluster status --address=tcp://node1:5570 --secret_key=me.secret \\\n"
            "    --server_key=coordinator.public\n",
        .run = Run,
    };
    for (Flag& flag : KeyFlags()) {
      flag.help = flag.help.substr(flag.help.find(": ") + 2);
      c.flags.push_back(std::move(flag));
    }
    return c;
  }();
  return command;
}

}  // namespace crema::tools
