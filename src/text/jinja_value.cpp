#include "text/jinja_value.h"

#include <algorithm>
#include <numeric>

#include "text/jinja_limits.h"
#include "text/jinja_object.h"

namespace strata::text {

namespace {

void add_range(std::vector<DataRange>& ranges, size_t begin, size_t end) {
  if (begin == end) return;
  if (!ranges.empty() && ranges.back().end == begin) {
    ranges.back().end = static_cast<uint32_t>(end);
  } else {
    ranges.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(end)});
  }
}

}  // namespace

MarkedText MarkedText::all_data(std::string_view text) {
  MarkedText marked;
  marked.append_data(text);
  return marked;
}

void MarkedText::append_data(std::string_view text) {
  add_range(data, bytes.size(), bytes.size() + text.size());
  bytes += text;
}

void MarkedText::append(const MarkedText& other, size_t begin, size_t length) {
  const size_t end = begin + length;
  const size_t start = bytes.size();
  const auto ends_after = [](size_t pos, const DataRange& range) { return pos < range.end; };
  auto range = std::upper_bound(other.data.begin(), other.data.end(), begin, ends_after);
  for (; range != other.data.end() && range->begin < end; ++range) {
    const size_t from = std::max<size_t>(range->begin, begin), to = std::min<size_t>(range->end, end);
    add_range(data, start + from - begin, start + to - begin);
  }
  bytes.append(other.bytes, begin, length);
}

MarkedText MarkedText::part(size_t begin, size_t length) const {
  MarkedText text;
  text.append(*this, begin, length);
  return text;
}

namespace jinja {

namespace {

constexpr size_t kObjectBytes = 112;  // an object of any kind with its counters, rounded up

size_t bytes_of(const MarkedText& text) {
  return kObjectBytes + text.bytes.size() + text.data.size() * sizeof(DataRange);
}

}  // namespace

Lease::Lease(Budget* budget, size_t bytes) : budget_(budget) { grow(bytes); }

Lease::~Lease() {
  if (budget_ != nullptr) budget_->give_back(bytes_);
}

void Lease::grow(size_t bytes) {
  if (budget_ == nullptr) return;
  budget_->take(bytes);
  bytes_ += bytes;
}

StringObject::StringObject(MarkedText t, Budget* budget) : text(std::move(t)), lease(budget, bytes_of(text)) {}

ListObject::ListObject(std::vector<Value> i, Budget* budget)
    : items(std::move(i)), lease(budget, kObjectBytes + items.size() * sizeof(Value)) {}

Value Value::undefined(std::string what) {
  Value v;
  v.object_ = std::make_shared<std::string>(std::move(what));
  return v;
}

Value Value::none() {
  Value v;
  v.kind_ = Kind::None;
  return v;
}

Value Value::boolean(bool value) {
  Value v;
  v.kind_ = Kind::Bool;
  v.bool_ = value;
  return v;
}

Value Value::integer(int64_t value) {
  Value v;
  v.kind_ = Kind::Int;
  v.int_ = value;
  return v;
}

Value Value::big_integer(std::string digits) {
  Value v = undefined(std::move(digits));
  v.kind_ = Kind::BigInt;
  return v;
}

Value Value::real(double value) {
  Value v;
  v.kind_ = Kind::Float;
  v.real_ = value;
  return v;
}

Value Value::string(MarkedText text, Budget* budget) {
  if (budget != nullptr) budget->string(text.bytes.size());
  Value v;
  v.object_ = std::make_shared<StringObject>(std::move(text), budget);
  v.kind_ = Kind::String;
  return v;
}

Value Value::list(std::vector<Value> items, Budget* budget) {
  Value v;
  for (const Value& item : items) v.contain(item);
  v.object_ = std::make_shared<ListObject>(std::move(items), budget);
  v.kind_ = Kind::List;
  return v;
}

Value Value::tuple(std::vector<Value> items, Budget* budget) {
  Value v = list(std::move(items), budget);
  v.tuple_ = true;
  return v;
}

Value Value::map(std::vector<std::pair<MarkedText, Value>> entries, Budget* budget) {
  Value v;
  for (const auto& entry : entries) v.contain(entry.second);
  v.object_ = std::make_shared<MapObject>(std::move(entries), budget);
  v.kind_ = Kind::Map;
  return v;
}

Value Value::function(Function function) {
  Value v;
  v.kind_ = Kind::Function;
  v.function_ = function;
  return v;
}

Value Value::macro(const Macro* macro) {
  Value v;
  v.kind_ = Kind::Macro;
  v.macro_ = macro;
  return v;
}

Value Value::method(Value self, std::string name) {
  Value v;
  v.contain(self);
  v.object_ = std::make_shared<MethodObject>(std::move(self), std::move(name));
  v.kind_ = Kind::Method;
  return v;
}

Value Value::new_namespace() {
  Value v;
  v.object_ = std::make_shared<NamespaceObject>();
  v.kind_ = Kind::Namespace;
  v.reference_ = true;
  return v;
}

Value Value::loop(std::shared_ptr<LoopObject> loop) {
  Value v;
  v.contain(loop->items);
  v.object_ = std::move(loop);
  v.kind_ = Kind::Loop;
  v.reference_ = true;
  return v;
}

void Value::contain(const Value& child) {
  if (child.depth_ >= kMaxDepth) exceed("nesting", kMaxDepth);
  depth_ = std::max<uint16_t>(depth_, static_cast<uint16_t>(child.depth_ + 1));
  reference_ = reference_ || child.reference_;
}

const std::string& Value::what() const {
  static const std::string nothing = "a value is undefined";
  return object_ ? *static_cast<const std::string*>(object_.get()) : nothing;
}

StringObject* Value::unshared_string() {
  return kind_ == Kind::String && object_.use_count() == 1 ? static_cast<StringObject*>(object_.get()) : nullptr;
}

MapObject::MapObject(std::vector<std::pair<MarkedText, Value>> entries, Budget* budget) {
  // Stable, so that of equal keys the first comes first.
  std::vector<uint32_t> order(entries.size());
  std::iota(order.begin(), order.end(), 0u);
  const auto key = [&](uint32_t i) -> const std::string& { return entries[i].first.bytes; };
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
  std::vector<bool> repeated(entries.size(), false);
  for (size_t i = 0; i < order.size();) {
    size_t last = i;
    while (last + 1 < order.size() && key(order[last + 1]) == key(order[i])) repeated[order[++last]] = true;
    if (last != i) entries[order[i]].second = entries[order[last]].second;
    i = last + 1;
  }
  entries_.reserve(entries.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    if (repeated[i]) continue;
    entries_.emplace_back(Value::string(std::move(entries[i].first), budget), std::move(entries[i].second));
  }
  by_key_.resize(entries_.size());
  std::iota(by_key_.begin(), by_key_.end(), 0u);
  std::sort(by_key_.begin(), by_key_.end(),
            [&](uint32_t a, uint32_t b) { return entries_[a].first.bytes() < entries_[b].first.bytes(); });
  lease_.emplace(budget, kObjectBytes + entries_.size() * (sizeof(Entry) + sizeof(uint32_t)));
}

const Value* MapObject::find(std::string_view key) const {
  const auto found = std::lower_bound(by_key_.begin(), by_key_.end(), key, [&](uint32_t i, std::string_view k) {
    return std::string_view(entries_[i].first.bytes()) < k;
  });
  if (found == by_key_.end() || entries_[*found].first.bytes() != key) return nullptr;
  return &entries_[*found].second;
}

}  // namespace jinja
}  // namespace strata::text
