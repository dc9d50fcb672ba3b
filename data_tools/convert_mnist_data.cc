// convert_mnist_data IMAGES_FILE LABELS_FILE DB: MNIST's files (and those of its kin) to a database for Data layers.
#include <gflags/gflags.h>
#include <glog/logging.h>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "base/suggest.h"
#include "crema/error.h"
#include "data/convert_mnist.h"

DEFINE_bool(force, false, "replace the database where it exists already");
DEFINE_string(backend, "lmdb", "format of the database; only lmdb is written");

namespace {

const std::vector<std::string> kFlags = {"force", "backend", "help"};

constexpr char kHelp[] = R"(convert_mnist_data: convert MNIST's files to an LMDB that Data layers read

usage: convert_mnist_data [flags] IMAGES_FILE LABELS_FILE DB

  IMAGES_FILE, LABELS_FILE  IDX files as MNIST, Fashion-MNIST and EMNIST have them, plain or .gz
  DB                        folder to write; it appears only when the conversion is complete

flags:
  --force         replace DB where it exists already
  --backend=lmdb  format of the database; only lmdb is written

examples:
  convert_mnist_data train-images-idx3-ubyte train-labels-idx1-ubyte mnist_train_lmdb
  convert_mnist_data --force t10k-images-idx3-ubyte.gz t10k-labels-idx1-ubyte.gz mnist_test_lmdb

exit codes: 0 done, 1 the environment failed (disk full, no permission), 2 a mistake in the arguments or files
)";

[[noreturn]] void Reject(const std::string& message) {
  throw crema::UserError({"convert_mnist_data", 0, 0}, message + "; see convert_mnist_data --help");
}

struct Arguments {
  std::vector<std::string> files;
  bool help = false;
};

// Sets the flags from "-x", "--x", "--x=v", "--x v" and "--nox".
Arguments ParseArguments(const std::vector<std::string>& words) {
  Arguments arguments;
  bool flags_over = false;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (flags_over || word.size() < 2 || word[0] != '-') {
      arguments.files.push_back(word);
      continue;
    }
    if (word == "--") {
      flags_over = true;
      continue;
    }
    const size_t begin = word[1] == '-' ? 2 : 1, equals = word.find('=');
    const bool has_value = equals != std::string::npos;
    const std::string name = word.substr(begin, has_value ? equals - begin : std::string::npos);
    std::string value = has_value ? word.substr(equals + 1) : "";
    if (name == "help" || name == "h") {
      arguments.help = true;
    } else if (name == "noforce" && !has_value) {
      FLAGS_force = false;
    } else if (name == "force") {
      if (gflags::SetCommandLineOption("force", has_value ? value.c_str() : "true").empty()) {
        Reject("--force=" + value + ": expected true or false");
      }
    } else if (name == "backend") {
      if (!has_value && i + 1 == words.size()) Reject("--backend needs a value: --backend=lmdb");
      FLAGS_backend = has_value ? value : words[++i];
    } else {
      Reject("there is no flag --" + name + crema::DidYouMean(name, kFlags));
    }
  }
  return arguments;
}

int Run(const std::vector<std::string>& words) {
  const Arguments arguments = ParseArguments(words);
  if (arguments.help) {
    std::cout << kHelp;
    return 0;
  }
  if (FLAGS_backend == "leveldb") Reject("LevelDB is neither written nor read; use --backend=lmdb");
  if (FLAGS_backend != "lmdb") Reject("--backend=" + FLAGS_backend + ": expected lmdb");
  if (arguments.files.size() != 3) {
    Reject("expected IMAGES_FILE LABELS_FILE DB, got " + std::to_string(arguments.files.size()) + " argument(s)");
  }
  const auto start = std::chrono::steady_clock::now();
  const crema::MnistConversion done = crema::ConvertMnist(
      arguments.files[0], arguments.files[1], arguments.files[2], FLAGS_force, [](int64_t written, int64_t total) {
        std::fprintf(stderr, "%lld of %lld images\n", static_cast<long long>(written), static_cast<long long>(total));
      });
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::fprintf(stderr, "%s: %lld records of 1x%lldx%lld, labels %d to %d, %.0f records/s\n", arguments.files[2].c_str(),
               static_cast<long long>(done.records), static_cast<long long>(done.height),
               static_cast<long long>(done.width), done.min_label, done.max_label,
               static_cast<double>(done.records) / seconds);
  if (done.min_label > 0) {
    std::fprintf(stderr,
                 "warning: labels start at %d, not 0: a classifier needs num_output: %d for them, with classes 0 to %d "
                 "unused\n",
                 done.min_label, done.max_label + 1, done.min_label - 1);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  FLAGS_logtostderr = true;
  google::InitGoogleLogging(argv[0]);
  try {
    return Run({argv + 1, argv + argc});
  } catch (const crema::UserError& error) {
    std::cerr << error.what() << "\n";
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "convert_mnist_data: error: " << error.what() << "\n";
    return 1;
  }
}
