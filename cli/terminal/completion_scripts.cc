// The completion scripts for each shell. They run `PROGRAM __complete` and offer what it prints.
#include "cli/terminal/completion.h"

namespace rt::cli {
namespace {

// Bash splits words at '=' (COMP_WORDBREAKS). The script therefore splits the line itself, and cuts
// the part up to '=' from the candidates, because bash inserts only what follows it.
constexpr char kBash[] = R"sh(# bash completion for PROGRAM (made by `PROGRAM completion bash`)
_PROGRAM_complete() {
  local line="${COMP_LINE:0:COMP_POINT}" words candidate
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=("")
  local current="${words[-1]}" cut=""
  [[ $current == --*=* && $COMP_WORDBREAKS == *=* ]] && cut="${current%%=*}="
  COMPREPLY=()
  while IFS=$'\t' read -r candidate _; do
    [[ $candidate == */ ]] && compopt -o nospace 2>/dev/null
    COMPREPLY+=("${candidate#"$cut"}")
  done < <("${words[0]}" __complete "${words[@]:1}" 2>/dev/null)
}
complete -F _PROGRAM_complete NAMES
)sh";

constexpr char kZsh[] = R"sh(#compdef NAMES
# zsh completion for PROGRAM (made by `PROGRAM completion zsh`)
_PROGRAM() {
  local -a offered
  local candidate what
  while IFS=$'\t' read -r candidate what; do
    offered+=("${candidate//:/\\:}${what:+:$what}")
  done < <("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)
  _describe -V 'PROGRAM' offered
}
if [[ "$funcstack[1]" == _PROGRAM ]]; then _PROGRAM "$@"; else compdef _PROGRAM NAMES; fi
)sh";

constexpr char kFish[] = R"sh(# fish completion for PROGRAM (made by `PROGRAM completion fish`)
function __PROGRAM_complete
  set -l words (commandline -opc) (commandline -ct)
  $words[1] __complete $words[2..-1] 2>/dev/null
end
for name in NAMES
  complete -c $name -f -a '(__PROGRAM_complete)'
end
)sh";

void replace_all(std::string_view place, const std::string& with, std::string* text) {
  for (size_t at = text->find(place); at != std::string::npos;
       at = text->find(place, at + with.size()))
    text->replace(at, place.size(), with);
}

}  // namespace

std::optional<std::string> completion_script(const std::string& shell, const std::string& program) {
  const char* form = shell == "bash"   ? kBash
                     : shell == "zsh"  ? kZsh
                     : shell == "fish" ? kFish
                                       : nullptr;
  if (!form) return std::nullopt;
  // Both names are complete without a script of their own.
  std::string names = "rayctl ray";
  if (program != "rayctl" && program != "ray") names += " " + program;
  std::string script = form;
  replace_all("PROGRAM", program, &script);
  replace_all("NAMES", names, &script);
  return script;
}

}  // namespace rt::cli
