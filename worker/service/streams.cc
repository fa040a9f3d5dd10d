#include "worker/service/streams.h"

#include <fmt/core.h>

#include "worker/core/death.h"
#include "worker/service/executing_task.h"
#include "worker/service/impl.h"

namespace rt::worker {
namespace {

Blob none_blob() {
  ValueParts none;
  none.kind = ValueKind::kNone;
  std::string encoded(encoded_size(none, 0), '\0');
  encode_value(none, {}, reinterpret_cast<uint8_t*>(encoded.data()), plain_copy);
  return copy_blob(as_bytes(encoded));
}

}  // namespace

void Streams::reset() { table_ = std::make_unique<GeneratorStreams>(impl_.objects.refs()); }

void Streams::open(Task& task, std::vector<Ref>* returns) {
  const proto::TaskTemplate& spec = task.function->spec;
  table_->open(task.id, spec.generator_backpressure());
  if (spec.num_returns() != kStreamingReturns) return;
  ObjectEntry* consumer = impl_.objects.refs().create(make_object_id(task.id, kStreamIndex));
  consumer->kind = ObjectEntry::Kind::kStream;
  consumer->state = ObjectState::kInMemory;
  returns->emplace_back(consumer);
}

void Streams::on_items(const std::shared_ptr<Link>& link, Bytes body) {
  wire::Reader reader(body);
  while (!reader.at_end() && link->open) {
    auto seq = reader.number<uint32_t>();
    auto number = reader.number<uint32_t>();
    Return value = read_return(reader);
    Task* task = reader.ok() ? impl_.submission.results().task_in_flight(*link, seq) : nullptr;
    GeneratorStream* stream = task ? table_->find(task->id) : nullptr;
    Ref item;
    auto arrival = stream ? stream->arrive(number, &item) : GeneratorStream::Arrival::kRefused;
    if (arrival == GeneratorStream::Arrival::kRefused) {
      link->connection->close(
          make_error(Code::kProtocol,
                     fmt::format("item {} of task {}: not the next one of a generator in flight",
                                 number, seq)));
      return;
    }
    ObjectLocation node =
        value.in_store ? impl_.submission.results().location_of(*link) : ObjectLocation{};
    if (arrival == GeneratorStream::Arrival::kUnwanted) {
      // The references inside are counted for this process, and the copy in the store belongs to
      // it: both are released.
      Bytes packed = value.value;
      if (!value.in_store) {
        auto decoded = decode_value(value.value);
        packed = decoded ? decoded->packed_refs : Bytes{};
      }
      if (!packed.empty()) (void)impl_.objects.take_refs(packed, true, false);
      if (value.in_store && impl_.objects.store())
        impl_.objects.store()->free({make_object_id(task->id, kFirstItemIndex + number)},
                                    {{node.node, node.ip, node.port, value.size}});
    } else {
      if (stream->producer.lock() != link) stream->producer = link;
      stream->seq = seq;
      // An error that was raised is read by the consumer or not wanted, so it is never reported as
      // unhandled.
      impl_.submission.results().store_return(*static_cast<ObjectEntry*>(item.entry()), value, node,
                                              true);
    }
    acknowledge(*stream);
  }
  if (!reader.ok())
    link->connection->close(make_error(Code::kProtocol, "malformed item of a generator"));
}

void Streams::acknowledge(GeneratorStream& stream) {
  auto link = stream.producer.lock();
  if (!link || !link->open) return;
  auto taken = stream.acknowledge();
  if (!taken) return;
  wire::Writer writer(link->connection->begin_flat(wire::kItemsTaken));
  writer.number(stream.seq);
  writer.number(*taken);
  link->connection->end_flat();
  link->connection->flush();
}

void Streams::end(Task* task, const Blob* error) {
  GeneratorStream* stream = table_->find(task->id);
  if (!stream) return;
  bool streaming = task->function->spec.num_returns() == kStreamingReturns;
  Ref last = error && streaming ? stream->end_with_error() : stream->end();
  table_->ended(task->id, streaming);
  if (!last) return;
  impl_.objects.count_error();
  // Somebody waits for an item that will never come: the entry becomes ready, and the waiter looks
  // again.
  impl_.objects.set_blob(*static_cast<ObjectEntry*>(last.entry()),
                         error ? *error
                               : copy_blob(as_bytes(encode_error(
                                     system_error(Code::kNotFound, "the generator has ended")))));
}

void Streams::complete(Task* task, std::span<const Return> returns, bool failed) {
  bool usable = returns.size() == 1 && !returns[0].in_store;
  Blob value =
      copy_blob(usable ? returns[0].value
                       : as_bytes(encode_error(system_error(
                             Code::kInternal, "the worker's reply holds no value", *task))));
  failed |= !usable;
  if (failed) impl_.objects.count_error();
  auto& result = *static_cast<ObjectEntry*>(task->returns[0].entry());
  GeneratorStream* stream = table_->find(task->id);
  if (task->function->spec.num_returns() == kStreamingReturns) {
    // The exception that the generator raised is in its last item; a cancellation shows in the
    // task's result as well.
    end(task, failed ? &value : nullptr);
    impl_.objects.set_blob(result, failed && !task->cancelled ? none_blob() : value);
    return;
  }
  std::vector<Ref> items = stream ? stream->take_all() : std::vector<Ref>{};
  end(task, nullptr);
  auto decoded = decode_value(value.bytes());
  if (failed || !decoded) return impl_.objects.set_blob(result, value);
  // The executor's value with the items as the references inside it.
  ValueParts parts;
  parts.kind = decoded->kind;
  parts.inband = decoded->inband;
  parts.contained = items;
  std::string packed = impl_.objects.pack(items);
  size_t size = encoded_size(parts, packed.size());
  auto data = std::make_shared_for_overwrite<uint8_t[]>(size);
  encode_value(parts, packed, data.get(), plain_copy);
  result.mutable_details().contained = std::move(items);
  impl_.objects.set_blob(result, {std::move(data), size});
}

void Streams::dropped(const TaskId& task) {
  if (impl_.stopping) return;
  GeneratorStream* stream = table_->find(task);
  if (!stream) return;
  bool running = !stream->ended();
  table_->drop(task);
  if (running) acknowledge(*stream);
}

Waited Streams::next(const Ref& stream_ref, int64_t deadline_us, Ref* item) {
  Worker::Impl::Lock lock(impl_.mutex);
  GeneratorStream* stream = table_->find(task_of(stream_ref.id()));
  item->reset();
  if (!stream) return Waited::kDone;
  if (!stream->has_item() && !stream->ended()) {
    Waited waited = impl_.pump.wait_until(
        lock, deadline_us, [&] { return stream->has_item() || stream->ended() || impl_.stopping; },
        kLendsCpu);
    if (waited != Waited::kDone) return waited;
  }
  if (stream->take(item) == GeneratorStream::Next::kItem) acknowledge(*stream);
  return Waited::kDone;
}

Worker::ItemState Streams::peek(const Ref& stream_ref, Ref* item) {
  Worker::Impl::Lock lock(impl_.mutex);
  GeneratorStream* stream = table_->find(task_of(stream_ref.id()));
  item->reset();
  if (!stream) return Worker::ItemState::kEnd;
  switch (stream->peek(item)) {
    case GeneratorStream::Next::kItem: return Worker::ItemState::kHere;
    case GeneratorStream::Next::kPending: return Worker::ItemState::kPending;
    default: return Worker::ItemState::kEnd;
  }
}

bool ExecutingTaskImpl::skip_item() {
  if (items_yielded_ >= task_->items_known) return false;
  ++items_yielded_;
  return true;
}

Status ExecutingTaskImpl::item(const ValueParts& value) {
  if (items_yielded_ >= kMaxItems)
    return make_error(Code::kResourceExhausted,
                      fmt::format("a generator yields at most {} items", kMaxItems));
  Worker::Impl::Lock lock(impl_.mutex);
  if (!task_->link || !task_->link->open)
    return make_error(Code::kUnavailable, "the caller of this generator is gone");
  if (value.kind == ValueKind::kError) {
    std::string error(encoded_size(value, 0), '\0');
    encode_value(value, {}, reinterpret_cast<uint8_t*>(error.data()), plain_copy);
    reply_.set_error(std::move(error));
  }
  std::string body;
  wire::Writer writer(body);
  writer.number(task_->seq);
  writer.number(items_yielded_);
  append_return(lock, body, value, kFirstItemIndex + items_yielded_);
  ++items_yielded_;
  impl_.execution.frames().send(task_->link, wire::kItems, body, take_lent(), false);
  impl_.execution.flush_items(*task_->link);
  return {};
}

bool ExecutingTaskImpl::has_room() const {
  int64_t limit = task_->function->spec.generator_backpressure();
  if (limit > 0 && items_ahead() >= limit) return false;
  // A stream whose items are all taken goes on, whatever the other streams of the actor have left
  // untaken, so that streams cannot wait for each other in a circle.
  return limit != kSharedLimit || !impl_.execution.actor() || items_ahead() == 0 ||
         impl_.execution.items_ahead() <
             impl_.execution.actor_spec()->creation().generator_backpressure();
}

Waited ExecutingTaskImpl::wait_for_room() {
  // Items of dynamic generators are taken only at the end, so there is nothing to wait for.
  if (task_->function->spec.generator_backpressure() == 0 || num_returns() != kStreamingReturns)
    return Waited::kDone;
  Worker::Impl::Lock lock(impl_.mutex);
  if (has_room()) return Waited::kDone;
  task_->waits_for_consumer = true;
  const Waited waited = impl_.pump.wait_until(
      lock, -1,
      [this] { return has_room() || cancelled() || !task_->link->open || impl_.stopping; },
      kLendsCpu);
  task_->waits_for_consumer = false;
  return waited;
}

}  // namespace rt::worker
