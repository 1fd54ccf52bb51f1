// table: lines of a table, from columns of texts, integers and doubles.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace swsearch {

// How the values of a column are written; named in kForms.
enum class Form {
  kText,
  kInteger,
  kEvalue,       // as blastp's tables: 2.12e-68, 0.001, 0.50, 26
  kShortEvalue,  // as blastp's pairwise report: 2e-68
  kBitScore,     // as blastp: 9.6 with a blank before it, 85.1, 209, 1.120e+05; above 99.9 cut, not rounded
  kOneDecimal,
  kTwoDecimals,
  kThreeDecimals,
};

struct NamedForm {
  std::string_view name;
  Form form;
};

constexpr NamedForm kForms[] = {
    {"string", Form::kText},      {"int64", Form::kInteger},         {"evalue", Form::kEvalue},
    {"short_evalue", Form::kShortEvalue}, {"bit_score", Form::kBitScore}, {".1f", Form::kOneDecimal},
    {".2f", Form::kTwoDecimals},  {".3f", Form::kThreeDecimals},
};

// Values of one kind, by form: UTF-8, int64 or double. NaN is written as nan.
struct Column {
  Form form;
  std::vector<std::string_view> texts;
  const int64_t* integers;
  const double* doubles;
};

// The first n_rows values of all columns, a line for each row. An empty text is written as `empty`. Where commas
// separate values, those that hold a comma or a quote are quoted.
std::string write_table(const std::vector<Column>& columns, int64_t n_rows, char separator, std::string_view empty);

}  // namespace swsearch
