#include "data_tools/dataset_flags.h"

#include <gflags/gflags.h>

#include <utility>

#include "crema/error.h"

DEFINE_bool(force, false, "replace what exists");
DEFINE_string(backend, "lmdb", "format of the database");
DEFINE_string(split, "", "parts to divide the records among");
DEFINE_int64(seed, 1, "seed of shuffling and splitting");
DEFINE_int32(threads, 0, "threads that decode");

namespace crema::tools {

Flag ForceFlag() { return {.name = "force", .value = "", .help = "replace what exists already under the names"}; }

Flag BackendFlag() {
  return {.name = "backend", .value = "lmdb", .help = "format of the database; only lmdb is written"};
}

Flag SplitFlag(const std::string& how) {
  return {.name = "split",
          .value = "NAME:SHARE,...",
          .help = "divide the records, " + how + ": train:0.9,val:0.1 writes DB_train_lmdb and DB_val_lmdb"};
}

Flag SeedFlag() {
  return {.name = "seed", .value = "N", .help = "another seed gives another order and split", .min = 0};
}

Flag LabelsFlag(const std::string& what) {
  return {.name = "labels",
          .value = "FILE",
          .help = "names of the classes, one a line, which number the " + what +
                  " as in another database, whose DB_labels.txt this may be"};
}

Flag ThreadsFlag() {
  return {.name = "threads",
          .value = "N",
          .help = "threads that decode; 0: one per core. The result is the same",
          .min = 0,
          .max = 1024};
}

void RejectFlag(const CommandLine& line, const std::string& message) {
  throw UserError(Location{line.program, 0, 0}, message);
}

DatasetTarget TargetOf(const CommandLine& line, const std::string& database, std::vector<std::string> inputs) {
  if (FLAGS_backend == "leveldb") {
    RejectFlag(line, "LevelDB is not written; use --backend=lmdb (db_tool convert OLD NEW makes an LMDB of a LevelDB)");
  }
  if (FLAGS_backend != "lmdb") RejectFlag(line, "--backend=" + FLAGS_backend + ": expected lmdb");
  DatasetTarget target;
  target.database = database;
  target.parts = ParseSplit(FLAGS_split);
  target.replace = FLAGS_force;
  target.seed = static_cast<uint64_t>(FLAGS_seed);
  target.inputs = std::move(inputs);
  return target;
}

}  // namespace crema::tools
