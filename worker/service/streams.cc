#include "worker/service/streams.h"

#include <fmt/core.h>

#include "worker/core/death.h"
#include "worker/service/objects.h"
#include "worker/service/pump.h"
#include "worker/service/results.h"

namespace rt::worker {
namespace {

Blob none_blob() {
  ValueParts none;
  none.kind = ValueKind::kNone;
  return copy_blob(as_bytes(encode_plain(none)));
}

}  // namespace

Streams::Streams(Objects& objects, Results& results, Pump& pump, const std::atomic<bool>& stopping)
    : objects_(objects), results_(results), pump_(pump), stopping_(stopping) {}

Streams::~Streams() = default;

void Streams::reset() { table_ = std::make_unique<GeneratorStreams>(objects_.refs()); }

void Streams::open(Task& task, std::vector<Ref>* returns) {
  const proto::TaskTemplate& spec = task.function->spec;
  table_->open(task.id, spec.generator_backpressure());
  if (spec.num_returns() != kStreamingReturns) return;
  ObjectEntry* consumer = objects_.refs().create(make_object_id(task.id, kStreamIndex));
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
    Task* task = reader.ok() ? results_.task_in_flight(*link, seq) : nullptr;
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
    // Also for an item that nobody wants: its producer must hear that it need not wait for anybody.
    if (stream->producer.lock() != link) stream->producer = link;
    stream->seq = seq;
    ObjectLocation node = value.in_store ? results_.location_of(*link) : ObjectLocation{};
    if (arrival == GeneratorStream::Arrival::kUnwanted) {
      // The references inside are counted for this process, and the copy in the store belongs to
      // it: both are released.
      Bytes packed = value.value;
      if (!value.in_store) {
        auto decoded = decode_value(value.value);
        packed = decoded ? decoded->packed_refs : Bytes{};
      }
      if (!packed.empty()) (void)objects_.take_refs(packed, true, false);
      if (value.in_store && objects_.store())
        objects_.store()->free({make_object_id(task->id, kFirstItemIndex + number)},
                               {{node.node, node.ip, node.port, value.size}});
    } else {
      // An error that was raised is read by the consumer or not wanted, so it is never reported as
      // unhandled.
      results_.store_return(entry_of(item), value, node, true);
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
  writer.fields(stream.seq, *taken);
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
  objects_.count_error();
  // Somebody waits for an item that will never come: the entry becomes ready, and the waiter looks
  // again.
  objects_.set_blob(entry_of(last), error ? *error
                                          : copy_blob(as_bytes(encode_error(system_error(
                                                Code::kNotFound, "the generator has ended")))));
}

void Streams::complete(Task* task, std::span<const Return> returns, bool failed) {
  bool usable = returns.size() == 1 && !returns[0].in_store;
  Blob value =
      copy_blob(usable ? returns[0].value
                       : as_bytes(encode_error(system_error(
                             Code::kInternal, "the worker's reply holds no value", *task))));
  failed |= !usable;
  if (failed) objects_.count_error();
  auto& result = entry_of(task->returns[0]);
  GeneratorStream* stream = table_->find(task->id);
  if (task->function->spec.num_returns() == kStreamingReturns) {
    // The exception that the generator raised is in its last item; a cancellation shows in the
    // task's result as well.
    end(task, failed ? &value : nullptr);
    objects_.set_blob(result, failed && !task->cancelled ? none_blob() : value);
    return;
  }
  std::vector<Ref> items = stream ? stream->take_all() : std::vector<Ref>{};
  end(task, nullptr);
  auto decoded = decode_value(value.bytes());
  if (failed || !decoded) return objects_.set_blob(result, value);
  // The executor's value with the items as the references inside it.
  ValueParts parts;
  parts.kind = decoded->kind;
  parts.inband = decoded->inband;
  parts.contained = items;
  std::string packed = objects_.pack(items);
  size_t size = encoded_size(parts, packed.size());
  auto data = std::make_shared_for_overwrite<uint8_t[]>(size);
  encode_value(parts, packed, data.get(), plain_copy);
  result.mutable_details().contained = std::move(items);
  objects_.set_blob(result, {std::move(data), size});
}

void Streams::dropped(const TaskId& task) {
  if (stopping_) return;
  GeneratorStream* stream = table_->find(task);
  if (!stream) return;
  bool running = !stream->ended();
  table_->drop(task);
  if (running) acknowledge(*stream);
}

Waited Streams::next(WorkerLock& lock, const Ref& stream_ref, int64_t deadline_us, Ref* item) {
  GeneratorStream* stream = table_->find(task_of(stream_ref.id()));
  item->reset();
  if (!stream) return Waited::kDone;
  if (!stream->has_item() && !stream->ended()) {
    Waited waited = pump_.wait_until(
        lock, deadline_us, [&] { return stream->has_item() || stream->ended() || stopping_; },
        kLendsCpu);
    if (waited != Waited::kDone) return waited;
  }
  if (stream->take(item) == GeneratorStream::Next::kItem) acknowledge(*stream);
  return Waited::kDone;
}

Worker::ItemState Streams::peek(const Ref& stream_ref, Ref* item) {
  GeneratorStream* stream = table_->find(task_of(stream_ref.id()));
  item->reset();
  if (!stream) return Worker::ItemState::kEnd;
  switch (stream->peek(item)) {
    case GeneratorStream::Next::kItem: return Worker::ItemState::kHere;
    case GeneratorStream::Next::kPending: return Worker::ItemState::kPending;
    default: return Worker::ItemState::kEnd;
  }
}

}  // namespace rt::worker
