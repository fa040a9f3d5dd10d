// Prometheus text (exposition format 0.0.4), put together sample by sample: each name once, with
// its type, and its samples under it.
//
// A name that comes with another type than at first is left out: a scrape with both would be
// refused as a whole.
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
  // `common`: labels of every sample, in front of its own.
  explicit Exposition(const Labels& common = {}) : common_(text_of(common)) {}

  void gauge(std::string_view name, std::string_view help, double value,
             const Labels& labels = {}) {
    add(name, Kind::kGauge, help, value, text_of(labels));
  }
  // `name` ends with _total.
  void counter(std::string_view name, std::string_view help, double value,
               const Labels& labels = {}) {
    add(name, Kind::kCounter, help, value, text_of(labels));
  }
  // `counts`: observations of each bucket, one more than bounds; what is missing is none.
  void histogram(std::string_view name, std::string_view help, std::span<const double> bounds,
                 std::span<const int64_t> counts, double sum, const std::string& labels);
  // `labels`: as text_of() makes them.
  void add(std::string_view name, Kind kind, std::string_view help, double value,
           const std::string& labels);

  std::string text() const;
  // name="value",... with what the format wants escaped.
  static std::string text_of(const Labels& labels);
  // A metric's or a label's name: what does not fit becomes an underscore.
  static std::string metric_name(std::string_view raw);
  static std::string label_name(std::string_view raw);

 private:
  struct Family {
    Kind kind;
    std::string help, samples;
  };
  // Null: the name has another kind already.
  Family* family(std::string_view name, Kind kind, std::string_view help);
  void sample(std::string_view name, const std::string& labels, double value,
              std::string* out) const;

  std::string common_;
  std::map<std::string, Family, std::less<>> families_;
};

}  // namespace rt::metrics
