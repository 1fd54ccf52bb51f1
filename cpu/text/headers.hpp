// headers: identifiers and descriptions of FASTA headers.
#pragma once

#include <string_view>

namespace swsearch {

struct Header {
  std::string_view identifier, description;
};

// The identifier is the first word; a control-A, which in NCBI's merged headers stands between the headers of identical
// sequences, ends it too. The description is all of the rest without blanks around it, control-As included.
Header split_header(std::string_view header);

}  // namespace swsearch
