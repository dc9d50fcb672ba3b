// train: `crema train` as a program of its own.
#include "tools/commands.h"
#include "tools/thread_waiting.h"

int main(int argc, char** argv) {
  crema::tools::SpinBriefly(argv);
  return crema::tools::RunCommand(crema::tools::TrainCommand(), "train", {argv + 1, argv + argc});
}
