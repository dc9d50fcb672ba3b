// db_tool: looking at databases, and making LMDBs of LevelDBs.
#include <gflags/gflags.h>

#include <algorithm>
#include <iostream>
#include <set>

#include "base/number_text.h"
#include "crema/error.h"
#include "data/convert/convert_leveldb.h"
#include "data/databases/export_database.h"
#include "data/databases/inspect_database.h"
#include "data/files/class_names.h"
#include "data/files/label_map.h"
#include "data_tools/dataset_flags.h"
#include "data_tools/program.h"

DEFINE_string(labels, "", "names of the classes");
DEFINE_string(key, "", "key of a record");
DEFINE_int64(index, -1, "number of a record");
DEFINE_int64(limit, 0, "records to export");
DEFINE_bool(draw, false, "draw objects into images");

namespace crema::tools {

namespace {

void ExpectWords(const CommandLine& line, size_t count, const std::string& form) {
  if (line.arguments.size() != count) RejectFlag(line, "expected " + form + "; see db_tool --help");
}

// Of --labels; none without it. `boxes`: of objects, where 0 is the background, which lists may leave out.
std::vector<std::string> ClassNamesFor(const RecordSource& source, bool boxes) {
  if (FLAGS_labels.empty()) return {};
  std::vector<std::string> names = ReadClassNames(FLAGS_labels, boxes ? kWithBackground : 0);
  Diagnostics warnings;
  CheckClassesOf(source.path(), {FLAGS_labels, names}, &warnings);
  for (const Diagnostic& warning : warnings.list()) std::cerr << warning.ToString() << "\n";
  return names;
}

int Info(const CommandLine& line, const RecordSource& source) {
  ExpectWords(line, 2, "db_tool info DB");
  ProgressLine progress("records");
  const DatabaseInfo info = InspectDatabase(source, FLAGS_threads, &progress);
  const std::vector<std::string> names = ClassNamesFor(source, info.annotated > 0);
  std::cout << DescribeDatabase(source.path(), info, names);
  return kExitSuccess;
}

int Verify(const CommandLine& line, const RecordSource& source) {
  ExpectWords(line, 2, "db_tool verify DB");
  ProgressLine progress("records");
  const BrokenRecords broken = VerifyDatabase(source, FLAGS_threads, &progress);
  for (const std::string& record : broken.first) progress.Say(record);
  progress.Say(progress.Summary());
  if (broken.count == 0) {
    std::cout << source.path() << ": all " << source.count() << " records are whole\n";
    return kExitSuccess;
  }
  std::cout << source.path() << ": " << broken.count << " of " << source.count() << " records are broken\n";
  return kExitUser;
}

int Peek(const CommandLine& line, const RecordSource& source) {
  uint64_t begin = 0, count = 1;
  if (!FLAGS_key.empty() || FLAGS_index >= 0) {
    ExpectWords(line, 2, "db_tool peek DB --key=KEY, or --index=N");
    if (!FLAGS_key.empty() && FLAGS_index >= 0)
      RejectFlag(line, "--key and --index name one record each; leave out one");
    begin = FLAGS_key.empty() ? static_cast<uint64_t>(FLAGS_index) : FindKey(source, FLAGS_key);
    if (begin >= source.count()) {
      RejectFlag(line, "--index=" + std::to_string(begin) + ": \"" + source.path() + "\" holds " +
                           std::to_string(source.count()) + " records, counted from 0");
    }
  } else if (line.arguments.size() > 2) {
    ExpectWords(line, 3, "db_tool peek DB [N]");
    const std::string& word = line.arguments[2];
    if (!ParseWhole(word, &count) || count > 999'999'999) {
      RejectFlag(line, "\"" + word + "\" is no number of records; expected db_tool peek DB [N]");
    }
  }
  for (uint64_t i = begin; i < std::min(source.count(), begin + count); ++i) std::cout << DescribeFields(source, i);
  return kExitSuccess;
}

int Export(const CommandLine& line, const RecordSource& source) {
  ExpectWords(line, 3, "db_tool export DB FOLDER");
  DatabaseExport how;
  how.folder = line.arguments[2];
  how.labels = ClassNamesFor(source, HoldsAnnotated(source));
  how.draw = FLAGS_draw;
  how.limit = FLAGS_limit;
  how.threads = FLAGS_threads;
  ProgressLine progress("images");
  ExportDatabase(source, how, &progress);
  progress.Say(how.folder + ": " + progress.Summary());
  return kExitSuccess;
}

int Convert(const CommandLine& line) {
  ExpectWords(line, 3, "db_tool convert LEVELDB DB");
  const std::string& database = line.arguments[2];
  ProgressLine progress("records");
  const DatabaseInfo info = ConvertLevelDb(line.arguments[1], database, FLAGS_force, &progress);
  std::string text = SummarizeDatabase(database, info) + "\n" + progress.Summary();
  if (info.foreign > 0) {
    text += "\nwarning: " + std::to_string(info.foreign) +
            " of the records are no Datums; they were copied as they are, but Data layers do not read them (db_tool "
            "verify names them)";
  }
  progress.Say(text);
  return kExitSuccess;
}

template <int (*action)(const CommandLine&, const RecordSource&)>
int WithSource(const CommandLine& line) {
  return action(line, *OpenRecordSource(line.arguments[1]));
}

struct Action {
  const char* name;
  std::set<std::string> flags;
  int (*run)(const CommandLine&);
};

int Run(const CommandLine& line) {
  static const Action actions[] = {{"info", {"labels", "threads"}, WithSource<Info>},
                                   {"verify", {"threads"}, WithSource<Verify>},
                                   {"peek", {"key", "index"}, WithSource<Peek>},
                                   {"export", {"draw", "labels", "limit", "threads"}, WithSource<Export>},
                                   {"convert", {"force"}, Convert}};
  for (const Action& action : actions) {
    if (line.arguments[0] != action.name) continue;
    for (const auto& [flag, value] : line.given) {
      if (action.flags.count(flag) == 0) RejectFlag(line, "--" + flag + " is not for db_tool " + action.name);
    }
    return action.run(line);
  }
  RejectFlag(line, "\"" + line.arguments[0] + "\": expected info, verify, peek, export or convert");
}

}  // namespace

Command ProgramCommand() {
  return {
      .name = "db_tool",
      .summary = "look at a database: what it holds, whether it is whole, its images; convert LevelDBs",
      .usage = "info DB|verify DB|peek DB [N]|export DB FOLDER|convert LEVELDB DB [flags]",
      .flags = {{.name = "labels",
                 .value = "FILE",
                 .help = "names of the classes, for info and export; in info also those of several labels"},
                {.name = "key", .value = "KEY", .help = "the record to peek at"},
                {.name = "index",
                 .value = "N",
                 .help = "the record to peek at, counted from 0",
                 .min = 0,
                 .has_default = false},
                {.name = "limit", .value = "N", .help = "export the first N records; 0: all", .min = 0},
                {.name = "draw",
                 .value = "",
                 .help = "export images with the objects of their records drawn, as JPEGs"},
                ThreadsFlag(),
                {.name = "force", .value = "", .help = "convert: replace DB where it exists already"}},
      .examples =
          "  info DB           records, bytes, shapes, formats, labels, first and last key\n"
          "  verify DB         decode every record; name the first 20 broken ones; exit code 2 if any\n"
          "  peek DB [N]       fields and first values of the first N records, or of --key or --index\n"
          "  export DB FOLDER  images as FOLDER/CLASS/NUMBER.png, encoded ones as they are; overwrites nothing;\n"
          "                    where they have several labels as FOLDER/NUMBER.png, with FOLDER/list.txt\n"
          "  convert LEVELDB DB\n"
          "                    the records of a LevelDB, byte for byte, as an LMDB that Data layers read\n\n"
          "examples:\n"
          "  db_tool info train_lmdb --labels=pets_labels.txt\n"
          "  db_tool export train_lmdb look --limit=20\n"
          "  db_tool export voc_lmdb look --limit=20 --draw --labels=labelmap_voc.prototxt\n"
          "  db_tool convert train_leveldb train_lmdb\n",
      .arguments = "info, verify, peek, export or convert, and DB",
      .min_arguments = 2,
      .max_arguments = 3,
      .run = Run,
  };
}

}  // namespace crema::tools
