// table: numbers as blastp prints them, texts, and lines of both.
#include "text/table.hpp"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace swsearch {

namespace {

constexpr int kLongest = 400;  // letters of a double with three decimals, and of an integer

void write_integer(std::string& out, int64_t value) {
  char text[kLongest];
  out.append(text, std::to_chars(text, text + kLongest, value).ptr);
}

// A number as printf writes it, with a point in every locale. std::to_chars of doubles is lacking in macOS before 13.3.
void write_double(std::string& out, const char* format, int decimals, double value) {
  char text[kLongest];
  std::snprintf(text, kLongest, format, decimals, value);
  bool has_point = false;
  for (const char* at = text; *at != 0; ++at) {
    const bool is_point = std::strchr("0123456789+-einf", *at) == nullptr;  // of one byte or several
    if (!is_point || !has_point) out += is_point ? '.' : *at;
    has_point = has_point || is_point;
  }
}

// A number with at most three decimals, as printf writes it but for zero, which has no sign.
void write_fixed(std::string& out, int decimals, double value) {
  constexpr uint64_t kPowers[] = {1, 10, 100, 1000};
  const double size = std::fabs(value);
  if (!(size < 1e6)) return write_double(out, "%.*f", decimals, value);
  int exponent;
  const auto mantissa = static_cast<uint64_t>(std::ldexp(std::frexp(size, &exponent), 53));
  const uint64_t power = kPowers[decimals], product = mantissa * power;  // below 2^63
  const int shift = 53 - exponent;                                       // 33 or more
  uint64_t rounded = 0;
  if (shift < 64) {
    const uint64_t half = uint64_t{1} << (shift - 1), rest = product & (2 * half - 1);
    rounded = product >> shift;
    rounded += rest > half || (rest == half && rounded % 2 == 1);
  }
  if (value < 0 && rounded > 0) out += '-';
  write_integer(out, static_cast<int64_t>(rounded / power));
  if (decimals == 0) return;
  const size_t point = out.size();
  write_integer(out, static_cast<int64_t>(power + rounded % power));  // a one before the decimals
  out[point] = '.';
}

void write_evalue(std::string& out, double value, int small_decimals) {
  if (value < 1e-180) {
    out += "0.0";
  } else if (value < 0.0009) {
    write_double(out, "%.*e", small_decimals, value);
  } else {
    write_fixed(out, value < 0.1 ? 3 : value < 1.0 ? 2 : value < 10.0 ? 1 : 0, value);
  }
}

void write_bit_score(std::string& out, double value) {
  if (value > 99999) {
    write_double(out, "%.*e", 3, value);
  } else if (value > 99.9) {
    write_integer(out, static_cast<int64_t>(value));
  } else {
    const size_t begin = out.size();
    write_fixed(out, 1, value);
    if (out.size() < begin + 4) out.insert(begin, begin + 4 - out.size(), ' ');
  }
}

void write_number(std::string& out, Form form, double value) {
  if (std::isnan(value)) {
    out += "nan";
  } else if (form == Form::kEvalue || form == Form::kShortEvalue) {
    write_evalue(out, value, form == Form::kEvalue ? 2 : 0);
  } else if (form == Form::kBitScore) {
    write_bit_score(out, value);
  } else {
    write_fixed(out, form == Form::kOneDecimal ? 1 : form == Form::kTwoDecimals ? 2 : 3, value);
  }
}

void write_text(std::string& out, std::string_view text, char separator) {
  if (separator != ',' || text.find_first_of(",\"") == text.npos) {
    out += text;
    return;
  }
  out += '"';
  for (const char letter : text) out.append(letter == '"' ? 2 : 1, letter);
  out += '"';
}

}  // namespace

std::string write_table(const std::vector<Column>& columns, int64_t n_rows, char separator, std::string_view empty) {
  std::string out;
  for (int64_t row = 0; row < n_rows; ++row) {
    for (const Column& column : columns) {
      if (column.form == Form::kText) {
        const std::string_view text = column.texts[static_cast<size_t>(row)];
        write_text(out, text.empty() ? empty : text, separator);
      } else if (column.form == Form::kInteger) {
        write_integer(out, column.integers[row]);
      } else {
        write_number(out, column.form, column.doubles[row]);
      }
      out += separator;
    }
    out.back() = '\n';
  }
  return out;
}

}  // namespace swsearch
