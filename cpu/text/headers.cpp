// headers: the first word of a header, and the rest.
#include "text/headers.hpp"

#include <algorithm>

namespace swsearch {

Header split_header(std::string_view header) {
  constexpr std::string_view kBlanks = " \t\v\f", kEnds = " \t\v\f\x01";
  header.remove_prefix(std::min(header.find_first_not_of(kBlanks), header.size()));
  const size_t end = std::min(header.find_first_of(kEnds), header.size());
  std::string_view rest = header.substr(end);
  rest.remove_prefix(std::min(rest.find_first_not_of(kBlanks), rest.size()));
  rest.remove_suffix(rest.size() - (rest.find_last_not_of(kBlanks) + 1));  // npos + 1 is 0
  return {header.substr(0, end), rest};
}

}  // namespace swsearch
