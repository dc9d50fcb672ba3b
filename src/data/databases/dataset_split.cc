#include "data/databases/dataset_split.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include "base/number_text.h"
#include "base/random.h"
#include "base/trimmed.h"
#include "crema/error.h"

namespace crema {

std::vector<DatasetPart> ParseSplit(const std::string& text) {
  if (text.empty()) return {{"", 1}};
  const auto fail = [&](const std::string& why) {
    throw UserError("--split=" + text + ": " + why + "; expected names and shares, as in train:0.9,val:0.1");
  };
  std::vector<DatasetPart> parts;
  double sum = 0;
  for (const std::string& part : CommaParts(text)) {
    const size_t colon = part.find(':');
    if (colon == std::string::npos || colon == 0) fail("\"" + part + "\" is no NAME:SHARE");
    DatasetPart next{part.substr(0, colon), 0};
    const std::string share = part.substr(colon + 1);
    if (!ParseFinite(share, &next.share) || next.share <= 0 || next.share >= 1) {
      fail("the share \"" + share + "\" is no number between 0 and 1");
    }
    for (const char c : next.name) {
      if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '-') {
        fail("the name \"" + next.name + "\" becomes part of a file's name: take letters and digits");
      }
    }
    for (const DatasetPart& other : parts) {
      if (other.name == next.name) fail("\"" + next.name + "\" is given twice");
    }
    sum += next.share;
    parts.push_back(std::move(next));
  }
  if (std::fabs(sum - 1) > 1e-6) {
    fail("the shares add up to " + FormatNumber(sum) + ", not 1");
  }
  return parts;
}

std::vector<int64_t> PartSizes(int64_t count, const std::vector<DatasetPart>& parts) {
  std::vector<int64_t> sizes;
  double share = 0;
  int64_t begin = 0;
  for (size_t k = 0; k < parts.size(); ++k) {
    share += parts[k].share;
    const int64_t end = k + 1 == parts.size() ? count : std::llround(share * static_cast<double>(count));
    sizes.push_back(std::max<int64_t>(0, end - begin));
    begin = std::max(begin, end);
  }
  if (count < static_cast<int64_t>(parts.size())) return sizes;
  for (int64_t& size : sizes) {
    if (size > 0) continue;
    --*std::max_element(sizes.begin(), sizes.end());
    ++size;
  }
  return sizes;
}

std::vector<int> SplitByClass(const std::vector<int>& labels, const std::vector<DatasetPart>& parts, uint64_t seed) {
  std::map<int, std::vector<size_t>> members;
  for (size_t i = 0; i < labels.size(); ++i) members[labels[i]].push_back(i);
  std::vector<int> part_of(labels.size(), 0);
  for (const auto& [label, records] : members) {
    const std::vector<int64_t> sizes = PartSizes(static_cast<int64_t>(records.size()), parts);
    uint64_t drawn = 0;
    for (size_t part = 0; part < sizes.size(); ++part) {
      for (int64_t i = 0; i < sizes[part]; ++i, ++drawn) {
        // Stream 0 shuffles the whole list.
        const uint64_t stream = 1 + static_cast<uint64_t>(static_cast<uint32_t>(label));
        part_of[records[Permute(seed, stream, drawn, records.size())]] = static_cast<int>(part);
      }
    }
  }
  return part_of;
}

std::vector<int> SplitInOrder(size_t count, const std::vector<DatasetPart>& parts) {
  std::vector<int> part_of;
  int part = 0;
  for (const int64_t size : PartSizes(static_cast<int64_t>(count), parts)) {
    part_of.insert(part_of.end(), static_cast<size_t>(size), part++);
  }
  return part_of;
}

}  // namespace crema
