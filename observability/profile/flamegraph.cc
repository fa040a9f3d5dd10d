// Draws a flame graph as one SVG in icicle layout: the outermost frame is on top, callees hang
// below their callers, and a box is as wide as its share of the samples. The script in it zooms on
// a click, searches with Ctrl-F or the input field, and names the box under the pointer.
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "observability/profile/render.h"

namespace rt::profile {
namespace {

constexpr double kWidth = 1200, kTop = 72, kRow = 17, kLeastWidth = 0.3;

struct Box {
  int64_t looks = 0;
  bool native = false;
  std::map<std::string, Box> callees;
};

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

// The colour depends on the name only: warm for functions of the language, cool for native ones.
std::string colour(const std::string& name, bool native) {
  uint32_t hash = 2166136261u;
  for (unsigned char c : name) hash = (hash ^ c) * 16777619u;
  return native ? fmt::format("hsl({},45%,{}%)", 190 + hash % 40, 66 + hash / 64 % 12)
                : fmt::format("hsl({},75%,{}%)", 18 + hash % 36, 60 + hash / 64 % 12);
}

struct Drawing {
  std::string body;
  int64_t all = 0;
  int depth = 0;
};

void draw(const std::string& name, const Box& box, double x, int row, Drawing* out) {
  const double width = kWidth * static_cast<double>(box.looks) / static_cast<double>(out->all);
  if (width < kLeastWidth) return;
  out->depth = std::max(out->depth, row);
  const double percent = 100.0 * static_cast<double>(box.looks) / static_cast<double>(out->all);
  std::string text = escaped(name);
  out->body += fmt::format(
      "<g data-x=\"{:.3f}\" data-w=\"{:.3f}\" data-r=\"{}\"><title>{} ({} samples, {:.2f}%)</title>"
      "<rect x=\"{:.2f}\" y=\"{:.0f}\" width=\"{:.2f}\" height=\"{:.0f}\" fill=\"{}\"/><text "
      "x=\"{:.2f}\" y=\"{:.0f}\"></text></g>\n",
      x, width, row, text, box.looks, percent, x, kTop + row * kRow, width, kRow - 1,
      colour(name, box.native), x + 3, kTop + row * kRow + 12);
  for (const auto& [callee, inner] : box.callees) {
    draw(callee, inner, x, row + 1, out);
    x += kWidth * static_cast<double>(inner.looks) / static_cast<double>(out->all);
  }
}

constexpr const char* kStyle =
    R"(<style>text{font:12px sans-serif;pointer-events:none}g:hover rect{stroke:#000;stroke-width:.7;cursor:pointer}rect.found{fill:#c3f!important}input{width:100%;box-sizing:border-box;font:12px sans-serif}.link{pointer-events:all;cursor:pointer;fill:#06c}</style>)";

constexpr const char* kScript = R"JS(<script><![CDATA[
(function () {
  var root = document.currentScript ? document.currentScript.parentNode : document.querySelector('svg');
  var boxes = Array.prototype.slice.call(root.querySelectorAll('g[data-x]')), drawn = 1200, total = drawn, shown = [0, drawn, 0];
  function label(g, width) {
    var name = g.querySelector('title').textContent, text = g.querySelector('text'), room = Math.floor((width - 6) / 7);
    text.textContent = room < 3 ? '' : name.length <= room ? name : name.slice(0, room - 2) + '..';
  }
  function show(x, w, row) {
    shown = [x, w, row];
    boxes.forEach(function (g) {
      var gx = +g.dataset.x, gw = +g.dataset.w, gr = +g.dataset.r, caller = gr < row && gx <= x + 1e-3 && gx + gw >= x + w - 1e-3;
      var inside = gr >= row && gx >= x - 1e-3 && gx + gw <= x + w + 1e-3;
      g.style.display = caller || inside ? '' : 'none';
      g.style.opacity = caller ? 0.5 : 1;
      var left = caller ? 0 : (gx - x) / w * total, width = caller ? total : gw / w * total, r = g.querySelector('rect');
      r.setAttribute('x', left); r.setAttribute('width', Math.max(0, width));
      g.querySelector('text').setAttribute('x', left + 3);
      label(g, width);
    });
  }
  var field = root.querySelector('#search');
  function find() {
    var word = field.value, match, seen = 0;
    try { match = word ? new RegExp(word, 'i') : null; } catch (e) { return; }
    var spans = [];
    boxes.forEach(function (g) {
      var hit = match && match.test(g.querySelector('title').textContent);
      g.querySelector('rect').classList.toggle('found', !!hit);
      if (hit) spans.push([+g.dataset.x, +g.dataset.x + +g.dataset.w]);
    });
    spans.sort(function (a, b) { return a[0] - b[0]; });
    var end = 0;
    spans.forEach(function (s) { seen += Math.max(0, s[1] - Math.max(end, s[0])); end = Math.max(end, s[1]); });
    root.querySelector('#found').textContent = match ? 'found: ' + (100 * seen / drawn).toFixed(2) + '%' : '';
  }
  boxes.forEach(function (g) {
    g.addEventListener('click', function () { show(+g.dataset.x, +g.dataset.w, +g.dataset.r); });
    g.addEventListener('mouseover', function () { root.querySelector('#under').textContent = g.querySelector('title').textContent; });
  });
  root.querySelector('#reset').addEventListener('click', function () { show(0, drawn, 0); });
  field.addEventListener('input', find);
  window.addEventListener('keydown', function (e) { if (e.ctrlKey && e.key === 'f') { e.preventDefault(); field.focus(); } });
  // As wide as there is room: letters keep their size.
  function fit() {
    total = Math.max(300, root.clientWidth || drawn);
    var box = root.viewBox.baseVal;
    root.setAttribute('viewBox', '0 0 ' + total + ' ' + box.height);
    root.setAttribute('height', box.height);
    root.querySelector('#ground').setAttribute('width', total);
    var title = root.querySelector('#title');
    title.style.fontSize = '14px';
    title.setAttribute('x', total / 2);
    title.style.fontSize = Math.min(14, 14 * (total - 16) / Math.max(1, title.getComputedTextLength())) + 'px';
    root.querySelector('#searching').setAttribute('x', total - 168);
    root.querySelector('#found').setAttribute('x', total - 8);
    show(shown[0], shown[1], shown[2]);
  }
  window.addEventListener('resize', fit);
  fit();
})();
]]></script>)JS";

}  // namespace

