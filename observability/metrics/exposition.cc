#include "observability/metrics/exposition.h"

#include <fmt/format.h>

#include <cmath>

#include "common/base/utf8.h"

namespace rt::metrics {
namespace {

// Valid names are [a-zA-Z_:][a-zA-Z0-9_:]*, for labels without the colon.
std::string name_of(std::string_view raw, bool label) {
  std::string name(raw);
  for (char& c : name) {
    bool fits = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                c == '_' || (c == ':' && !label);
    if (!fits) c = '_';
  }
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) name.insert(name.begin(), '_');
  return name;
}

std::string escaped(std::string_view text, bool quotes) {
  std::string out;
  for (char c : valid_utf8(text)) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '"' && quotes) {
      out += "\\\"";
    } else {
      out += c;
    }
  }
  return out;
}

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

std::string_view type_name(Kind kind) {
  return kind == Kind::kCounter ? "counter" : kind == Kind::kGauge ? "gauge" : "histogram";
}

}  // namespace

std::string Exposition::metric_name(std::string_view raw) { return name_of(raw, false); }
std::string Exposition::label_name(std::string_view raw) { return name_of(raw, true); }

std::string Exposition::text_of(const Labels& labels) {
  std::string text;
  for (const auto& [name, value] : labels)
    text += fmt::format("{}{}=\"{}\"", text.empty() ? "" : ",", name, escaped(value, true));
  return text;
}

Exposition::Family* Exposition::family(std::string_view name, Kind kind, std::string_view help) {
  auto it = families_.find(name);
  if (it == families_.end())
    it = families_.emplace(std::string(name), Family{kind, std::string(help), ""}).first;
  return it->second.kind == kind ? &it->second : nullptr;
}

void Exposition::sample(std::string_view name, const std::string& labels, double value,
                        std::string* out) const {
  const char* comma = common_.empty() || labels.empty() ? "" : ",";
  if (common_.empty() && labels.empty()) {
    *out += fmt::format("{} {}\n", name, number(value));
  } else {
    *out += fmt::format("{}{{{}{}{}}} {}\n", name, common_, comma, labels, number(value));
  }
}

void Exposition::add(std::string_view name, Kind kind, std::string_view help, double value,
                     const std::string& labels) {
  if (Family* in = family(name, kind, help)) sample(name, labels, value, &in->samples);
}

void Exposition::histogram(std::string_view name, std::string_view help,
                           std::span<const double> bounds, std::span<const int64_t> counts,
                           double sum, const std::string& labels) {
  Family* in = family(name, Kind::kHistogram, help);
  if (!in) return;
  const std::string base(name);
  int64_t count = 0;
  for (size_t i = 0; i <= bounds.size(); ++i) {
    if (i < counts.size()) count += counts[i];
    std::string bound = fmt::format("{}{}le=\"{}\"", labels, labels.empty() ? "" : ",",
                                    number(i < bounds.size() ? bounds[i] : INFINITY));
    sample(base + "_bucket", bound, static_cast<double>(count), &in->samples);
  }
  sample(base + "_sum", labels, sum, &in->samples);
  sample(base + "_count", labels, static_cast<double>(count), &in->samples);
}

std::string Exposition::text() const {
  std::string text;
  for (const auto& [name, family] : families_) {
    text += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n{3}", name, escaped(family.help, false),
                        type_name(family.kind), family.samples);
  }
  return text;
}

}  // namespace rt::metrics
