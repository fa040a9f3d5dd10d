#include "daemons/object_store/core/fetches.h"

#include <fmt/core.h>

#include <algorithm>

namespace rt::store {
namespace {

// Enough for those that leave between two looks of a worker at the list of nodes.
constexpr size_t kGoneNodesKept = 1000;

}  // namespace

Fetches::Fetches(Options options, FetchSink& sink)
    : options_(options), sink_(sink), queue_(options.capacity, options.max_bytes) {}

Fetches::~Fetches() = default;

std::string address_of(const Source& source) {
  return source.ip.find(':') == std::string::npos ? fmt::format("{}:{}", source.ip, source.port)
                                                  : fmt::format("[{}]:{}", source.ip, source.port);
}

Fetches::Fetch* Fetches::find(FetchId fetch) {
  auto it = fetches_.find(fetch);
  return it == fetches_.end() ? nullptr : &it->second;
}

const Fetches::Fetch* Fetches::receiving(const ObjectId& object) const {
  auto it = by_object_.find(object);
  if (it == by_object_.end()) return nullptr;
  const Fetch& fetch = fetches_.at(it->second);
  return fetch.step == Step::kFinished ? nullptr : &fetch;
}

// ---- the queue

void Fetches::start(std::vector<FetchOrder> orders, Now now) {
  for (FetchOrder& order : orders) queue_.add(std::move(order));
  launch_queued(now);
}

void Fetches::launch_queued(Now now) {
  while (auto launch = queue_.take(by_object_)) {
    const FetchId number = ++last_fetch_;
    Fetch& fetch = fetches_[number];
    fetch.number = number;
    fetch.object = launch->order.object;
    fetch.sources = SourceLine(std::move(launch->order.sources), now);
    for (const NodeId& node : gone_nodes_) fetch.sources.node_gone(node);
    fetch.sources.pass_gone();
    fetch.counted_bytes = launch->bytes;
    by_object_[fetch.object] = number;
    next_source(fetch, now);
  }
}

// ---- sources

void Fetches::next_source(Fetch& fetch, Now now) {
  if (!fetch.sources.current() && !fetch.sources.start_again(options_.patience_us, now))
    return fail_without_source(fetch);
  fetch.step = Step::kConnecting;
  fetch.source_failed = fetch.chunks_came = fetch.ask_again = false;
  fetch.progress_us = now.steady_us;
  sink_.connect(fetch.number, fetch.object, *fetch.sources.current());
}

void Fetches::fail_source(Fetch& fetch, const Error& why, Now now) {
  if (!fetch.source_failed) {
    const std::string source = address_of(*fetch.sources.current());
    sink_.source_failed(fetch.object, source, why);
    if (why.code == Code::kTimeout) fetch.sources.unanswered();
    fetch.last_error = why;
    fetch.last_asked = source;
    const bool connection_ended = why.code == Code::kUnavailable || why.code == Code::kTimeout;
    fetch.ask_again = connection_ended && fetch.chunks_came;
  }
  fetch.source_failed = true;
  // All calls end before the next source is asked.
  if (fetch.calls == 0) leave_source(fetch, now);
}

void Fetches::leave_source(Fetch& fetch, Now now) {
  if (!fetch.ask_again || fetch.sources.is_current_gone()) fetch.sources.advance();
  next_source(fetch, now);
}

void Fetches::connected(FetchId id) {
  Fetch* fetch = find(id);
  if (!fetch) return;
  RT_CHECK(fetch->step == Step::kConnecting);
  fetch->step = Step::kDescribing;
  begin_call(*fetch);
  sink_.describe(id, fetch->object);
}

void Fetches::connect_failed(FetchId id, const Error& why, Now now) {
  Fetch* fetch = find(id);
  if (!fetch) return;
  RT_CHECK(fetch->step == Step::kConnecting);
  fail_source(*fetch, why, now);
  launch_queued(now);
}

void Fetches::described(FetchId id, const Result<Description>& answer, Now now) {
  Fetch* fetch = find(id);
  if (!fetch) return;
  RT_CHECK(fetch->step == Step::kDescribing);
  fetch->calls--;
  if (answer) {
    fetch->progress_us = now.steady_us;
    fetch->sources.heard(now);
  }
  if (!answer) {
    fail_source(*fetch, answer.error(), now);
  } else if (answer->size < 0) {
    fail_source(*fetch, make_error(Code::kProtocol, "it named a negative size"), now);
  } else if (fetch->offset < 0) {
    fetch->step = Step::kCreating;
    fetch->owner = answer->owner;
    // An object that is larger than the arena gets no room.
    fetch->chunks = ChunkMap(std::min(answer->size, options_.capacity + 1), options_.chunk_bytes);
    sink_.create(id, {fetch->object, answer->size, fetch->owner});
  } else if (answer->size != fetch->chunks.size()) {
    fail_source(*fetch,
                make_error(Code::kProtocol, fmt::format("its copy has {} bytes, another one {}",
                                                        answer->size, fetch->chunks.size())),
                now);
  } else {
    fetch->step = Step::kPulling;
    request_chunks(*fetch);
  }
  launch_queued(now);
}

void Fetches::created(FetchId id, const Result<int64_t>& offset, Now now) {
  Fetch* fetch = find(id);
  RT_CHECK(fetch && fetch->step == Step::kCreating);
  if (offset) {
    fetch->offset = *offset;
    fetch->progress_us = now.steady_us;
    fetch->step = Step::kPulling;
    request_chunks(*fetch);
  } else {
    fail(*fetch, offset.error());
  }
  launch_queued(now);
}

void Fetches::nodes_gone(const std::vector<NodeId>& nodes) {
  for (const NodeId& node : nodes) {
    gone_nodes_.push_back(node);
    if (gone_nodes_.size() > kGoneNodesKept) gone_nodes_.pop_front();
    for (auto& [number, fetch] : fetches_) {
      fetch.sources.node_gone(node);
      // A connection that is being made ends by its time-out.
      if (fetch.calls > 0 && fetch.sources.current()->node == node)
        sink_.close(number, make_error(Code::kUnavailable, "its node has left the cluster"));
    }
  }
}

// ---- chunks

void Fetches::request_chunks(Fetch& fetch) {
  if (fetch.chunks.is_complete()) return seal(fetch);
  while (!fetch.source_failed && fetch.calls < options_.chunks_in_flight) {
    auto chunk = fetch.chunks.ask_next();
    if (!chunk) return;
    const Range range = fetch.chunks.range_of(*chunk);
    begin_call(fetch);
    sink_.pull({fetch.number, fetch.object, *chunk, range, fetch.offset + range.offset});
  }
}

void Fetches::pulled(FetchId id, size_t chunk, const Result<int64_t>& total_size, Now now) {
  Fetch* fetch = find(id);
  if (!fetch) return;
  RT_CHECK(fetch->step == Step::kPulling);
  fetch->calls--;
  if (!total_size) {
    fetch->chunks.on_failed(chunk);
    fail_source(*fetch, total_size.error(), now);
  } else if (*total_size != fetch->chunks.size()) {
    fetch->chunks.on_failed(chunk);
    fail_source(*fetch, make_error(Code::kProtocol, "its copy changed size"), now);
  } else {
    fetch->chunks.on_received(chunk);
    fetch->progress_us = now.steady_us;
    fetch->chunks_came = true;
    fetch->sources.heard(now);
    serve_readers(*fetch);
    if (fetch->source_failed && fetch->calls == 0 && !fetch->chunks.is_complete()) {
      leave_source(*fetch, now);
    } else {
      request_chunks(*fetch);
    }
  }
  launch_queued(now);
}

// ---- other nodes that read what is being received

void Fetches::read(CallId reader, const ObjectId& object, Range range) {
  const Fetch* receives = receiving(object);
  if (!receives)
    return sink_.refuse(
        reader, make_error(Code::kNotFound,
                           fmt::format("object {} is not being received here", object.hex())));
  Fetch& fetch = fetches_.at(receives->number);
  fetch.readers.push_back({reader, range});
  if (fetch.offset >= 0) serve_readers(fetch);
}

void Fetches::serve_readers(Fetch& fetch) {
  const int64_t size = fetch.chunks.size();
  std::erase_if(fetch.readers, [&](const Reader& reader) {
    if (reader.range.offset > size || reader.range.size > size - reader.range.offset) {
      sink_.refuse(reader.call, make_error(Code::kInvalid, fmt::format("object {} has {} bytes",
                                                                       fetch.object.hex(), size)));
      return true;
    }
    if (!fetch.chunks.has(reader.range)) return false;
    fetch.serving++;
    sink_.serve(
        reader.call,
        {fetch.number, {fetch.offset + reader.range.offset, reader.range.size}, size, fetch.owner});
    return true;
  });
}

void Fetches::piece_sent(FetchId id, Now now) {
  Fetch* fetch = find(id);
  RT_CHECK(fetch && fetch->serving > 0);
  fetch->serving--;
  forget_if_unused(*fetch);
  launch_queued(now);
}

// ---- the end

void Fetches::seal(Fetch& fetch) {
  fetch.step = Step::kFinished;
  fetch.sealed = true;
  serve_readers(fetch);
  sink_.seal({fetch.object, fetch.offset, fetch.chunks.size(), 0, fetch.owner});
  forget_if_unused(fetch);
}

void Fetches::fail_without_source(Fetch& fetch) {
  const std::string object = fetch.object.hex();
  if (fetch.last_asked.empty())
    return fail(fetch,
                make_error(Code::kObjectLost,
                           fmt::format("object {} is lost: all {} nodes that had it have left",
                                       object, fetch.sources.size())));
  fail(fetch,
       make_error(
           fetch.sources.may_answer_yet() ? Code::kTimeout : Code::kObjectLost,
           fmt::format("object {} could not be fetched from any of {} nodes; the last, {}: {}",
                       object, fetch.sources.size(), fetch.last_asked, fetch.last_error.message)));
}

void Fetches::fail(Fetch& fetch, const Error& why) {
  fetch.step = Step::kFinished;
  for (const Reader& reader : fetch.readers)
    sink_.refuse(reader.call, make_error(Code::kNotFound, why.message));
  fetch.readers.clear();
  sink_.fail(fetch.object, why);
  forget_if_unused(fetch);
}

void Fetches::forget_if_unused(Fetch& fetch) {
  if (fetch.step != Step::kFinished || fetch.calls > 0 || fetch.serving > 0) return;
  const FetchSink::End how = fetch.sealed        ? FetchSink::End::kReleased
                             : fetch.offset >= 0 ? FetchSink::End::kAborted
                                                 : FetchSink::End::kWithoutRoom;
  sink_.end(fetch.number, fetch.object, how);
  queue_.ended(fetch.counted_bytes);
  watched_.erase({fetch.watched_us, fetch.number});
  by_object_.erase(fetch.object);
  fetches_.erase(fetch.number);
}

// ---- time

void Fetches::begin_call(Fetch& fetch) {
  fetch.calls++;
  if (fetch.watched_us < 0) watch(fetch);
}

void Fetches::watch(Fetch& fetch) {
  fetch.watched_us = fetch.progress_us + options_.no_progress_us;
  watched_.insert({fetch.watched_us, fetch.number});
}

void Fetches::tick(Now now) {
  while (!watched_.empty() && watched_.begin()->first <= now.steady_us) {
    Fetch& fetch = fetches_.at(watched_.begin()->second);
    watched_.erase(watched_.begin());
    fetch.watched_us = -1;
    // A later call begins to watch the fetch again.
    if (fetch.calls == 0) continue;
    if (now.steady_us - fetch.progress_us >= options_.no_progress_us) {
      // The end of the connection ends its calls, and with them their hold on the arena.
      sink_.close(fetch.number,
                  make_error(Code::kTimeout,
                             fmt::format("no progress for {} ms", options_.no_progress_us / 1000)));
      fetch.progress_us = now.steady_us;
      fetch.chunks_came = false;
    }
    watch(fetch);
  }
}

void Fetches::check_invariants() const {
  int64_t bytes = 0;
  size_t watched = 0;
  for (const auto& [number, fetch] : fetches_) {
    RT_CHECK(fetch.number == number && by_object_.at(fetch.object) == number);
    RT_CHECK(fetch.calls >= 0 && fetch.serving >= 0);
    bytes += fetch.counted_bytes;
    switch (fetch.step) {
      case Step::kConnecting: RT_CHECK(fetch.calls == 0 && fetch.sources.current()); break;
      case Step::kDescribing: RT_CHECK(fetch.calls == 1 && fetch.sources.current()); break;
      case Step::kCreating: RT_CHECK(fetch.calls == 0 && fetch.offset < 0); break;
      case Step::kPulling: RT_CHECK(fetch.calls > 0 && fetch.offset >= 0); break;
      case Step::kFinished:
        RT_CHECK(fetch.calls == 0 && fetch.serving > 0 && fetch.readers.empty());
        break;
    }
    RT_CHECK(fetch.calls <= options_.chunks_in_flight);
    RT_CHECK(fetch.serving == 0 || fetch.offset >= 0);
    RT_CHECK(!fetch.sealed || fetch.chunks.is_complete());
    // A source that hangs is noticed.
    RT_CHECK(fetch.calls == 0 || fetch.watched_us >= 0);
    if (fetch.watched_us < 0) continue;
    RT_CHECK(watched_.contains({fetch.watched_us, number}));
    watched++;
  }
  RT_CHECK(watched == watched_.size() && by_object_.size() == fetches_.size());
  RT_CHECK(bytes == queue_.bytes());
}

}  // namespace rt::store
