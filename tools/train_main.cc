// train: `crema train` as a program of its own.
#include "tools/commands.h"

int main(int argc, char** argv) {
  return crema::tools::RunCommand(crema::tools::TrainCommand(), "train", {argv + 1, argv + argc});
}
