#include "cli/terminal/completion.h"

#include <algorithm>
#include <filesystem>

namespace rt::cli {
namespace {

const CommandInfo* find_command(const std::vector<CommandInfo>& all, const std::string& name) {
  auto it = std::find_if(all.begin(), all.end(),
                         [&](const CommandInfo& info) { return info.name == name; });
  return it == all.end() ? nullptr : &*it;
}

void offer(std::vector<Candidate>& out, const std::string& start, const std::string& word,
           const std::string& what) {
  if (word.starts_with(start)) out.push_back({word, what});
}

void offer_commands(std::vector<Candidate>& out, const std::vector<CommandInfo>& all,
                    const std::string& group, const std::string& start) {
  std::string prefix = group.empty() ? "" : group + " ";
  for (const auto& info : all) {
    if (!info.name.starts_with(prefix)) continue;
    std::string rest = info.name.substr(prefix.size());
    if (!rest.empty() && rest.find(' ') == std::string::npos) offer(out, start, rest, info.brief);
  }
}

bool names_file(const std::string& value_name) {
  return value_name.find("FILE") != std::string::npos ||
         value_name.find("DIR") != std::string::npos;
}

// Offers the values of `option` that begin with `start`, each preceded by `prefix`.
void offer_values(std::vector<Candidate>& out, const OptionInfo& option, const std::string& prefix,
                  const std::string& start) {
  for (const auto& value : option.choices) {
    if (value.starts_with(start)) out.push_back({prefix + value, ""});
  }
  if (!names_file(option.value_name)) return;
  for (auto& file : files_beginning(start)) out.push_back({prefix + file.word, ""});
}

const OptionInfo* option_typed(const CommandInfo& info, const std::string& word) {
  if (word.starts_with("--")) return info.option(word.substr(2));
  if (word.size() != 2 || word[0] != '-') return nullptr;
  auto it = std::find_if(info.options.begin(), info.options.end(),
                         [&](const OptionInfo& option) { return option.letter == word.substr(1); });
  return it == info.options.end() ? nullptr : &*it;
}

// The number of positional words in `words`, not counting the values of options.
size_t positionals_given(const CommandInfo& info, const Words& words) {
  size_t count = 0;
  for (size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with("-")) {
      ++count;
      continue;
    }
    const OptionInfo* option = option_typed(info, words[i]);
    if (option && !option->value_name.empty()) ++i;
  }
  return count;
}

void offer_positional(std::vector<Candidate>& out, const CommandInfo& info, size_t at,
                      const std::string& start) {
  if (at >= info.positionals.size()) return;
  for (const std::string& word : info.positionals[at].choices) offer(out, start, word, "");
}

}  // namespace

std::vector<Candidate> files_beginning(const std::string& start) {
  namespace fs = std::filesystem;
  std::vector<Candidate> found;
  size_t slash = start.rfind('/');
  std::string directory = slash == std::string::npos ? "" : start.substr(0, slash + 1),
              name = start.substr(directory.size());
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory.empty() ? "." : directory, error)) {
    std::string file = entry.path().filename();
    bool hidden = file.starts_with(".") && !name.starts_with(".");
    if (!file.starts_with(name) || hidden) continue;
    std::error_code ignored;
    found.push_back({directory + file + (entry.is_directory(ignored) ? "/" : ""), ""});
  }
  std::sort(found.begin(), found.end(),
            [](const Candidate& a, const Candidate& b) { return a.word < b.word; });
  return found;
}

std::vector<Candidate> complete(const std::vector<CommandInfo>& all, const Words& given) {
  std::vector<Candidate> out;
  Words words = given;
  std::string start = words.empty() ? "" : words.back();
  if (!words.empty()) words.pop_back();
  bool help = !words.empty() && words[0] == "help";
  if (help) words.erase(words.begin());
  if (words.empty()) {
    offer_commands(out, all, "", start);
    return out;
  }
  const CommandInfo* info = find_command(all, words[0]);
  if (words.size() > 1) {
    if (const CommandInfo* inner = find_command(all, words[0] + " " + words[1])) {
      info = inner;
      words.erase(words.begin());
    }
  }
  if (!info) return out;
  words.erase(words.begin());
  if (words.empty() && !start.starts_with("-")) offer_commands(out, all, info->name, start);
  if (help || info->is_group || std::find(words.begin(), words.end(), "--") != words.end()) {
    return help || info->is_group ? out : files_beginning(start);
  }
  if (size_t equals = start.find('='); start.starts_with("--") && equals != std::string::npos) {
    if (const OptionInfo* option = option_typed(*info, start.substr(0, equals)))
      offer_values(out, *option, start.substr(0, equals + 1), start.substr(equals + 1));
    return out;
  }
  const OptionInfo* before = words.empty() ? nullptr : option_typed(*info, words.back());
  if (before && !before->value_name.empty()) {
    offer_values(out, *before, "", start);
    return out;
  }
  if (start.starts_with("-")) {
    for (const auto& option : info->options) {
      if (!option.hidden) offer(out, start, "--" + option.name, option.help);
    }
    return out;
  }
  offer_positional(out, *info, positionals_given(*info, words), start);
  return out;
}

}  // namespace rt::cli
