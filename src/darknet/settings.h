// The settings of one section of a .cfg, as they are asked for: what nobody asked for is unknown.
#ifndef CREMA_DARKNET_SETTINGS_H_
#define CREMA_DARKNET_SETTINGS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "crema/error.h"
#include "darknet/cfg_file.h"

namespace crema::darknet {

// Mistakes are collected, and what is wrong reads as the default, so that one run shows all of them. `section` and
// `problems` must outlive it.
class Settings {
 public:
  // `path`: the file's.
  Settings(const CfgSection& section, std::string path, Diagnostics* problems);

  const std::string& kind() const { return section_.kind; }
  bool has(const std::string& key) const { return entries_.count(key) > 0; }
  // Of the heading, or of a key where it is there.
  Location where(const std::string& key = {}) const;

  int64_t Int(const std::string& key, int64_t fallback, int64_t least, int64_t most);
  float Number(const std::string& key, float fallback);
  std::string Word(const std::string& key, const std::string& fallback);
  // A word that must be one of these.
  std::string Choice(const std::string& key, const std::string& fallback, const std::vector<std::string>& words);
  // Separated by commas; empty where the key is not there.
  std::vector<int64_t> Ints(const std::string& key);
  std::vector<float> Numbers(const std::string& key);

  // A key that only `neutral` may be the value of, since Darknet would compute what crema cannot. why: "binary
  // weights".
  void Only(const std::string& key, float neutral, const std::string& why);
  // A key that may not be there.
  void Never(const std::string& key, const std::string& why);
  // Keys, with blanks between them, that change nothing in a net that is used: those of training, for one.
  void Ignore(const std::string& keys);
  void Refuse(const std::string& key, const std::string& message);

  // What nobody asked for, as warnings. `warned`: kinds and keys that have been warned of, each once for a file.
  std::vector<Diagnostic> Unknown(std::set<std::string>* warned) const;

 private:
  // Null where the key is not there.
  const std::string* Value(const std::string& key);
  void Refuse(const std::string& key, const std::string& value, const std::string& expected);

  const CfgSection& section_;
  const std::string path_;
  Diagnostics* problems_;
  std::map<std::string, const CfgEntry*> entries_;  // the first of each key, as Darknet takes it
  std::set<std::string> asked_;
};

}  // namespace crema::darknet

#endif  // CREMA_DARKNET_SETTINGS_H_
