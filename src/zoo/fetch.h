// Getting published weights.
#ifndef CREMA_ZOO_FETCH_H_
#define CREMA_ZOO_FETCH_H_

#include <functional>
#include <string>

#include "zoo/zoo.h"

namespace crema {

struct FetchOptions {
  std::string output;  // folder; empty: the model's own
  std::string mirror;  // URL (https, http, file) looked in first, for MODEL/FILE and then FILE; empty: none
  std::function<void(const std::string& line)> say = [](const std::string&) {};
};

// The weights of a model, under their name in the folder once their sum is the card's: a file is whole or absent. What
// was fetched before is kept in FILE.part, and gone on with. https and http are done by the program curl, which shows
// its progress on stderr. Returns the path. Throws UserError where the card has no URL (and there is no mirror) or the
// sum is another one, which is said with both, EnvironmentError where nothing can be fetched.
std::string FetchWeights(const ZooModel& model, const FetchOptions& options);

}  // namespace crema

#endif  // CREMA_ZOO_FETCH_H_
