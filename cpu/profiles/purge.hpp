// purge: which rows of an alignment are not copies of the query or of one another.
#pragma once

#include <cstdint>
#include <vector>

#include "profiles/cells.hpp"

namespace swsearch {

// The rows that stay: the query, then others in the order of their letters, so that it does not matter in which they
// came. A row goes if it differs from the query nowhere, or if it has this share of its own columns in common with a
// row that stays; columns where either is unknown are not counted. Rows are considered from the longest to the
// shortest, equally long ones by their letters. Above 1 nothing but copies of the query goes.
std::vector<int64_t> unique_rows(const Cells& cells, double identity, Patience& patience);

}  // namespace swsearch
