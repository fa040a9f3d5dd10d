// The reader of pickles: opcodes, references, and bytes that nobody should trust.
#include "common/base/pickle_reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <unordered_set>
#include <vector>

namespace rt {
namespace {

using namespace std::string_literals;

struct Shown {
  std::string text;
  bool is_list = false, is_dict = false;
};

// Makes texts that show the values, and knows which of them somebody holds: a value that the reader
// forgets stays in `alive`, and one that it uses after it has given it away is not there.
class Shower {
 public:
  using Value = Shown*;
  using Stack = PickleStack<Shown*>;
  using Marks = PickleStack<size_t>;

  Shown* none() { return make("None"); }
  Shown* boolean(bool value) { return make(value ? "True" : "False"); }
  Shown* integer(int64_t value) { return make(fmt::format("{}", value)); }
  Shown* long_integer(std::string_view bytes) { return make(fmt::format("L{}", bytes.size())); }
  Shown* real(double value) { return make(fmt::format("{}", value)); }
  Shown* text(std::string_view bytes) { return make(fmt::format("'{}'", bytes)); }
  Shown* bytes(std::string_view bytes) { return make(fmt::format("b'{}'", bytes)); }
  Shown* byte_array(std::string_view bytes) { return make(fmt::format("a'{}'", bytes)); }
  Shown* tuple(Shown** items, size_t count) {
    std::string text = joined(items, count);
    for (size_t i = 0; i < count; ++i) drop(items[i]);
    return make("(" + text + ")");
  }
  Shown* list() {
    Shown* list = make("");
    list->is_list = true;
    return list;
  }
  Shown* dict() {
    Shown* dict = make("");
    dict->is_dict = true;
    return dict;
  }
  bool append(Shown* list, Shown** items, size_t count) {
    return known(list)->is_list && extend(list, items, count);
  }
  bool set_items(Shown* dict, Shown** items, size_t count) {
    return known(dict)->is_dict && extend(dict, items, count);
  }
  bool memoize(Shown* value) {
    memo_.push_back(known(value)->text);
    return true;
  }
  bool put(uint32_t number, Shown* value) { return number == memo_.size() && memoize(value); }
  Shown* get(uint32_t number) { return number < memo_.size() ? make(memo_[number]) : nullptr; }
  void unknown(uint8_t opcode) { refused = opcode; }
  void drop(Shown* value) {
    EXPECT_EQ(alive.erase(value), 1u);
    delete value;
  }

  std::unordered_set<Shown*> alive;
  uint8_t refused = 0;

 private:
  Shown* make(std::string text) {
    auto* shown = new Shown{std::move(text)};
    alive.insert(shown);
    return shown;
  }
  Shown* known(Shown* value) {
    EXPECT_TRUE(alive.contains(value));
    return value;
  }
  std::string joined(Shown** items, size_t count) {
    std::string text;
    for (size_t i = 0; i < count; ++i) text += (i ? " " : "") + known(items[i])->text;
    return text;
  }
  bool extend(Shown* container, Shown** items, size_t count) {
    container->text += "[" + joined(items, count) + "]";
    return true;
  }

