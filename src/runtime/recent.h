// Recent: a map of bounded size. When it is full, what was not used for longest goes.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <utility>

namespace tilewright::runtime {

template <class Key, class Value>
class Recent {
 public:
  // At most `most` entries, whose sizes sum up to `most_bytes` at most, but always the last one.
  explicit Recent(std::size_t most, std::size_t most_bytes = static_cast<std::size_t>(-1))
      : most_(most), most_bytes_(most_bytes) {}

  // Null when it is not there; else it is the last one to go now.
  Value* find(const Key& key) {
    const auto it = places_.find(key);
    if (it == places_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, it->second);
    return &it->second->value;
  }
  void insert(const Key& key, Value value, std::size_t bytes = 0) {
    erase(key);
    entries_.push_front({key, std::move(value), bytes});
    places_[key] = entries_.begin();
    bytes_ += bytes;
    while (entries_.size() > 1 && (entries_.size() > most_ || bytes_ > most_bytes_))
      erase(Key(entries_.back().key));
  }
  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    Key key;
    Value value;
    std::size_t bytes;
  };
  void erase(const Key& key) {
    const auto it = places_.find(key);
    if (it == places_.end()) return;
    bytes_ -= it->second->bytes;
    entries_.erase(it->second);
    places_.erase(it);
  }

  std::size_t most_, most_bytes_, bytes_ = 0;
  std::list<Entry> entries_;  // most recently used first
  std::map<Key, typename std::list<Entry>::iterator> places_;
};

}  // namespace tilewright::runtime
