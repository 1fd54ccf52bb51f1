// tile: the buffers of a thread.
#include "pairs/tile.hpp"

#include <memory>

namespace swsearch {

namespace {

constexpr size_t kAlignment = 64;  // of the widest vectors

template <class T>
T* grown(std::vector<T>& buffer, size_t size) {
  if (buffer.size() < size) buffer.resize(size);
  return buffer.data();
}

}  // namespace

TileMemory Workspace::get(int rows, int columns) {
  const size_t padded = static_cast<size_t>(rounded(rows)), width = static_cast<size_t>(columns) + 2 * kMargin;
  const size_t bytes = kLaneBuffers * sizeof(int32_t) * static_cast<size_t>(lane_count(rows));
  size_t space = bytes + kAlignment;
  void* lanes = grown(lanes_, space);
  return {grown(profile_, width * (kCodes + 1)), grown(row_profiles_, padded), grown(skewed_, 16 * padded),
          std::align(kAlignment, bytes, lanes, space)};
}

}  // namespace swsearch
