// Builds Prometheus text (exposition format 0.0.4) sample by sample. In the text each name appears
// once, with its type and all its samples. Not thread-safe.
//
// A sample whose type differs from that of earlier samples of the same name is dropped, because
// Prometheus would refuse the whole scrape.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rt::metrics {

enum class Kind { kCounter, kGauge, kHistogram };
using Labels = std::vector<std::pair<std::string_view, std::string>>;

class Exposition {
 public:
  // `common` are labels that every sample gets in front of its own.
  explicit Exposition(const Labels& common = {}) : common_(text_of(common)) {}

  void gauge(std::string_view name, std::string_view help, double value,
             const Labels& labels = {}) {
    add(name, Kind::kGauge, help, value, text_of(labels));
  }
  // By convention `name` ends with _total.
  void counter(std::string_view name, std::string_view help, double value,
               const Labels& labels = {}) {
    add(name, Kind::kCounter, help, value, text_of(labels));
  }
  // `counts` has the observations of each bucket, not cumulative, and one bucket more than
  // `bounds`; missing counts are zero. `labels` is as in add().
  void histogram(std::string_view name, std::string_view help, std::span<const double> bounds,
                 std::span<const int64_t> counts, double sum, const std::string& labels);
  // Adds a sample. `labels` is a text that text_of() returns.
  void add(std::string_view name, Kind kind, std::string_view help, double value,
           const std::string& labels);

  std::string text() const;
  // Returns name="value",... with values escaped as the format requires.
  static std::string text_of(const Labels& labels);
  // Turn any text into a valid name of a metric or a label: other characters become underscores.
  static std::string metric_name(std::string_view raw);
  static std::string label_name(std::string_view raw);

 private:
  struct Family {
    Kind kind;
    std::string help, samples;
  };
  // Finds or adds the family of a name; null if the name already has another kind.
  Family* family(std::string_view name, Kind kind, std::string_view help);
  void sample(std::string_view name, const std::string& labels, double value,
              std::string* out) const;

  std::string common_;
  std::map<std::string, Family, std::less<>> families_;
};

}  // namespace rt::metrics
