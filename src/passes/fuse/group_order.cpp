// A topological order that is kept while groups merge: only what lies between two of them moves.
#include "passes/fuse/group_order.h"

#include <algorithm>
#include <numeric>

namespace tilewright::passes {

namespace {

// Groups that one search for a path looks at. Neighbours in a program are a few dozen groups apart; a value
// of the first layers and its reader in the backward pass are as far apart as the program is long, and there
// nearly always is a path.
constexpr std::size_t kMostVisited = 512;

}  // namespace

GroupOrder::GroupOrder(int groups)
    : readers_(at(groups)), writers_(at(groups)), place_(at(groups)), in_place_(at(groups)) {
  std::iota(place_.begin(), place_.end(), 0);
  std::iota(in_place_.begin(), in_place_.end(), 0);
}

void GroupOrder::add_edge(int writer, int reader) {
  insert(readers_[at(writer)], reader);
  insert(writers_[at(reader)], writer);
}

void GroupOrder::begin_search() const {
  seen_in_.resize(place_.size(), 0);
  ++search_;
  open_.clear();
}

bool GroupOrder::see(int group) const {
  if (seen_in_[at(group)] == search_) return false;
  seen_in_[at(group)] = search_;
  open_.push_back(group);
  return true;
}

bool GroupOrder::has_path_through_third(int a, int b) const {
  const int end = place_[at(b)];
  if (place_[at(a)] > end) return false;
  begin_search();
  std::size_t seen = 0;
  for (int reader : readers(a)) seen += place_[at(reader)] < end && see(reader);
  while (!open_.empty()) {
    const int group = open_.back();
    open_.pop_back();
    if (holds(readers(group), b) || seen > kMostVisited) return true;
    for (int reader : readers(group)) seen += place_[at(reader)] < end && see(reader);
  }
  return false;
}

// What `from` reaches at places before `end`, sorted.
std::vector<int> GroupOrder::reached_before(int from, int end) const {
  begin_search();
  std::vector<int> reached;
  open_.push_back(from);
  while (!open_.empty()) {
    const int group = open_.back();
    open_.pop_back();
    for (int reader : readers(group))
      if (place_[at(reader)] < end && see(reader)) reached.push_back(reader);
  }
  std::sort(reached.begin(), reached.end());
  return reached;
}

// Between the two: first what the earlier one does not reach, then both as one, then what it reaches.
void GroupOrder::place_together(int into, int from) {
  const int early = place_[at(into)] < place_[at(from)] ? into : from;
  const int begin = place_[at(early)], end = std::max(place_[at(into)], place_[at(from)]);
  const std::vector<int> later = reached_before(early, end);
  std::vector<int> order, after;
  for (int place = begin + 1; place < end; ++place) {
    const int group = in_place_[at(place)];
    if (group >= 0) (std::binary_search(later.begin(), later.end(), group) ? after : order).push_back(group);
  }
  order.push_back(into);
  order.insert(order.end(), after.begin(), after.end());
  order.resize(at(end - begin + 1), -1);
  for (int place = begin; place <= end; ++place) {
    const int group = order[at(place - begin)];
    in_place_[at(place)] = group;
    if (group >= 0) place_[at(group)] = place;
  }
}

void GroupOrder::merge(int into, int from) {
  place_together(into, from);
  for (int reader : readers_[at(from)]) {
    erase(writers_[at(reader)], from);
    if (reader != into) add_edge(into, reader);
  }
  for (int writer : writers_[at(from)]) {
    erase(readers_[at(writer)], from);
    if (writer != into) add_edge(writer, into);
  }
  readers_[at(from)].clear();
  writers_[at(from)].clear();
}

}  // namespace tilewright::passes
