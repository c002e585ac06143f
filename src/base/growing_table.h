// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A hash table whose elements are never removed and keep their address. A look touches a place of
// 8 bytes and the element, nothing else: the places of many thousand stay in the processor's
// caches, where a table of linked nodes waits for the memory three times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

namespace uet {

template <class Key, class Value, class Hash>
class GrowingTable {
 public:
  struct Element {
    const Key key;
    Value value{};
  };

  // The element of `key`, which is made if there is none.
  Element& at(const Key& key) {
    const std::uint32_t hash = hash_of(key);
    if (Element* known = find(key, hash)) return *known;
    if (2 * elements_.size() >= places_.size()) grow();
    elements_.push_back(Element{.key = key, .value = {}});
    put({.hash = hash, .number = static_cast<std::uint32_t>(elements_.size())});
    return elements_.back();
  }
  // nullptr if there is none.
  Element* find(const Key& key) { return find(key, hash_of(key)); }

  // In the order in which they were made.
  auto begin() { return elements_.begin(); }
  auto end() { return elements_.end(); }
  std::size_t size() const { return elements_.size(); }

 private:
  struct Place {
    std::uint32_t hash = 0;
    std::uint32_t number = 0;  // of the element, from 1; 0: empty
  };

  static std::uint32_t hash_of(const Key& key) {
    return static_cast<std::uint32_t>(Hash{}(key)*0x9E3779B97F4A7C15ULL >> 32);
  }
  // Where to look next: at most every other place is taken.
  std::size_t behind(std::size_t at) const { return (at + 1) & (places_.size() - 1); }
  Element* find(const Key& key, std::uint32_t hash) {
    for (std::size_t at = hash & (places_.size() - 1);; at = behind(at)) {
      const Place& place = places_[at];
      if (place.number == 0) return nullptr;
      if (place.hash != hash) continue;
      Element& element = elements_[place.number - 1];
      if (element.key == key) return &element;
    }
  }
  void put(const Place& place) {
    std::size_t at = place.hash & (places_.size() - 1);
    while (places_[at].number != 0) at = behind(at);
    places_[at] = place;
  }
  void grow() {
    const std::vector<Place> old = std::exchange(places_, std::vector<Place>(2 * places_.size()));
    for (const Place& place : old) {
      if (place.number != 0) put(place);
    }
  }

  std::vector<Place> places_ = std::vector<Place>(16);
  std::deque<Element> elements_;
};

}  // namespace uet