  std::vector<std::string> memo_;
};

struct SmallShower : Shower {
  using Stack = SmallPickleStack<Shown*, 100>;
  using Marks = SmallPickleStack<size_t, 20>;
};

// How the value of the pickle is shown, or "refused". Every value is dropped by then.
template <class Builder = Shower>
std::string shown(std::string_view pickle, uint8_t* unknown = nullptr) {
  // On the heap, so that a sanitizer sees each byte that is read behind the end.
  std::unique_ptr<uint8_t[]> copy(new uint8_t[pickle.size()]);
  std::copy(pickle.begin(), pickle.end(), copy.get());
  Builder shower;
  std::string text = "refused";
  if (Shown* value = PickleReader<Builder>(Bytes{copy.get(), pickle.size()}, shower).read()) {
    text = value->text;
    shower.drop(value);
  }
  EXPECT_TRUE(shower.alive.empty()) << shower.alive.size() << " values were forgotten";
  if (unknown) *unknown = shower.refused;
  return text;
}

// A pickle of protocol 5 with these opcodes.
std::string of(const std::string& opcodes) { return "\x80\x05"s + opcodes + "."; }

TEST(PickleReader, ReadsNumbersOfEverySize) {
  EXPECT_EQ(shown(of("K\xff"s)), "255");
  EXPECT_EQ(shown(of("M\xff\xff"s)), "65535");
  EXPECT_EQ(shown(of("J\xfe\xff\xff\xff"s)), "-2");
  EXPECT_EQ(shown(of("\x8a\x00"s)), "0");
  EXPECT_EQ(shown(of("\x8a\x01\x80"s)), "-128");
  EXPECT_EQ(shown(of("\x8a\x05\x00\x00\x00\x00\x01"s)), "4294967296");
  EXPECT_EQ(shown(of("\x8b\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80"s)),
            "-9223372036854775808");
  EXPECT_EQ(shown(of("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00"s)), "L9");
  EXPECT_EQ(shown(of("G\xbf\xf8\x00\x00\x00\x00\x00\x00"s)), "-1.5");
}

TEST(PickleReader, ReadsTextsAndBytesByTheirLength) {
  EXPECT_EQ(shown(of("\x8c\x02hi"s)), "'hi'");
  EXPECT_EQ(shown(of("X\x02\x00\x00\x00hi"s)), "'hi'");
  EXPECT_EQ(shown(of("\x8d\x02\x00\x00\x00\x00\x00\x00\x00hi"s)), "'hi'");
  EXPECT_EQ(shown(of("C\x00"s)), "b''");
  EXPECT_EQ(shown(of("B\x01\x00\x00\x00."s)), "b'.'");
  EXPECT_EQ(shown(of("\x8e\x01\x00\x00\x00\x00\x00\x00\x00."s)), "b'.'");
  EXPECT_EQ(shown(of("\x96\x01\x00\x00\x00\x00\x00\x00\x00."s)), "a'.'");
}

TEST(PickleReader, ReadsContainersAndReferences) {
  EXPECT_EQ(shown(of("(N\x88\x89)t"s)), "(None True False ())");
  EXPECT_EQ(shown(of("NN\x85K\x01\x87"s)), "(None (None) 1)");
  EXPECT_EQ(shown(of("](K\x01K\x02\x65K\x03\x61"s)), "[1 2][3]");
  EXPECT_EQ(shown(of("}(\x8c\x01xN\x8c\x01yNuK\x01K\x02s"s)), "['x' None 'y' None][1 2]");
  EXPECT_EQ(shown(of("\x8c\x01x\x94h\x00j\x00\x00\x00\x00\x87"s)), "('x' 'x' 'x')");
  EXPECT_EQ(shown(of("\x8c\x01xq\x00\x8c\x01yr\x01\x00\x00\x00h\x01\x87"s)), "('x' 'y' 'y')");
  EXPECT_EQ(shown(of("\x95\x01\x00\x00\x00\x00\x00\x00\x00N"s)), "None");
}

TEST(PickleReader, NamesTheOpcodeThatIsNotPlainData) {
  uint8_t opcode = 0;
  EXPECT_EQ(shown(of("\x8c\x02os\x8c\x06system\x93"s), &opcode), "refused");
  EXPECT_EQ(opcode, 0x93);
}

TEST(PickleReader, ASmallStackHasALimit) {
  const auto nones = [](size_t count) { return of("(" + std::string(count, 'N') + "t"); };
  const auto nested = [](size_t depth) {
    return of(std::string(depth, '(') + "N" + std::string(depth, 't'));
  };
  EXPECT_EQ(shown<SmallShower>(nones(100)).size(), 2 + 100 * 5 - 1u);
  EXPECT_EQ(shown<SmallShower>(nones(101)), "refused");
  EXPECT_EQ(shown(nones(5000)).size(), 2 + 5000 * 5 - 1u);
  EXPECT_EQ(shown<SmallShower>(nested(20)), std::string(20, '(') + "None" + std::string(20, ')'));
  EXPECT_EQ(shown<SmallShower>(nested(21)), "refused");
  EXPECT_EQ(shown(nested(500)), std::string(500, '(') + "None" + std::string(500, ')'));
}

TEST(PickleReader, RefusesWhatTakesValuesThatAreNotThere) {
  for (const std::string& opcodes :
       {""s, "NN"s, "(N"s, "\x85"s, "N\x86"s, "NN\x87"s, "t"s, "a"s, "]a"s, "e"s, "(e"s, "]Ne"s,
        "N(Ne"s, "}(Nu"s, "s"s, "}Ns"s, "u"s, "(u"s, "](NNu"s, "\x94"s, "q\x00"s, "h\x00"s,
        "Nq\x01"s, "j\xff\xff\xff\xff"s,
        // Values below a mark belong to the opcode that closes it.
        "N(\x85t"s, "NN(\x86t"s, "NNN(\x87t"s, "](Nat"s, "}K\x01(K\x02st"s, "N(\x94t"s,
        "NNN(\x87(Ne"s}) {
    EXPECT_EQ(shown(of(opcodes)), "refused") << testing::PrintToString(opcodes);
  }
}

TEST(PickleReader, RefusesWhatIsNoPickle) {
  for (const std::string& bytes : {""s, "\x80"s, "\x80\x05"s, "N."s, "N.."s, "\x80\x05N"s})
    EXPECT_EQ(shown(bytes), "refused") << testing::PrintToString(bytes);
}

// This has opcodes of all kinds: some announce bytes, others take values.
const std::string kWhole = of(
    "\x95\x40\x00\x00\x00\x00\x00\x00\x00}\x94("
    "\x8c\x01x\x94K\x01X\x01\x00\x00\x00yM\x02\x01\x43\x01z"
    "](J\x01\x00\x00\x00\x8a\x02\x01\x02\x65\x8d\x01\x00\x00\x00\x00\x00\x00\x00wB\x01\x00\x00\x00v"
    "\x8e\x01\x00\x00\x00\x00\x00\x00\x00u\x96\x01\x00\x00\x00\x00\x00\x00\x00tG?\xf8\x00\x00\x00"
    "\x00\x00\x00)u\x8b\x01\x00\x00\x00\x05h\x01q\x02j\x02\x00\x00\x00r\x03\x00\x00\x00\x86s"
    "N\x88\x89\x87N]Na\x87\x86"s);

TEST(PickleReader, ReadsNothingBehindATruncatedEnd) {
  ASSERT_NE(shown(kWhole), "refused");
  for (size_t size = 0; size < kWhole.size(); ++size)
    EXPECT_EQ(shown(std::string_view(kWhole).substr(0, size)), "refused") << size;
}

TEST(PickleReader, ALengthBeyondTheEndIsRefusedWithoutMemoryForIt) {
  for (const std::string& opcodes :
       {"\x8c\xff"s, "X\xff\xff\xff\xff"s, "\x8d\xff\xff\xff\xff\xff\xff\xff\xff"s, "C\xff"s,
        "B\xff\xff\xff\xff"s, "\x8e\xff\xff\xff\xff\xff\xff\xff\xff"s,
        "\x96\xff\xff\xff\xff\xff\xff\xff\x7f"s, "\x8a\xff"s, "\x8b\xff\xff\xff\xff"s, "\x95\xff"s})
    EXPECT_EQ(shown(of(opcodes)), "refused") << testing::PrintToString(opcodes);
}

TEST(PickleReader, DamagedBytesLoseNoValue) {
  std::mt19937 random(7);
  for (int round = 0; round < 20'000; ++round) {
    std::string damaged = kWhole;
    for (int i = 0; i < 1 + round % 4; ++i)
      damaged[2 + random() % (damaged.size() - 2)] = static_cast<char>(random());
    shown(damaged);
    shown<SmallShower>(damaged);
  }
  // Opcodes that nest, without any order.
  const std::string opcodes = "N(t)]ae}su\x85\x86\x87\x94"s;
  for (int round = 0; round < 20'000; ++round) {
    std::string any;
    for (int i = 0; i < 12; ++i) any += opcodes[random() % opcodes.size()];
    shown(of(any));
    shown<SmallShower>(of(any));
  }
}

}  // namespace
}  // namespace rt