std::string flamegraph(const AllSamples& all, const std::string& title) {
  Box root;
  for (const auto& process : all) {
    for (const auto& stack : process.samples.stacks()) {
      const int64_t looks = stack.on_cpu() + stack.off_cpu();
      const auto& thread = process.samples.threads(static_cast<int>(stack.thread()));
      Box* box = &root;
      auto descend = [&](const std::string& name, bool native) {
        box = &box->callees[name];
        box->looks += looks;
        box->native = native;
      };
      root.looks += looks;
      descend(process.title, false);
      descend(thread_text(thread), false);
      for (uint32_t id : stack.frames()) {
        const auto& frame = process.samples.frames(static_cast<int>(id));
        descend(frame_text(frame), frame.native());
      }
    }
  }
  Drawing drawing;
  drawing.all = std::max<int64_t>(1, root.looks);
  draw("all", root, 0, 0, &drawing);
  const double height = kTop + (drawing.depth + 2) * kRow + 20;
  return fmt::format(
             "<?xml version=\"1.0\" standalone=\"no\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" "
             "version=\"1.1\" width=\"100%\" viewBox=\"0 0 {:.0f} {:.0f}\">\n{}\n"
             "<rect id=\"ground\" x=\"0\" y=\"0\" width=\"{:.0f}\" height=\"{:.0f}\" "
             "fill=\"#fcfcf8\"/>\n<text id=\"title\" x=\"600\" y=\"18\" text-anchor=\"middle\" "
             "style=\"font-size:14px\">{}</text>\n"
             "<text id=\"reset\" class=\"link\" x=\"8\" y=\"42\">Reset zoom</text><foreignObject "
             "id=\"searching\" x=\"1032\" y=\"26\" width=\"160\" height=\"24\">"
             "<input xmlns=\"http://www.w3.org/1999/xhtml\" id=\"search\" type=\"search\" "
             "placeholder=\"Search (regular expression)\"/></foreignObject>"
             "<text id=\"found\" x=\"1192\" y=\"64\" text-anchor=\"end\"></text><text id=\"under\" "
             "x=\"8\" y=\"64\">{}</text>\n",
             kWidth, height, kStyle, kWidth, height, escaped(title),
             root.looks == 0 ? "no samples: no thread was in the state that --mode selects" : "") +
         drawing.body + kScript + "\n</svg>\n";
}

}  // namespace rt::profile
