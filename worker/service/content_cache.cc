#include "worker/service/content_cache.h"

namespace rt::worker {
namespace {

constexpr int64_t kKeptUs = 500'000;

}  // namespace

ContentCache::ContentCache(net::Loop& loop, const std::unique_ptr<RefTable>& refs)
    : loop_(loop), refs_(refs) {}

ContentCache::~ContentCache() = default;

Ref ContentCache::find(const ContentHash& content) {
  auto known = ids_.find(content);
  ObjectEntry* entry = known == ids_.end() ? nullptr : refs_->find(known->second);
  if (!entry) return {};
  Ref ref(entry);
  keep(ref);
  return ref;
}

void ContentCache::add(const ContentHash& content, const Ref& argument) {
  ids_[content] = argument.id();
  contents_[argument.id()] = content;
  keep(argument);
}

void ContentCache::forget(const ObjectId& id) {
  if (contents_.empty()) return;
  auto known = contents_.find(id);
  if (known == contents_.end()) return;
  ids_.erase(known->second);
  contents_.erase(known);
}

void ContentCache::keep(const Ref& argument) {
  recent_ = argument;
  recent_until_us_ = loop_.now_us() + kKeptUs;
  if (timer_set_) return;
  timer_set_ = true;
  loop_.run_after(kKeptUs, [this] {
    assert_locked();
    drop();
  });
}

void ContentCache::drop() {
  const int64_t left_us = recent_until_us_ - loop_.now_us();
  timer_set_ = left_us > 0;
  if (left_us > 0) {
    loop_.run_after(left_us, [this] {
      assert_locked();
      drop();
    });
  } else {
    recent_.reset();
  }
}

}  // namespace rt::worker
