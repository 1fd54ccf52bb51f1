// interruption: how a long computation is ended from outside.
#pragma once

#include <functional>

namespace swsearch {

// Thrown out of a computation whose AskToStop said so.
struct Interrupted {};

// Asked now and then by the thread that called, and by no other: is the computation to end?
using AskToStop = std::function<bool()>;

}  // namespace swsearch
