// turns: work that is cut into turns, which threads take one after the other.
#pragma once

#include <cstdint>
#include <functional>

#include "interruption.hpp"

namespace swsearch {

// Does one turn. A long one asks now and then whether to end, as often as it likes, and may throw Interrupted.
using Turn = std::function<void(int64_t turn, const AskToStop& ask)>;

// Do turns 0 to count - 1 on up to `threads` threads, the calling one among them, and on fewer where no more are to be
// had. `interrupted` may be empty; the calling thread alone asks it. Throws Interrupted, and bad_alloc if a turn did.
void take_turns(int64_t count, int64_t threads, const AskToStop& interrupted, const Turn& turn);

}  // namespace swsearch
