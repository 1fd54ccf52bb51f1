// tile: the buffers of a thread.
#include "tile.hpp"

namespace swsearch {

namespace {

template <class T>
T* grown(std::vector<T>& buffer, size_t size) {
  if (buffer.size() < size) buffer.resize(size);
  return buffer.data();
}

}  // namespace

TileMemory Workspace::get(int rows, int columns) {
  const size_t padded = static_cast<size_t>(rounded(rows)), width = static_cast<size_t>(columns) + 2 * kMargin;
  return {grown(profile_, width * (kCodes + 1)), grown(row_profiles_, padded), grown(skewed_, 16 * padded),
          grown(lanes_, kLaneBuffers * sizeof(int32_t) * static_cast<size_t>(lane_count(rows)))};
}

}  // namespace swsearch
